//! The run lane of a child: one launched run, at most one more prepared, each finalised exactly once.

use core::fmt::Write as _;

use super::hold::{Deed, Hold, Staged};
use super::leaf::{Failure, Launch, ParentBell, Poll, Runner};
use super::machine::{Env, Flow, Leave, Machine, task};
use crate::ids::PipelineSlot;
use crate::mailbox::{Frame, Stamp, Words};

impl<T: Copy + Eq> Machine<T> {
    /// Moves the run that owns the claim; without one, chooses it; then prepares the successor that waits.
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
                Hold::Staged(staged) => self.launch(slot, staged, env)?,
                Hold::Running { stamp, token, accepted } => self.poll(slot, stamp, token, accepted, env)?,
                // The claim is given back with the frame, so this cannot be; and if it were, nothing would be lost.
                Hold::Empty | Hold::Closing { .. } => {
                    self.claim = None;
                    false
                }
            };
        }
        Ok(self.prepare_successor(env)? | worked)
    }

    /// The eligible staged task with the smallest dispatch id, wherever it lies (L-10).
    fn next_to_run(&mut self) -> Option<PipelineSlot> {
        let next = PipelineSlot::ALL
            .into_iter()
            .filter_map(|slot| self.holds[slot.index()].eligible().map(|dispatch| (dispatch, slot)))
            .min_by_key(|(dispatch, _)| *dispatch)
            .map(|(_, slot)| slot)?;
        if let Hold::Staged(staged) = &self.holds[next.index()] {
            self.claim_is_diagnostic = staged.diagnostic;
        }
        Some(next)
    }

    fn launch<W, R, B>(&mut self, slot: PipelineSlot, staged: Staged<T>, env: &mut Env<'_, W, R, B>) -> Flow
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        let token = match staged.token {
            Some(token) => token,
            None => match self.prepare_to_launch(slot, &staged, env) {
                Ok(token) => token,
                Err(failure) => return self.refuse(slot, failure, env).map(|()| true),
            },
        };
        // From here on the token must be finalised, whoever does it.
        if let Hold::Staged(staged) = &mut self.holds[slot.index()] {
            staged.token = Some(token);
        }
        self.recheck(slot, &staged.stamp, env)?;
        env.report.clear();
        match env.runner.launch(token, &task(&staged, &env.snapshots[slot.index()]), env.report) {
            Ok(Launch::Complete) => {
                self.finish(slot, staged.stamp, token, Ok(()), env)?;
            }
            Ok(Launch::Running) => {
                let accepted = self.forward_acceptance(slot, token, false, env);
                self.holds[slot.index()] = Hold::Running { stamp: staged.stamp, token, accepted };
                self.publish(slot, Deed::Launch, env);
            }
            Err(failure) => self.finish(slot, staged.stamp, token, Err(failure), env)?,
        }
        Ok(true)
    }

    /// Prepares the run that owns the claim. A prepared successor in the other frame that it cannot be prepared beside is
    /// abandoned, and prepared again later: a run never waits for its successor.
    fn prepare_to_launch<W, R, B>(
        &mut self,
        slot: PipelineSlot,
        staged: &Staged<T>,
        env: &mut Env<'_, W, R, B>,
    ) -> Result<T, Failure>
    where
        R: Runner<Token = T>,
    {
        if staged.diagnostic {
            self.abandon_successor(slot, env);
        }
        if let Some(token) = self.prepare(slot, staged, env)? {
            return Ok(token);
        }
        if self.abandon_successor(slot, env)
            && let Some(token) = self.prepare(slot, staged, env)?
        {
            return Ok(token);
        }
        env.report.clear();
        let _ = write!(
            env.report,
            "the runtime calls {} incompatible with its prepared state although no other run is prepared",
            staged.identity
        );
        Err(Failure::MESSAGE)
    }

    /// Finalises the prepared, unlaunched run in the other frame, if there is one.
    fn abandon_successor<W, R, B>(&mut self, slot: PipelineSlot, env: &mut Env<'_, W, R, B>) -> bool
    where
        R: Runner<Token = T>,
    {
        let Hold::Staged(successor) = &mut self.holds[1 - slot.index()] else { return false };
        let Some(token) = successor.token.take() else { return false };
        env.report.clear();
        // An abandoned run has no result to lose.
        let _ = env.runner.finalize(token, env.report);
        true
    }

    fn poll<W, R, B>(
        &mut self,
        slot: PipelineSlot,
        stamp: Stamp,
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
                self.holds[slot.index()] = Hold::Running { stamp, token, accepted: now };
                return Ok(now != accepted);
            }
            Ok(Poll::Complete) => Ok(()),
            Err(failure) => Err(failure),
        };
        self.forward_acceptance(slot, token, accepted, env);
        self.finish(slot, stamp, token, ended, env)?;
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
    fn finish<W, R, B>(
        &mut self,
        slot: PipelineSlot,
        stamp: Stamp,
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
            Err(failure) => {
                // Its text is already in the report, and stays the message.
                let leave = env.runner.finalize(token, &mut Default::default()).is_err_and(|second| second.leave);
                Err(Failure { leave: failure.leave | leave, ..failure })
            }
        };
        // The token is dead: whatever happens next must not finalise it again.
        self.holds[slot.index()] = Hold::Closing { stamp };
        match result {
            Ok(()) => {
                self.recheck(slot, &stamp, env)?;
                self.hand_back(slot, Deed::Succeed, env);
                Ok(())
            }
            Err(failure) => {
                if !Frame::task(slot).carries(env.words, &stamp) {
                    return self.recheck(slot, &stamp, env);
                }
                self.refuse(slot, failure, env)
            }
        }
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
        let Hold::Staged(staged @ Staged { token: None, deferred: false, .. }) = self.holds[slot.index()] else {
            return Ok(false);
        };
        if !self.may_prepare_beside(staged.diagnostic, env.runner) {
            return Ok(false);
        }
        match self.prepare(slot, &staged, env) {
            // An incompatible one is not asked again beside the same predecessor.
            Ok(token) => {
                self.holds[slot.index()] = Hold::Staged(Staged { token, deferred: token.is_none(), ..staged });
                Ok(true)
            }
            Err(failure) => self.refuse(slot, failure, env).map(|()| true),
        }
    }
}
