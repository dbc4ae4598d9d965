//! The devices of a level, and a monitor that sees all of them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;

use laneway_core::ids::RunId;
use laneway_core::serve::{Failure, Launch, Poll, PrepareError, Report, Runner, Task};
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::{Digest, TaskArgsView};

use crate::kind::{FAILS, Kind, UNKNOWN};
use crate::runs::Runs;

/// A task that ends at the first poll.
pub(crate) const QUICK: u8 = 0;
/// A task that takes three polls.
pub(crate) const SLOW: u8 = 3;
/// A task that never ends by itself.
pub(crate) const HANGS: u8 = 202;

/// Sees every device of the level.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    /// Runs launched and not finalised, by child.
    executing: BTreeMap<usize, RunId>,
    /// The latest run that was ever launched.
    latest: Option<RunId>,
    /// For each buffer: the run that wrote it last, how far it came, and the child that writes it now.
    buffers: BTreeMap<u64, (RunId, u64, Option<usize>)>,
    pub(crate) launches: u64,
    pub(crate) prepared_beside: u64,
}

impl Monitor {
    /// E-3, L-14: two runs never execute at once, and a later run never before an earlier one.
    fn launch(&mut self, child: usize, run: RunId, args: TaskArgsView<'_>) {
        for tensor in args.tensors() {
            // E-14, E-17, E-18: writers of one buffer run one after the other, in the order in which they were submitted.
            let place = args.scalars()[0];
            let (last_run, last, writer) = self.buffers.entry(tensor.byte_range().start).or_insert((run, 0, None));
            assert_eq!(*writer, None, "two tasks write one buffer at once");
            assert!(*last_run < run || *last < place, "task {place} of run {run} after task {last}");
            (*last_run, *last, *writer) = (run, place, Some(child));
        }
        assert!(self.executing.values().all(|other| *other == run), "run {run} launched beside {:?}", self.executing);
        assert!(self.latest.is_none_or(|latest| latest <= run), "run {run} launched after run {:?}", self.latest);
        assert!(self.executing.insert(child, run).is_none(), "child {child} executes two runs");
        self.latest = Some(run);
        self.launches += 1;
    }

    /// The child has no run any more, by its end or by its own.
    pub(crate) fn ended(&mut self, child: usize) {
        self.executing.remove(&child);
        for (_, _, writer) in self.buffers.values_mut() {
            writer.take_if(|writer| *writer == child);
        }
    }
}

/// The device of one child.
#[derive(Debug)]
pub(crate) struct Device {
    child: usize,
    kind: Kind,
    monitor: Rc<RefCell<Monitor>>,
    runs: Runs,
    /// Polls that the launched run still takes; `u32::MAX` without end.
    left: u32,
}

impl Device {
    pub(crate) fn new(child: usize, kind: Kind, monitor: Rc<RefCell<Monitor>>) -> Self {
        Self { child, kind, monitor, runs: Runs::default(), left: 0 }
    }
}

impl Runner for Device {
    type Token = u32;

    fn knows(&mut self, digest: &Digest) -> bool {
        digest.0[0] != UNKNOWN
    }

    fn prepares_concurrently(&self) -> bool {
        self.kind == Kind::Concurrent
    }

    fn prepare(&mut self, _: &Task<'_>, _: &mut Report) -> Result<u32, PrepareError> {
        self.monitor.borrow_mut().prepared_beside += u64::from(self.runs.is_launched());
        Ok(self.runs.prepare(self.kind == Kind::Concurrent))
    }

    fn launch(&mut self, token: u32, task: &Task<'_>, report: &mut Report) -> Result<Launch, Failure> {
        self.runs.check_launch(token);
        let behaviour = task.digest.0[0];
        if behaviour == FAILS {
            let _ = write!(report, "{} said no", task.identity);
            return Err(Failure::MESSAGE);
        }
        self.runs.launch(token);
        self.left = if behaviour == HANGS { u32::MAX } else { behaviour.into() };
        self.monitor.borrow_mut().launch(self.child, task.identity.run, task.args);
        Ok(if self.kind == Kind::Sub { Launch::Complete } else { Launch::Running })
    }

    fn accepted(&mut self, _: u32) -> bool {
        self.kind != Kind::Sub && self.runs.is_launched()
    }

    fn poll(&mut self, token: u32, _: &mut Report) -> Result<Poll, Failure> {
        self.runs.check_poll(token);
        if self.left == 0 {
            return Ok(Poll::Complete);
        }
        self.left -= u32::from(self.left != u32::MAX);
        Ok(Poll::NotReady)
    }

    fn finalize(&mut self, token: u32, _: &mut Report) -> Result<(), Failure> {
        if self.runs.finalize(token) {
            self.monitor.borrow_mut().ended(self.child);
        }
        Ok(())
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        match request {
            ControlRequest::Malloc { bytes: 0 } => {
                report.push_str("zero bytes");
                Err(Failure::MESSAGE)
            }
            ControlRequest::Malloc { bytes } => Ok(bytes * 2),
            _ => Ok(0),
        }
    }

    fn shutdown(&mut self) {
        assert!(self.runs.is_empty(), "L-15: a run leaks at shutdown");
    }
}
