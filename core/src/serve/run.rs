//! The run lane of a child: one launched run, at most one more prepared, each finalised exactly once.

use core::fmt::Write as _;

use super::hold::{Deed, Hold, Progress, Staged};
use super::leaf::{Failure, Launch, ParentBell, Poll, Runner};
use super::machine::{Env, Flow, Leave, Machine, task};
use crate::ids::PipelineSlot;
use crate::mailbox::{Frame, Words};
use crate::wire::DispatchIdentity;

impl<T: Copy + Eq> Machine<T> {
    /// Moves the run that owns the claim; without one, chooses it; then prepares the successor that waits.
    #[inline(always)]
    pub(super) fn drive<W, R, B>(&mut self, env: &mut Env<'_, W, R, B>) -> Flow
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        let mut worked = false;
        if self.claim.is_none() {
            self.claim = self.next_to_run();
        }
        if let Some(slot) = self.claim {
            worked = match self.holds[slot.index()] {
                Some(Hold { identity, progress: Progress::Staged(staged) }) => {
                    self.launch(slot, identity, staged, env)?
                }
                Some(Hold { identity, progress: Progress::Running { token, accepted } }) => {
                    self.poll(slot, identity, token, accepted, env)?
                }
                // The claim is given back with the frame, so this cannot be; and if it were, nothing would be lost.
                None | Some(Hold { progress: Progress::Closing, .. }) => {
                    self.claim = None;
                    false
                }
            };
        }
        Ok(self.prepare_successor(env)? | worked)
    }

    /// The eligible staged task with the smallest dispatch id, wherever it lies (L-10).
    #[inline]
    fn next_to_run(&mut self) -> Option<PipelineSlot> {
        let dispatch = |slot: PipelineSlot| self.holds[slot.index()].as_ref().and_then(Hold::eligible);
        let next = match (dispatch(PipelineSlot::Zero), dispatch(PipelineSlot::One)) {
            (None, None) => return None,
            (Some(_), None) => PipelineSlot::Zero,
            (None, Some(_)) => PipelineSlot::One,
            (Some(zero), Some(one)) if zero <= one => PipelineSlot::Zero,
            (Some(_), Some(_)) => PipelineSlot::One,
        };
        if let Some(Hold { progress: Progress::Staged(staged), .. }) = &self.holds[next.index()] {
            self.claim_is_diagnostic = staged.diagnostic;
        }
        Some(next)
    }

    #[inline(always)]
    fn launch<W, R, B>(
        &mut self,
        slot: PipelineSlot,
        identity: DispatchIdentity,
        staged: Staged<T>,
        env: &mut Env<'_, W, R, B>,
    ) -> Flow
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        let token = match staged.token {
            Some(token) => token,
            None => match self.prepare_to_launch(slot, identity, staged.diagnostic, env) {
                Ok(token) => token,
                Err(failure) => return self.refuse(slot, failure, env).map(|()| true),
            },
        };
        // From here on the token must be finalised, whoever does it.
        self.advance(slot, Progress::Staged(Staged { token: Some(token), ..staged }));
        self.recheck(slot, identity, env)?;
        env.report.clear();
        let ended = match env.runner.launch(token, &task(identity, &env.snapshots[slot.index()]), env.report) {
            Ok(Launch::Running) => {
                let accepted = self.forward_acceptance(slot, token, false, env);
                self.advance(slot, Progress::Running { token, accepted });
                self.publish(slot, Deed::Launch, env);
                return Ok(true);
            }
            Ok(Launch::Complete) => Ok(()),
            Err(failure) => Err(failure),
        };
        self.finish(slot, identity, token, ended, env)?;
        Ok(true)
    }

    /// Prepares the run that owns the claim. A prepared successor in the other frame that it cannot be prepared beside is
    /// abandoned, and prepared again later: a run never waits for its successor.
    #[inline(always)]
    fn prepare_to_launch<W, R, B>(
        &mut self,
        slot: PipelineSlot,
        identity: DispatchIdentity,
        diagnostic: bool,
        env: &mut Env<'_, W, R, B>,
    ) -> Result<T, Failure>
    where
        R: Runner<Token = T>,
    {
        if diagnostic {
            self.abandon_successor(slot, env);
        }
        if let Some(token) = self.prepare(slot, identity, env)? {
            return Ok(token);
        }
        if self.abandon_successor(slot, env)
            && let Some(token) = self.prepare(slot, identity, env)?
        {
            return Ok(token);
        }
        Err(Self::incompatible_alone(identity, env))
    }

    #[cold]
    fn incompatible_alone<W, R, B>(identity: DispatchIdentity, env: &mut Env<'_, W, R, B>) -> Failure {
        env.report.clear();
        let _ = write!(
            env.report,
            "the runtime calls {identity} incompatible with its prepared state although no other run is prepared"
        );
        Failure::MESSAGE
    }

    /// Finalises the prepared, unlaunched run in the other frame, if there is one.
    fn abandon_successor<W, R, B>(&mut self, slot: PipelineSlot, env: &mut Env<'_, W, R, B>) -> bool
    where
        R: Runner<Token = T>,
    {
        let Some(Hold { progress: Progress::Staged(successor), .. }) = &mut self.holds[1 - slot.index()] else {
            return false;
        };
        let Some(token) = successor.token.take() else { return false };
        env.report.clear();
        // An abandoned run has no result to lose.
        let _ = env.runner.finalize(token, env.report);
        true
    }

    #[inline(never)]
    fn poll<W, R, B>(
        &mut self,
        slot: PipelineSlot,
        identity: DispatchIdentity,
        token: T,
        accepted: bool,
        env: &mut Env<'_, W, R, B>,
    ) -> Flow
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        env.report.clear();
        let ended = match env.runner.poll(token, env.report) {
            Ok(Poll::NotReady) => {
                let now = self.forward_acceptance(slot, token, accepted, env);
                self.advance(slot, Progress::Running { token, accepted: now });
                return Ok(now != accepted);
            }
            Ok(Poll::Complete) => Ok(()),
            Err(failure) => Err(failure),
        };
        self.forward_acceptance(slot, token, accepted, env);
        self.finish(slot, identity, token, ended, env)?;
        Ok(true)
    }

    /// Stores the acceptance word once the device has accepted; never into a frame that changed hands (L-17).
    fn forward_acceptance<W, R, B>(
        &self,
        slot: PipelineSlot,
        token: T,
        already: bool,
        env: &mut Env<'_, W, R, B>,
    ) -> bool
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        if already || !env.runner.accepted(token) {
            return already;
        }
        Frame::task(slot).accept(env.words);
        env.bell.published();
        true
    }

    /// Finalises a run exactly once and publishes how it ended (L-15). The first failure is the one reported.
    #[inline(always)]
    fn finish<W, R, B>(
        &mut self,
        slot: PipelineSlot,
        identity: DispatchIdentity,
        token: T,
        ended: Result<(), Failure>,
        env: &mut Env<'_, W, R, B>,
    ) -> Result<(), Leave>
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        let result = match ended {
            Ok(()) => {
                env.report.clear();
                env.runner.finalize(token, env.report)
            }
            Err(failure) => Err(Self::finalize_failed(token, failure, env)),
        };
        // The token is dead: whatever happens next must not finalise it again.
        self.advance(slot, Progress::Closing);
        self.recheck(slot, identity, env)?;
        match result {
            Ok(()) => {
                self.hand_back(slot, Deed::Succeed, env);
                Ok(())
            }
            Err(failure) => self.refuse(slot, failure, env),
        }
    }

    /// Finalises a run that failed: what it failed with is in the report already, and stays there.
    #[cold]
    fn finalize_failed<W, R, B>(token: T, failure: Failure, env: &mut Env<'_, W, R, B>) -> Failure
    where
        R: Runner<Token = T>,
    {
        let leave = env.runner.finalize(token, &mut Default::default()).is_err_and(|second| second.leave);
        Failure { leave: failure.leave | leave, ..failure }
    }

    /// Prepares a validated successor once a predecessor owns the claim, with no further state change (L-13).
    fn prepare_successor<W, R, B>(&mut self, env: &mut Env<'_, W, R, B>) -> Flow
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        let Some(claim) = self.claim else { return Ok(false) };
        let slot = match claim {
            PipelineSlot::Zero => PipelineSlot::One,
            PipelineSlot::One => PipelineSlot::Zero,
        };
        let Some(Hold { identity, progress: Progress::Staged(staged) }) = self.holds[slot.index()] else {
            return Ok(false);
        };
        if staged.token.is_some() || staged.deferred || !self.may_prepare_beside(staged.diagnostic, env.runner) {
            return Ok(false);
        }
        match self.prepare(slot, identity, env) {
            // An incompatible one is not asked again beside the same predecessor.
            Ok(token) => {
                self.advance(slot, Progress::Staged(Staged { token, deferred: token.is_none(), ..staged }));
                Ok(true)
            }
            Err(failure) => self.refuse(slot, failure, env).map(|()| true),
        }
    }
}
