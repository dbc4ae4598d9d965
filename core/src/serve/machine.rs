//! The child half of one mailbox.

use core::fmt::Write as _;

use super::control::Pending;
use super::hold::{Deed, Hold, News, Progress, Right, Stage, news};
use super::leaf::{ParentBell, Report, Runner, Task};
use crate::ids::PipelineSlot;
use crate::lane::Frames;
use crate::mailbox::{Frame, Peer, Snapshot, Stamp, Words, write_failure};
use crate::wire::frame as at;
use crate::wire::{DispatchIdentity, FrameState, Protocol, SlotRule};

/// What a child is told at start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ChildSpec {
    /// How many task frames it serves (W-1).
    pub frames: Frames,
    /// The one version of the argument blob that it serves: protocol 2 or 3.
    pub protocol: Protocol,
    /// The pipeline depth that a chip child published. A one-frame child takes slots below it; one that publishes none
    /// takes both slots (L-34).
    pub depth: u32,
}

/// Why a child leaves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Leave {
    /// The parent asked for it.
    Stopped,
    /// The parent broke the protocol, or the frame changed under the child (L-1).
    Protocol,
    /// What the child drives is in an unknown state (C-9).
    Device,
}

impl Leave {
    /// The exit status of the child's process.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Stopped => 0,
            Self::Protocol => crate::lane::EXIT_PROTOCOL,
            Self::Device => crate::lane::EXIT_DEVICE,
        }
    }
}

/// What one step of a child came to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Served {
    /// Something was done; there may be more.
    Worked,
    /// A run is on the device and not complete: the device must be looked at again, no word will tell.
    Running,
    /// Nothing to do until the parent publishes something.
    Idle,
    /// Everything is given back; the process must leave with this status.
    Exit(u8),
}

/// Private memory of a child: a copy of each task frame, and the text of a failure. Lent to every step of its machine.
#[derive(Clone, Debug)]
pub struct Memory {
    snapshots: [Snapshot; 2],
    report: Report,
}

impl Memory {
    /// Empty memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { snapshots: [Snapshot::new(), Snapshot::new()], report: Report::new() }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

/// Everything around the machine that a step touches.
pub(super) struct Env<'a, W, R, B> {
    pub(super) words: &'a W,
    pub(super) runner: &'a mut R,
    pub(super) snapshots: &'a mut [Snapshot; 2],
    pub(super) report: &'a mut Report,
    pub(super) bell: &'a mut B,
}

/// What was served last: neither tasks nor controls starve the other (L-34).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Last {
    Control,
    Task,
}

/// The state of a child half, without the memory and the runner that it works on. `T` names a prepared run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Machine<T> {
    pub(super) spec: ChildSpec,
    pub(super) parent: Peer,
    pub(super) holds: [Option<Hold<T>>; 2],
    /// Which frame owns the execution claim: chosen, not yet finalised.
    pub(super) claim: Option<PipelineSlot>,
    /// Whether the config of that frame is diagnostic; nothing is prepared beside it then (L-12).
    pub(super) claim_is_diagnostic: bool,
    pub(super) last: Last,
    leaving: Option<Leave>,
    /// The exit status was returned.
    gone: bool,
}

/// A step that found nothing may go on to the next thing; one that worked, or must leave, ends.
pub(super) type Flow = Result<bool, Leave>;

impl<T: Copy + Eq> Machine<T> {
    /// A child that has published INIT_READY.
    #[must_use]
    pub const fn new(spec: ChildSpec, parent: Peer) -> Self {
        Self {
            spec,
            parent,
            holds: [None; 2],
            claim: None,
            claim_is_diagnostic: false,
            last: Last::Control,
            leaving: None,
            gone: false,
        }
    }

    /// The parent is gone: the next step leaves in order, although nobody asked through the mailbox (L-32).
    pub fn orphaned(&mut self) {
        self.leaving.get_or_insert(Leave::Stopped);
    }

    /// The pipeline slots whose task frames this child serves.
    pub(super) fn slots(&self) -> &'static [PipelineSlot] {
        &PipelineSlot::ALL[..self.spec.frames.count()]
    }

    /// One bounded round, in the order of L-34: shutdown; a control if a task was served last; tasks; a control.
    pub fn step<W, R, B>(&mut self, words: &W, runner: &mut R, memory: &mut Memory, bell: &mut B) -> Served
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        let Memory { snapshots, report } = memory;
        let env = &mut Env { words, runner, snapshots, report, bell };
        let base = Frame::BASE.state(env.words);
        let leave = match (self.leaving, shutdown_requested(base, env.words)) {
            (Some(leave), _) => leave,
            (None, true) if self.finishes_first() => match self.drive(env) {
                Ok(worked) => return if worked { Served::Worked } else { Served::Running },
                Err(leave) => leave,
            },
            (None, true) => Leave::Stopped,
            (None, false) => match self.attend(base, env) {
                Ok(true) => return Served::Worked,
                Ok(false) if self.is_running() => return Served::Running,
                Ok(false) => return Served::Idle,
                Err(leave) => leave,
            },
        };
        self.leaving = Some(leave);
        if !self.gone {
            self.close(leave, env);
            self.gone = true;
        }
        Served::Exit(leave.exit_code())
    }

    #[inline]
    fn attend<W, R, B>(&mut self, base: i32, env: &mut Env<'_, W, R, B>) -> Flow
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        let Some(pending) = Pending::of(base) else { return Err(Self::base_has_no_place(base, env)) };
        if self.last == Last::Task && self.serve_control(pending, env)? {
            return Ok(true);
        }
        if self.look(env)? | self.drive(env)? {
            return Ok(true);
        }
        self.serve_control(pending, env)
    }

    #[cold]
    fn base_has_no_place<W, R, B>(base: i32, env: &mut Env<'_, W, R, B>) -> Leave {
        env.report.clear();
        let _ = write!(env.report, "the parent stored state {base} into the base frame");
        Leave::Protocol
    }

    /// Takes in what the parent published. Every newly visible frame is validated before one is chosen to run, and the
    /// second look sees what was published before anything the first one saw (L-10).
    #[inline]
    fn look<W, R, B>(&mut self, env: &mut Env<'_, W, R, B>) -> Flow
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        match self.spec.frames {
            Frames::One => self.look_at(PipelineSlot::Zero, env),
            Frames::Two => Ok(self.look_at_both(env)? && self.look_at_both(env).map(|_| true)?),
        }
    }

    #[inline(never)]
    fn look_at_both<W, R, B>(&mut self, env: &mut Env<'_, W, R, B>) -> Flow
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        let mut found = false;
        for slot in PipelineSlot::ALL {
            found |= self.look_at(slot, env)?;
        }
        Ok(found)
    }

    #[inline(always)]
    fn look_at<W, R, B>(&mut self, slot: PipelineSlot, env: &mut Env<'_, W, R, B>) -> Flow
    where
        W: Words,
        R: Runner<Token = T>,
        B: ParentBell,
    {
        let frame = Frame::task(slot);
        let raw = frame.state(env.words);
        let stage = self.stage(slot);
        let meaning = FrameState::from_raw(raw).and_then(|state| news(self.spec.frames, stage, state));
        let right = match meaning {
            Some(News::None) => return Ok(false),
            Some(News::Task) => Right::Active,
            Some(News::Successor) => Right::Waiting,
            Some(News::Activation) => return self.activate(slot, env).map(|()| true),
            None => return Err(Self::state_has_no_place(slot, raw, stage, env)),
        };
        self.take_in(slot, right, env).map(|()| true)
    }

    #[cold]
    fn state_has_no_place<W, R, B>(slot: PipelineSlot, raw: i32, stage: Stage, env: &mut Env<'_, W, R, B>) -> Leave {
        env.report.clear();
        let frame = slot.index();
        let _ = write!(
            env.report,
            "the parent stored state {raw} into task frame {frame}, which to the child is {stage:?}"
        );
        Leave::Protocol
    }

    /// Where it stands with a task frame.
    #[inline]
    fn stage(&self, slot: PipelineSlot) -> Stage {
        Stage::of(self.holds[slot.index()].as_ref())
    }

    /// Takes a task that is held on.
    #[inline]
    pub(super) fn advance(&mut self, slot: PipelineSlot, progress: Progress<T>) {
        if let Some(hold) = &mut self.holds[slot.index()] {
            hold.progress = progress;
        }
    }

    /// Whether there is something to do that the parent published: the look between announcing sleep and sleeping. A run on
    /// the device does not count, nor does a stop that waits for one: no word tells when it ends.
    pub fn has_work<W: Words>(&self, words: &W) -> bool {
        if self.leaving.is_some() {
            return true;
        }
        if shutdown_requested(Frame::BASE.state(words), words) {
            return !self.finishes_first();
        }
        let frames_have = self.slots().iter().any(|slot| {
            let stage = self.stage(*slot);
            FrameState::from_raw(Frame::task(*slot).state(words)).and_then(|state| news(self.spec.frames, stage, state))
                != Some(News::None)
        });
        frames_have || self.control_is_due(words)
    }

    /// Whether the runner must be looked at.
    pub(super) fn is_running(&self) -> bool {
        self.holds.iter().any(|hold| matches!(hold, Some(Hold { progress: Progress::Running { .. }, .. })))
    }

    /// Which pipeline slots the frame of `slot` may carry.
    #[inline]
    pub(super) fn rule(&self, slot: PipelineSlot) -> SlotRule {
        match self.spec.frames {
            Frames::Two => SlotRule::Exactly(slot),
            Frames::One => SlotRule::Below(if self.spec.depth == 0 { 2 } else { self.spec.depth.into() }),
        }
    }

    /// Publishes a failure whose text is in the report. The frame is the parent's from then on.
    #[cold]
    pub(super) fn publish_failed<W: Words, R, B: ParentBell>(
        &mut self,
        slot: PipelineSlot,
        code: i32,
        env: &mut Env<'_, W, R, B>,
    ) {
        let frame = Frame::task(slot);
        write_failure(env.words, frame, code, env.report.as_str(), self.parent);
        self.hand_back(slot, Deed::Fail, env);
    }

    /// Publishes a terminal state. The frame is the parent's from then on.
    #[inline(always)]
    pub(super) fn hand_back<W: Words, R, B: ParentBell>(
        &mut self,
        slot: PipelineSlot,
        end: Deed,
        env: &mut Env<'_, W, R, B>,
    ) {
        let stage = self.stage(slot);
        debug_assert_eq!(end.leads_to(stage), Some(Stage::Empty), "{end:?} of a task that is {stage:?}");
        self.holds[slot.index()] = None;
        if self.claim == Some(slot) {
            self.claim = None;
        }
        self.last = Last::Task;
        self.publish(slot, end, env);
    }

    /// Publishes the state word that belongs to what was done, if there is one.
    #[inline]
    pub(super) fn publish<W: Words, R, B: ParentBell>(
        &self,
        slot: PipelineSlot,
        deed: Deed,
        env: &mut Env<'_, W, R, B>,
    ) {
        if let Some(state) = deed.state(self.spec.frames) {
            Frame::task(slot).publish_state(env.words, state);
            env.bell.published();
        }
    }

    /// Compares the frame with what was validated (L-1). If it changed, the report names both identities.
    #[inline(always)]
    pub(super) fn recheck<W: Words, R, B>(
        &self,
        slot: PipelineSlot,
        identity: DispatchIdentity,
        env: &mut Env<'_, W, R, B>,
    ) -> Result<(), Leave> {
        let stamp = Stamp::of(self.spec.protocol, &identity);
        if Frame::task(slot).carries(env.words, &stamp) {
            return Ok(());
        }
        Err(Self::identity_changed(slot, stamp, env))
    }

    #[cold]
    fn identity_changed<W: Words, R, B>(slot: PipelineSlot, stamp: Stamp, env: &mut Env<'_, W, R, B>) -> Leave {
        let found = Frame::task(slot).stamp(env.words);
        env.report.clear();
        let frame = slot.index();
        let _ = write!(
            env.report,
            "the identity in task frame {frame} changed while the child held it: it validated {stamp} and finds {found}"
        );
        Leave::Protocol
    }
}

/// The task of a snapshot.
#[inline]
pub(super) fn task(identity: DispatchIdentity, snapshot: &Snapshot) -> Task<'_> {
    Task {
        identity,
        digest: snapshot.digest(),
        config: snapshot.config(),
        args: snapshot.args(),
        described: snapshot.described(),
    }
}

/// Both signals of L-30: the sticky word, and the state that an old parent may have stored alone.
#[inline]
fn shutdown_requested<W: Words>(base: i32, words: &W) -> bool {
    base == FrameState::Shutdown.raw() || words.load(Frame::BASE.at(at::SHUTDOWN)) != 0
}
