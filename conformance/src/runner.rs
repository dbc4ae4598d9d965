//! Runs cases.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::case::{Body, Case, cases};
use crate::device::Bench;
use crate::expect::Violation;
use crate::frame::Desk;
use crate::isolate;
use crate::report::{Entry, Outcome, Report};
use crate::tree::Grove;

/// Which cases are run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    parts: Vec<String>,
}

impl Filter {
    /// All cases.
    #[must_use]
    pub const fn all() -> Self {
        Self { parts: Vec::new() }
    }

    /// Also those whose name holds `part`, or that show the rule `part`; before the first of these it is all cases.
    #[must_use]
    pub fn or(mut self, part: impl Into<String>) -> Self {
        self.parts.push(part.into());
        self
    }

    /// Whether a case is among them.
    #[must_use]
    pub fn holds(&self, case: &Case) -> bool {
        let fits = |part: &String| case.name().contains(part.as_str()) || case.rules().contains(part);
        self.parts.is_empty() || self.parts.iter().any(fits)
    }
}

/// The seed of what is random in the cases, unless another is asked for.
pub const SEED: u64 = 1;

/// How long one case may take in a process of its own, unless another time is asked for.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Where the cases are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Here, one after the other. One that hangs hangs this.
    Here,
    /// Each in a process of its own, for so long.
    Apart(Duration),
}

/// Runs cases against backends: which, where, and with what seed.
#[derive(Clone, Debug)]
pub struct Runner {
    cases: Vec<Case>,
    seed: u64,
    place: Place,
}

impl Runner {
    /// Runs all that `filter` holds: each in a process of its own if this process has one thread, else here and without the
    /// cases that fork.
    #[must_use]
    pub fn new(filter: Filter) -> Self {
        let place = if isolate::is_possible() { Place::Apart(TIMEOUT) } else { Place::Here };
        let cases = cases().into_iter().filter(|case| filter.holds(case)).collect();
        Self { cases, seed: SEED, place }
    }

    /// And this case, whatever the filter.
    #[must_use]
    pub fn and(mut self, case: Case) -> Self {
        self.cases.push(case);
        self
    }

    /// What it is going to run.
    #[must_use]
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// With another seed.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Here, in this process: what a debugger or a sanitizer wants. A case that hangs hangs this.
    #[must_use]
    pub const fn in_this_process(mut self) -> Self {
        self.place = Place::Here;
        self
    }

    /// How long a case may take that is run in a process of its own.
    #[must_use]
    pub const fn timeout(mut self, limit: Duration) -> Self {
        if let Place::Apart(_) = self.place {
            self.place = Place::Apart(limit);
        }
        self
    }

    /// Runs them; `watch` is told of each as it ends, and before each of its name.
    pub fn run(&self, backend: &mut dyn Backend, mut watch: impl FnMut(News<'_>)) -> Report {
        let mut entries = Vec::new();
        for case in &self.cases {
            watch(News::Begins(case));
            let start = Instant::now();
            let outcome = match case.does_not_apply(backend) {
                Some(reason) => Outcome::NotApplicable(reason),
                None => self.one(backend, case),
            };
            let entry = Entry::new(case, outcome, start.elapsed());
            watch(News::Ended(&entry));
            entries.push(entry);
        }
        Report { backend: backend.name().to_owned(), seed: self.seed, entries }
    }

    fn one(&self, backend: &mut dyn Backend, case: &Case) -> Outcome {
        match self.place {
            Place::Here => judge(backend, case, self.seed),
            Place::Apart(limit) => isolate::run(limit, || judge(backend, case, self.seed)),
        }
    }
}

/// What a runner tells while it runs.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// A case begins.
    Begins(&'a Case),
    /// A case has ended.
    Ended(&'a Entry),
}

/// Runs the cases that `filter` holds against a backend: each in a process of its own if this process has one thread, else
/// here and without the cases that fork. [`Runner`] has the choices.
pub fn run(backend: &mut dyn Backend, filter: &Filter) -> Report {
    Runner::new(filter.clone()).run(backend, |_| {})
}

/// Runs one case in this process.
fn judge(backend: &mut dyn Backend, case: &Case, seed: u64) -> Outcome {
    let verdict = catch_unwind(AssertUnwindSafe(|| {
        if let Body::Tree(run) = case.body {
            if !isolate::is_possible() {
                return Err(Outcome::NotApplicable("this process has several threads, so it must not fork".to_owned()));
            }
            return Ok(run(&mut Grove::new(backend, &case.needs, seed)));
        }
        let mut device = backend.open(&case.needs.setup).map_err(|error| Outcome::NotOpened(error.to_string()))?;
        if let Some(reason) = case.does_not_fit(device.as_ref()) {
            return Err(Outcome::NotApplicable(reason));
        }
        Ok(match &case.body {
            Body::Frames(frames, run) => Desk::serve(backend, device, *frames, &case.needs, *run),
            Body::Device(run) => run(&mut Bench::new(device.as_mut(), backend, seed)),
            Body::Script(script) => script.check(&mut Bench::new(device.as_mut(), backend, seed)),
            Body::Tree(_) => Ok(()),
        })
    }));
    match verdict {
        Ok(Ok(Ok(()))) => Outcome::Passed,
        Ok(Ok(Err(violation))) => Outcome::Failed(violation),
        Ok(Err(outcome)) => outcome,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no text");
            let (what, expected) = ("the end of the case".to_owned(), "no panic".to_owned());
            Outcome::Failed(Violation { what, expected, seen: format!("a panic: {text}") })
        }
    }
}
