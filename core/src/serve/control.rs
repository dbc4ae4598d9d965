//! Serving control commands on the base frame.

use core::fmt::Write as _;

use super::leaf::{Failure, ParentBell, Runner};
use super::machine::{Env, Flow, Last, Leave, Machine};
use crate::lane::Frames;
use crate::mailbox::{Frame, Words, control, write_failure};
use crate::wire::control::ControlRequest;
use crate::wire::{Digest, FrameState};

/// Whether a control is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pending {
    No,
    Yes,
}

impl Pending {
    /// What the state of the base frame says; `None` for one that has no place there.
    #[inline]
    pub(super) fn of(base: i32) -> Option<Self> {
        use FrameState as S;
        match FrameState::from_raw(base) {
            Some(S::ControlRequest) => Some(Self::Yes),
            Some(S::Idle | S::ControlDone | S::InitReady | S::Shutdown) => Some(Self::No),
            _ => None,
        }
    }
}

impl<T: Copy + Eq> Machine<T> {
    /// Serves a pending control, if it may be served now.
    #[inline(always)]
    pub(super) fn serve_control<W, R, B>(&mut self, pending: Pending, env: &mut Env<'_, W, R, B>) -> Flow
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        if pending == Pending::No || !self.may_serve(env.words) {
            return Ok(false);
        }
        self.serve_pending(env)
    }

    #[inline(never)]
    fn serve_pending<W, R, B>(&mut self, env: &mut Env<'_, W, R, B>) -> Flow
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        env.report.clear();
        let served = match control::read_request(env.words, self.spec.protocol) {
            Ok(ControlRequest::Unsupported(command)) => {
                let _ = write!(env.report, "{command:?} is unsupported: communication domains are not in this version");
                Err(Failure::MESSAGE)
            }
            Ok(request) => env.runner.control(&request, env.report),
            Err(error) => {
                let _ = write!(env.report, "{error}");
                Err(Failure::MESSAGE)
            }
        };
        match served {
            Ok(result) => control::write_result(env.words, result),
            Err(failure) => {
                write_failure(env.words, Frame::BASE, failure.code, env.report.as_str(), self.parent);
            }
        }
        self.last = Last::Control;
        Frame::BASE.publish_state(env.words, FrameState::ControlDone);
        env.bell.published();
        match served {
            Err(Failure { leave: true, .. }) => Err(Leave::Device),
            _ => Ok(true),
        }
    }

    /// In a one-frame child every control waits for the running task. The registry is changed only when no frame is staged
    /// or active here, and a callable leaves only when no published frame carries its digest (L-21).
    #[inline(never)]
    fn may_serve<W: Words>(&self, words: &W) -> bool {
        if self.spec.frames == Frames::One && self.is_running() {
            return false;
        }
        let Some(command) = control::read_command(words).filter(|command| control::changes_registry(*command)) else {
            return true;
        };
        self.holds.iter().all(Option::is_none)
            && !(control::removes_callable(command) && self.is_published(&control::read_digest(words), words))
    }

    /// Whether a frame that was not taken in yet carries `digest`.
    fn is_published<W: Words>(&self, digest: &Digest, words: &W) -> bool {
        self.slots().iter().map(|slot| Frame::task(*slot)).any(|frame| {
            let state = FrameState::from_raw(frame.state(words));
            matches!(state, Some(FrameState::TaskReady | FrameState::PrepareReady)) && frame.digest(words) == *digest
        })
    }

    /// Whether a control is pending and may be served.
    pub(super) fn control_is_due<W: Words>(&self, words: &W) -> bool {
        Pending::of(Frame::BASE.state(words)) != Some(Pending::No) && self.may_serve(words)
    }
}
