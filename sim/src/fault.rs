//! Fault plans: at which call the device misbehaves, and how. Plain data, so a test case can be a file.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use laneway_core::chip::Call;
use serde::{Deserialize, Serialize};

/// A point at which a fault can strike.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// The device is brought up.
    Init,
    /// A callable is uploaded.
    Register,
    /// A callable is removed.
    Unregister,
    /// A run is made ready.
    Prepare,
    /// A run is handed to the device.
    Launch,
    /// The device is asked whether it is done.
    Poll,
    /// The caller waits for the device.
    Wait,
    /// A run is ended.
    Finalize,
    /// Memory is allocated.
    Malloc,
    /// Memory is freed.
    Free,
    /// Memory is copied to the device.
    CopyTo,
    /// Memory is copied from the device.
    CopyFrom,
    /// The device is closed.
    Shutdown,
}

impl Point {
    /// The point of a call.
    #[must_use]
    pub fn of(call: Call) -> Self {
        match call {
            Call::Init => Self::Init,
            Call::Register => Self::Register,
            Call::Unregister => Self::Unregister,
            Call::Prepare => Self::Prepare,
            Call::Launch => Self::Launch,
            Call::Poll => Self::Poll,
            Call::Wait => Self::Wait,
            Call::Finalize => Self::Finalize,
            Call::Malloc => Self::Malloc,
            Call::Free => Self::Free,
            Call::CopyTo => Self::CopyTo,
            Call::CopyFrom => Self::CopyFrom,
            Call::Shutdown => Self::Shutdown,
        }
    }
}

/// What happens there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The call fails with this code. After a launch that leaves the completion unproven.
    Error(i32),
    /// The launch hands over the first of its two kernels and fails before the second (only at `launch`).
    HalfLaunch,
    /// The call reports that it is incompatible with what is prepared.
    Incompatible,
    /// The device takes this many nanoseconds longer: virtually from a launch on, in the call itself elsewhere.
    Delay(u64),
    /// The device does not go on until the [`HangSwitch`] is thrown: a launched run does not complete, any other call
    /// does not return.
    Hang,
    /// The process aborts.
    Abort,
    /// The process is killed with SIGKILL.
    Kill,
    /// Garbage is written to where the embedding program says (a task frame, say), through its scribble hook.
    Scribble,
    /// The launch succeeds, but its acceptance is never signalled (only at `launch`).
    SkipAcceptance,
    /// The run reports completion, then reports it once more when it is asked again (only at `poll`).
    CompleteTwice,
}

/// One fault.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The call.
    pub at: Point,
    /// Which of these calls on this device, counted from 1.
    pub occurrence: u64,
    /// What happens.
    pub action: Action,
}

/// Every fault of one device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultPlan {
    /// In any order; two for one call both strike, the first in the list first.
    pub faults: Vec<Fault>,
}

impl FaultPlan {
    /// A device that works.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a fault.
    #[must_use]
    pub fn with(mut self, at: Point, occurrence: u64, action: Action) -> Self {
        self.faults.push(Fault { at, occurrence, action });
        self
    }

    /// Reads a plan from the text of a JSON file: `{"faults": [{"at": "launch", "occurrence": 2, "action": "hang"}]}`.
    ///
    /// # Errors
    /// What is wrong with the text, with line and column.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// Counts the calls and finds what strikes them.
#[derive(Debug)]
pub(crate) struct Injector {
    plan: FaultPlan,
    counts: [u64; Call::ALL.len()],
}

impl Injector {
    pub(crate) fn new(plan: FaultPlan) -> Self {
        Self { plan, counts: [0; Call::ALL.len()] }
    }

    /// Counts a call and returns what strikes it.
    pub(crate) fn strike(&mut self, call: Call) -> Vec<Action> {
        let at = Point::of(call);
        let count = &mut self.counts[call as usize];
        *count += 1;
        if self.plan.faults.is_empty() {
            return Vec::new();
        }
        self.plan.faults.iter().filter(|fault| fault.at == at && fault.occurrence == *count).map(|f| f.action).collect()
    }
}

/// Ends the hangs of a device, from any thread. Clones are the same switch; once thrown it stays thrown.
#[derive(Clone, Debug, Default)]
pub struct HangSwitch {
    thrown: Arc<(Mutex<bool>, Condvar)>,
}

impl HangSwitch {
    /// Lets everything that hangs go on, now and in future.
    pub fn release(&self) {
        *self.thrown.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.thrown.1.notify_all();
    }

    /// Whether it was thrown.
    #[must_use]
    pub fn is_released(&self) -> bool {
        *self.thrown.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns once it is thrown.
    pub(crate) fn wait(&self) {
        let mut thrown = self.thrown.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !*thrown {
            thrown = self.thrown.1.wait(thrown).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_back_from_its_file() {
        let plan = FaultPlan::none()
            .with(Point::Launch, 2, Action::Hang)
            .with(Point::CopyTo, 1, Action::Error(-7))
            .with(Point::Poll, 3, Action::Delay(1_000));
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(FaultPlan::from_json(&text).unwrap(), plan);
        let written = r#"{"faults": [{"at": "launch", "occurrence": 2, "action": "hang"},
            {"at": "copy_to", "occurrence": 1, "action": {"error": -7}},
            {"at": "poll", "occurrence": 3, "action": {"delay": 1000}}]}"#;
        assert_eq!(FaultPlan::from_json(written).unwrap(), plan);
    }

    #[test]
    fn a_misspelt_plan_is_refused() {
        for text in [
            r#"{"faults": [{"at": "lunch", "occurrence": 1, "action": "hang"}]}"#,
            r#"{"faults": [{"at": "launch", "occurence": 1, "action": "hang"}]}"#,
            r#"{"fault": []}"#,
        ] {
            assert!(FaultPlan::from_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_fault_strikes_its_occurrence_and_no_other() {
        let mut injector = Injector::new(FaultPlan::none().with(Point::Prepare, 2, Action::Incompatible));
        assert!(injector.strike(Call::Prepare).is_empty());
        assert!(injector.strike(Call::Launch).is_empty());
        assert_eq!(injector.strike(Call::Prepare), [Action::Incompatible]);
        assert!(injector.strike(Call::Prepare).is_empty());
    }
}
