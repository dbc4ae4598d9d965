//! Leaving: on request, after a violation, after the device was lost.

use core::fmt::Write as _;

use super::hold::{Progress, Staged};
use super::leaf::{Failure, ParentBell, Report, Runner};
use super::machine::{Env, Leave, Machine};
use crate::lane::Frames;
use crate::mailbox::{Frame, Words};
use crate::wire::FrameState;

impl<T: Copy + Eq> Machine<T> {
    /// In a one-frame child SHUTDOWN waits for the running task, which ends normally (L-33).
    pub(super) fn finishes_first(&self) -> bool {
        self.spec.frames == Frames::One && self.is_running()
    }

    /// Finalises the launched run, abandons prepared ones, gives every occupied frame a terminal state with a message, and
    /// closes the device (L-31). After a violation or a loss the report holds the reason.
    #[cold]
    #[inline(never)]
    pub(super) fn close<W, R, B>(&mut self, leave: Leave, env: &mut Env<'_, W, R, B>)
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        let mut reason = Report::new();
        match leave {
            Leave::Stopped => reason.push_str("worker closed"),
            Leave::Protocol | Leave::Device => core::mem::swap(&mut reason, env.report),
        }
        for &slot in self.slots() {
            let progress = self.holds[slot.index()].map(|hold| hold.progress);
            let fate = match progress {
                None => "it was published but not begun",
                Some(Progress::Staged(Staged { token, .. })) => {
                    if let Some(token) = token {
                        let _ = env.runner.finalize(token, env.report);
                    }
                    "it was staged but not launched"
                }
                Some(Progress::Running { token, .. }) => {
                    let _ = env.runner.finalize(token, env.report);
                    "it was running and its result is dropped"
                }
                Some(Progress::Closing) => "it ended but its result could not be handed over",
            };
            if progress.is_none() && !is_published(Frame::task(slot).state(env.words)) {
                continue;
            }
            env.report.clear();
            let _ = match leave {
                Leave::Stopped => write!(env.report, "worker closed: {fate}"),
                Leave::Protocol | Leave::Device => write!(env.report, "the child leaves: {reason}; {fate}"),
            };
            self.publish_failed(slot, Failure::MESSAGE.code, env);
        }
        env.runner.shutdown();
    }
}

/// Whether a raw state says that a task waits to be taken in.
fn is_published(raw: i32) -> bool {
    matches!(FrameState::from_raw(raw), Some(FrameState::TaskReady | FrameState::PrepareReady))
}
