//! The device under the child: it holds what it is asked against the rules of runs.

use laneway_core::serve::{Failure, Launch, Poll, PrepareError, Report, Runner, Task};
use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;

/// A device that accepts and completes when the world says so.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Rig {
    pub(crate) concurrent: bool,
    pub(crate) next: u8,
    /// Token and dispatch.
    pub(crate) prepared: Vec<(u8, u64)>,
    pub(crate) launched: Option<(u8, u64)>,
    pub(crate) accepted: bool,
    pub(crate) done: bool,
    /// Dispatches that ran to their end and were finalised.
    pub(crate) finished: Vec<u64>,
    pub(crate) shut: bool,
}

impl Rig {
    pub(crate) fn holds(&self, dispatch: u64) -> bool {
        self.prepared.iter().chain(&self.launched).any(|(_, held)| *held == dispatch)
    }
}

impl Runner for Rig {
    type Token = u8;

    fn knows(&mut self, _: &Digest) -> bool {
        true
    }

    fn prepares_concurrently(&self) -> bool {
        self.concurrent
    }

    fn prepare(&mut self, task: &Task<'_>, _: &mut Report) -> Result<u8, PrepareError> {
        let others = self.prepared.len() + usize::from(self.launched.is_some());
        assert!(others <= usize::from(self.concurrent), "L-12: {others} runs are there already");
        self.next += 1;
        self.prepared.push((self.next, task.identity.dispatch.get()));
        Ok(self.next)
    }

    fn launch(&mut self, token: u8, task: &Task<'_>, _: &mut Report) -> Result<Launch, Failure> {
        assert!(self.launched.is_none(), "L-14");
        assert!(self.prepared.contains(&(token, task.identity.dispatch.get())), "launch of what is not prepared");
        assert!(!self.finished.contains(&task.identity.dispatch.get()), "a dispatch runs twice");
        self.prepared.retain(|(prepared, _)| *prepared != token);
        self.launched = Some((token, task.identity.dispatch.get()));
        (self.accepted, self.done) = (false, false);
        Ok(Launch::Running)
    }

    fn accepted(&mut self, _: u8) -> bool {
        self.accepted
    }

    fn poll(&mut self, token: u8, _: &mut Report) -> Result<Poll, Failure> {
        assert!(self.launched.is_some_and(|(launched, _)| launched == token));
        Ok(if self.done { Poll::Complete } else { Poll::NotReady })
    }

    fn finalize(&mut self, token: u8, _: &mut Report) -> Result<(), Failure> {
        match self.launched {
            Some((launched, dispatch)) if launched == token => {
                if self.done {
                    self.finished.push(dispatch);
                }
                self.launched = None;
            }
            _ => {
                let before = self.prepared.len();
                self.prepared.retain(|(prepared, _)| *prepared != token);
                assert_eq!(self.prepared.len() + 1, before, "L-15: run {token} finalised twice");
            }
        }
        Ok(())
    }

    fn control(&mut self, request: &ControlRequest, _: &mut Report) -> Result<u64, Failure> {
        if matches!(request, ControlRequest::Unregister { .. }) {
            assert!(self.prepared.is_empty() && self.launched.is_none(), "L-21: a registry control beside a run");
        }
        Ok(0)
    }

    fn shutdown(&mut self) {
        assert!(self.prepared.is_empty() && self.launched.is_none(), "L-15: a run leaks at shutdown");
        assert!(!self.shut, "closed twice");
        self.shut = true;
    }
}
