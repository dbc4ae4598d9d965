//! Taking a published frame in: validation in the order of L-5, native preparation beside a predecessor, activation.

use core::fmt::Write as _;

use super::hold::{Deed, Hold, Progress, Right, Staged};
use super::leaf::{Failure, ParentBell, PrepareError, Runner};
use super::machine::{Env, Leave, Machine, task};
use crate::ids::PipelineSlot;
use crate::lane::Frames;
use crate::mailbox::{Frame, Stamp, Words};
use crate::wire::{DispatchIdentity, Preparation, Protocol, WireError};

/// What is wrong with a published frame, worded for the parent's side.
enum Refusal {
    Wire(WireError),
    UnknownCallable,
}

impl From<WireError> for Refusal {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

impl<T: Copy + Eq> Machine<T> {
    /// Copies and judges a newly visible frame; what passes is staged, what does not is failed.
    #[inline(always)]
    pub(super) fn take_in<W, R, B>(
        &mut self,
        slot: PipelineSlot,
        right: Right,
        env: &mut Env<'_, W, R, B>,
    ) -> Result<(), Leave>
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        let frame = Frame::task(slot);
        let (protocol, snapshot) = (self.spec.protocol, &mut env.snapshots[slot.index()]);
        if let Err((stamp, error)) = snapshot.copy_identity(env.words, frame, protocol, || self.rule(slot)) {
            return self.refuse_frame(slot, stamp, error.into(), env);
        }
        if let Err(refusal) = copy(slot, protocol, env) {
            let stamp = Stamp::of(protocol, &env.snapshots[slot.index()].identity());
            return self.refuse_frame(slot, stamp, refusal, env);
        }
        let snapshot = &env.snapshots[slot.index()];
        let (identity, diagnostic) = (snapshot.identity(), snapshot.is_diagnostic());
        let staged = Staged { diagnostic, right, token: None, deferred: false };
        match self.spec.frames {
            Frames::One => {
                self.holds[slot.index()] = Some(Hold { identity, progress: Progress::Staged(staged) });
                Ok(())
            }
            Frames::Two => self.stage_frame(slot, identity, staged, env),
        }
    }

    /// Fails a frame that was not taken in.
    #[cold]
    fn refuse_frame<W: Words, R, B: ParentBell>(
        &mut self,
        slot: PipelineSlot,
        stamp: Stamp,
        refusal: Refusal,
        env: &mut Env<'_, W, R, B>,
    ) -> Result<(), Leave> {
        env.report.clear();
        let _ = match refusal {
            Refusal::Wire(error) => write!(env.report, "the child refused the frame: {error}; it carries {stamp}"),
            Refusal::UnknownCallable => write!(
                env.report,
                "callable {} is not registered in this child; register it before init, or before the task is submitted \
                 where the child takes new callables",
                env.snapshots[slot.index()].digest().short()
            ),
        };
        self.publish_failed(slot, Failure::MESSAGE.code, env);
        Ok(())
    }

    /// Publishes FRAME_STAGED. Behind a predecessor that owns the execution claim the run is natively prepared first, if
    /// that may be (L-12, L-13).
    fn stage_frame<W, R, B>(
        &mut self,
        slot: PipelineSlot,
        identity: DispatchIdentity,
        mut staged: Staged<T>,
        env: &mut Env<'_, W, R, B>,
    ) -> Result<(), Leave>
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        if self.may_prepare_beside(staged.diagnostic, env.runner) {
            match self.prepare(slot, identity, env) {
                Ok(token) => (staged.token, staged.deferred) = (token, token.is_none()),
                Err(failure) => return self.refuse(slot, failure, env),
            }
        }
        self.holds[slot.index()] = Some(Hold { identity, progress: Progress::Staged(staged) });
        self.recheck(slot, identity, env)?;
        let preparation = if staged.token.is_some() { Preparation::Prepared } else { Preparation::Validated };
        Frame::task(slot).set_preparation(env.words, preparation);
        self.publish(slot, Deed::Stage, env);
        Ok(())
    }

    /// Whether a run may be prepared beside the one that owns the claim: the runtime can, and neither is diagnostic (L-12).
    pub(super) fn may_prepare_beside<R: Runner<Token = T>>(&self, diagnostic: bool, runner: &R) -> bool {
        self.claim.is_some() && !diagnostic && !self.claim_is_diagnostic && runner.prepares_concurrently()
    }

    /// Prepares a staged run; `None` if it must be deferred (L-16).
    #[inline]
    pub(super) fn prepare<W, R, B>(
        &mut self,
        slot: PipelineSlot,
        identity: DispatchIdentity,
        env: &mut Env<'_, W, R, B>,
    ) -> Result<Option<T>, Failure>
    where
        R: Runner<Token = T>,
    {
        env.report.clear();
        match env.runner.prepare(&task(identity, &env.snapshots[slot.index()]), env.report) {
            Ok(token) => Ok(Some(token)),
            Err(PrepareError::Incompatible) => Ok(None),
            Err(PrepareError::Failed(failure)) => Err(failure),
        }
    }

    /// ACTIVATE was seen on a waiting successor (L-11, L-38).
    pub(super) fn activate<W, R, B>(&mut self, slot: PipelineSlot, env: &mut Env<'_, W, R, B>) -> Result<(), Leave>
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        let Some(Hold { identity, progress: Progress::Staged(staged) }) = self.holds[slot.index()] else {
            return Ok(());
        };
        if Frame::task(slot).stamp(env.words).is_withdrawn() {
            if let Some(token) = staged.token {
                env.report.clear();
                // An abandoned run has no result to lose; the answer is the withdrawal either way.
                let _ = env.runner.finalize(token, env.report);
            }
            env.report.clear();
            let _ = write!(env.report, "{identity} was withdrawn before it was launched");
            self.publish_failed(slot, Failure::MESSAGE.code, env);
            return Ok(());
        }
        self.recheck(slot, identity, env)?;
        self.advance(slot, Progress::Staged(Staged { right: Right::Activated, ..staged }));
        Ok(())
    }

    /// Fails a frame whose text is in the report, and leaves if the failure says so.
    #[cold]
    pub(super) fn refuse<W: Words, R, B: ParentBell>(
        &mut self,
        slot: PipelineSlot,
        failure: Failure,
        env: &mut Env<'_, W, R, B>,
    ) -> Result<(), Leave> {
        self.publish_failed(slot, failure.code, env);
        if failure.leave { Err(Leave::Device) } else { Ok(()) }
    }
}

/// The rest of L-5: digest known, callable prepared; config; argument blob.
#[inline(always)]
fn copy<W: Words, R: Runner, B>(
    slot: PipelineSlot,
    protocol: Protocol,
    env: &mut Env<'_, W, R, B>,
) -> Result<(), Refusal> {
    let frame = Frame::task(slot);
    let snapshot = &mut env.snapshots[slot.index()];
    snapshot.copy_digest(env.words, frame);
    if !env.runner.knows(snapshot.digest()) {
        return Err(Refusal::UnknownCallable);
    }
    snapshot.copy_config(env.words, frame)?;
    snapshot.copy_args(env.words, frame, protocol)?;
    Ok(())
}
