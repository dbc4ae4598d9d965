//! Chip children that panic with a run on their device, which is closed then although that may take for ever (L-26, L-32).

use std::time::Duration;

use laneway_core::chip::{CallableSlot, ChipError, HostAddress, Progress, RunDescriptor, RunTable, RunToken};
use laneway_core::wire::{CallConfig, ChipStorageTaskArgs};
use laneway_linux::{Chip, DeviceAddress, DeviceRuntime, Error, TaskArgs, Worker};
use rustix::process::{Pid, Signal, WaitOptions, getppid, kill_process, waitpid};

use crate::harness::{Channel, in_time};
use crate::support::{KIND, PLATFORM, register};

/// When the child panics while it polls.
#[derive(Clone, Copy)]
enum Panics {
    AtOnce,
    /// Once its parent is gone, before it could look for itself.
    Orphaned,
}

/// A device whose run ends when `go_on` has something to read, or never; closing it waits for that.
struct Stuck {
    runs: RunTable<()>,
    panics: Panics,
    parent: Option<Pid>,
    told: &'static Channel,
    /// `None` if the run never ends.
    go_on: Option<&'static Channel>,
    closed: bool,
}

impl Stuck {
    fn new(panics: Panics, told: &'static Channel, go_on: Option<&'static Channel>) -> Self {
        Self { runs: RunTable::new(), panics, parent: getppid(), told, go_on, closed: false }
    }
}

impl DeviceRuntime for Stuck {
    fn register(&mut self, _: CallableSlot, _: &[u8]) -> Result<(), ChipError> {
        Ok(())
    }

    fn unregister(&mut self, _: CallableSlot) -> Result<(), ChipError> {
        Ok(())
    }

    fn prepare(
        &mut self,
        _: CallableSlot,
        _: &ChipStorageTaskArgs,
        _: &CallConfig,
        run: RunDescriptor,
    ) -> Result<RunToken, ChipError> {
        let token = self.runs.begin_prepare(run.slot())?;
        self.runs.prepared(token, ()).map(|()| token)
    }

    fn launch(&mut self, run: RunToken) -> Result<(), ChipError> {
        self.runs.launched(run)
    }

    fn accepted(&self, _: RunToken) -> bool {
        true
    }

    fn poll(&mut self, _: RunToken) -> Result<Progress, ChipError> {
        if let Panics::Orphaned = self.panics {
            self.told.send(b"polling ");
            while getppid() == self.parent {
                std::thread::yield_now();
            }
        }
        panic!("the device says nonsense")
    }

    fn wait(&mut self, _: RunToken) -> Result<(), ChipError> {
        unreachable!("the child polls")
    }

    fn finalize(&mut self, _: RunToken) -> Result<(), ChipError> {
        unreachable!("its run never ends")
    }

    fn malloc(&mut self, _: u64) -> Result<DeviceAddress, ChipError> {
        unreachable!("no test asks for memory")
    }

    fn free(&mut self, _: DeviceAddress) -> Result<(), ChipError> {
        unreachable!("there is none")
    }

    fn copy_to(&mut self, _: DeviceAddress, _: HostAddress, _: u64) -> Result<(), ChipError> {
        unreachable!("there is none")
    }

    fn copy_from(&mut self, _: HostAddress, _: DeviceAddress, _: u64) -> Result<(), ChipError> {
        unreachable!("there is none")
    }

    fn committed_memory(&self) -> u64 {
        0
    }

    fn shutdown(&mut self) -> Result<(), ChipError> {
        if !std::mem::replace(&mut self.closed, true) {
            self.told.send(b"closing ");
            match self.go_on {
                Some(go_on) => drop(go_on.receive()),
                None => loop {
                    std::thread::park();
                },
            }
            self.told.send(b"closed ");
        }
        Ok(())
    }
}

/// As a device should: it waits for what it cannot stop.
impl Drop for Stuck {
    fn drop(&mut self) {
        let _ = self.shutdown();
        self.told.send(b"dropped ");
    }
}

fn leaked() -> &'static mut Channel {
    Box::leak(Box::new(Channel::new()))
}

/// A worker whose chip child panics with a run on its device, and that run.
fn started(
    panics: Panics,
    told: &'static Channel,
    go_on: Option<&'static Channel>,
) -> (Worker, laneway_linux::RunHandle) {
    let worker = Worker::builder().build().unwrap();
    let open = move |_: &[std::ops::Range<u64>]| Ok::<_, Error>(Stuck::new(panics, told, go_on));
    let chip = worker.add_chip(Chip::new(PLATFORM, KIND, open)).unwrap();
    let callable = register(&worker);
    worker.init().unwrap();
    let x = worker.tensor::<i32>(&[1]).unwrap();
    let submit = |orch: &mut laneway_linux::Orchestrator<'_>| {
        Ok(orch.submit_next_level(&callable, chip, TaskArgs::new().inout(&x)).map(drop)?)
    };
    let run = worker.submit(submit).unwrap();
    (worker, run)
}

/// L-26, L-37: the run is waited for, so nothing that the device can reach goes before it; then the child is gone.
pub(crate) fn a_chip_child_that_panics_closes_its_device_before_it_leaves() {
    let (told, go_on) = (&*leaked(), &*leaked());
    let (worker, run) = started(Panics::AtOnce, told, Some(go_on));
    assert_eq!(told.receive_text(), "closing ");
    let waited = run.wait_timeout(Duration::from_millis(1));
    assert!(matches!(waited, Err(Error::WaitTimedOut { .. })), "its device may still write: {waited:?}");
    go_on.send(b"!");
    let error = run.wait().unwrap_err();
    assert!(error.to_string().contains("exited with status 101"), "{error}");
    assert_eq!(told.receive_text(), "closed dropped ", "once");
    worker.close().unwrap();
}

/// L-32
pub(crate) fn a_chip_child_that_panicked_and_waits_for_its_device_dies_with_its_parent() {
    dies_with_its_parent(Panics::AtOnce, "closing ", "");
}

/// L-32: it has as long as any orphan has to close its device, and no longer.
pub(crate) fn an_orphaned_chip_child_that_panics_has_a_moment_to_close_its_device() {
    dies_with_its_parent(Panics::Orphaned, "polling ", "closing ");
}

/// Kills a parent when its chip child has told `before`; the child, whose device never closes, then tells `after` and dies.
fn dies_with_its_parent(panics: Panics, before: &str, after: &str) {
    let told = leaked();
    // SAFETY: this case is a process with one thread; the child goes on as a parent of its own and never returns.
    #[expect(unsafe_code, reason = "a parent to kill")]
    let parent = match unsafe { libc::fork() } {
        0 => {
            let _tree = started(panics, told, None);
            loop {
                std::thread::park();
            }
        }
        parent => Pid::from_raw(parent).unwrap(),
    };
    told.close_sender();
    assert_eq!(told.receive_text(), before);
    kill_process(parent, Signal::KILL).unwrap();
    // Parent and child alone hold the other end.
    let (took, rest) = told.wait_for_end(Duration::from_secs(5)).expect("the child dies");
    waitpid(Some(parent), WaitOptions::empty()).unwrap();
    let rest = String::from_utf8(rest).unwrap();
    if rest != after {
        // What the child still does has this long, of the machine's time too.
        in_time(&format!("the end of the child, which said {rest:?},"), took, Duration::from_millis(50));
    }
    assert_eq!(rest, after);
    in_time("the end of the child", took, Duration::from_millis(100));
}
