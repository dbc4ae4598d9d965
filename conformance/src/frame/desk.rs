//! The parent's half, played by the case.

use std::time::{Duration, Instant};

use laneway_core::chip::DeviceRuntime;
use laneway_core::ids::PipelineSlot;
use laneway_core::lane::Frames;
use laneway_core::mailbox::{Frame, Peer, Publication, Stamp, Text, Words, control, extension, publish, read_message};
use laneway_core::serve::{ChildSpec, Served, publish_ready};
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::{
    CallConfig, ChipTensor, Digest, FrameState, PipelineSlotLease, Protocol, Trailer, args, frame as at,
};
use laneway_sim::Kernel;

use super::{ChildHalf, Deed, Tape};
use crate::backend::Backend;
use crate::case::Needs;
use crate::expect::{Must, Verdict, Violation, equal, holds};

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How long the task takes beside which a case does things. On a busy machine the time may be up before the case is through;
/// then it is tried again with more.
const WHILES: [Duration; 3] = [Duration::from_millis(4), Duration::from_millis(40), Duration::from_millis(300)];

/// A task frame to be: everything in it can be changed before it is published.
#[derive(Clone)]
pub(crate) struct Sheet {
    pub(crate) trailer: Trailer,
    pub(crate) lease: PipelineSlotLease,
    pub(crate) digest: Digest,
    pub(crate) config: CallConfig,
    pub(crate) blob: Vec<u8>,
}

/// How a task or a control ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ending {
    pub(crate) state: i32,
    pub(crate) error: i32,
    pub(crate) message: String,
    pub(crate) accepted: i32,
}

/// Whether the task beside which a case did things was still at work when the case ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Time {
    WasLeft,
    WasUp,
}

/// The parent of one child half.
pub(crate) struct Desk<'a> {
    tape: &'a Tape,
    child: Box<dyn ChildHalf + 'a>,
    /// Everything that the child wrote so far.
    pub(crate) deeds: Vec<Deed>,
    pub(crate) depth: usize,
    dispatches: u64,
    exit: Option<u8>,
    /// How long the task of [`occupy`](Self::occupy) takes, and when it is over.
    a_while: Duration,
    over: Option<Instant>,
}

/// The digest under which a kernel is installed.
pub(crate) const fn digest(kernel: Kernel) -> Digest {
    Digest([kernel as u8 + 1; 32])
}

pub(crate) const FIRST: Frame = Frame::task(PipelineSlot::Zero);
pub(crate) const SECOND: Frame = Frame::task(PipelineSlot::One);

impl<'a> Desk<'a> {
    /// Runs a case over devices that are behind a child half.
    pub(crate) fn serve(
        backend: &mut dyn Backend,
        first: Box<dyn DeviceRuntime>,
        frames: Frames,
        needs: &Needs,
        run: fn(&mut Desk<'_>) -> Verdict,
    ) -> Verdict {
        let mut device = first;
        for (number, a_while) in WHILES.into_iter().enumerate() {
            match Self::once(backend, device.as_mut(), frames, needs, run, a_while) {
                (Err(_), Time::WasUp) if number + 1 < WHILES.len() => {
                    // Closed first: a backend may have one device that is open once.
                    drop(device);
                    device = backend.open(&needs.setup).must("another device")?;
                }
                (verdict, _) => return verdict,
            }
        }
        Ok(())
    }

    fn once(
        backend: &dyn Backend,
        device: &mut dyn DeviceRuntime,
        frames: Frames,
        needs: &Needs,
        run: fn(&mut Desk<'_>) -> Verdict,
        a_while: Duration,
    ) -> (Verdict, Time) {
        let mut time = Time::WasLeft;
        let verdict = Self::over_a_tape(backend, device, frames, needs, |desk| {
            desk.a_while = a_while;
            let verdict = run(desk);
            if desk.over.is_some_and(|over| Instant::now() >= over) {
                time = Time::WasUp;
            }
            verdict
        });
        (verdict, time)
    }

    fn over_a_tape(
        backend: &dyn Backend,
        device: &mut dyn DeviceRuntime,
        frames: Frames,
        needs: &Needs,
        run: impl FnOnce(&mut Desk<'_>) -> Verdict,
    ) -> Verdict {
        let tape = Tape::new();
        if !needs.stranger {
            extension::show_parent(tape.parent());
        }
        let depth = device.contract().depth();
        let spec = ChildSpec { frames, protocol: Protocol::ChipTensors, depth: depth as u32 };
        let mut callables = Vec::new();
        for kernel in needs.kernels {
            callables.push((digest(*kernel), backend.callables().kernel(*kernel).must("a callable")?));
        }
        let child = backend.child(&tape, device, &callables, spec).must("the child half")?;
        publish_ready(&tape, spec.depth);
        let (deeds, a_while) = (Vec::new(), WHILES[0]);
        let mut desk = Desk { tape: &tape, child, deeds, depth, dispatches: 0, exit: None, a_while, over: None };
        desk.started()?;
        run(&mut desk)
    }

    /// The child said that it is ready, and the parent took note.
    fn started(&mut self) -> Verdict {
        equal("the base frame after the start", Frame::BASE.state(self.words()), FrameState::InitReady.raw())?;
        let published = Frame::BASE.stamp(self.words()).lease.slot_id;
        equal("the depth that the child published", published as usize, self.depth)?;
        Frame::BASE.publish_state(self.words(), FrameState::Idle);
        drop(self.tape.take());
        Ok(())
    }

    /// The mailbox, as the parent has it.
    pub(crate) const fn words(&self) -> &'a laneway_core::mailbox::ArrayWords {
        self.tape.parent()
    }

    /// The next dispatch: a kernel over these arguments under the first lease of a slot.
    pub(crate) fn sheet(
        &mut self,
        slot: PipelineSlot,
        kernel: Kernel,
        tensors: &[ChipTensor],
        scalars: &[u64],
    ) -> Result<Sheet, Violation> {
        self.dispatches += 1;
        let mut blob = vec![0; args::encoded_len(tensors.len(), scalars.len(), Protocol::ChipTensors).must("a list")?];
        args::encode(tensors, scalars, &mut blob).must("an argument list")?;
        let slot = slot.index() as u32;
        let trailer = Trailer { protocol: 2, run: 1, slot: slot.into(), generation: 1, dispatch: self.dispatches };
        let lease = PipelineSlotLease { slot_id: slot, reserved: 0, generation: 1 };
        Ok(Sheet { trailer, lease, digest: digest(kernel), config: CallConfig::ZERO, blob })
    }

    /// Writes a task frame and hands it over.
    pub(crate) fn publish(&self, frame: Frame, sheet: &Sheet, state: FrameState) {
        let stamp = Stamp { trailer: sheet.trailer, lease: sheet.lease };
        let task = Publication { stamp, digest: &sheet.digest, config: &sheet.config, blob: &sheet.blob };
        publish(self.words(), frame, &task, Peer::Stranger, state);
    }

    /// One round of the child.
    pub(crate) fn step(&mut self) -> Served {
        let served = self.child.step();
        self.deeds.extend(self.tape.take());
        if let Served::Exit(code) = served {
            self.exit = Some(code);
        }
        served
    }

    /// Publishes a task that executes for a while.
    pub(crate) fn occupy(&mut self, frame: Frame, config: &CallConfig) -> Verdict {
        let mut sheet = self.sheet(PipelineSlot::Zero, Kernel::Wait, &[], &[self.a_while.as_nanos() as u64])?;
        sheet.config = *config;
        self.over = Some(Instant::now() + self.a_while);
        self.publish(frame, &sheet, FrameState::TaskReady);
        self.until("the launch", |desk| {
            [FrameState::TaskLaunched.raw(), FrameState::TaskDone.raw()].contains(&frame.state(desk.words()))
                || frame.accepted(desk.words()) == 1
        })
    }

    /// Some rounds, which must not change what `what` says about the frame.
    pub(crate) fn stays(&mut self, what: &str, frame: Frame, state: FrameState) -> Verdict {
        for _ in 0..20 {
            self.step();
            equal(what, frame.state(self.words()), state.raw())?;
        }
        Ok(())
    }

    /// Rounds until a condition holds.
    pub(crate) fn until(&mut self, what: &str, mut is_so: impl FnMut(&Self) -> bool) -> Verdict {
        let end = Instant::now() + LIMIT;
        while !is_so(self) {
            let state = |frame: Frame| frame.state(self.words());
            let states = [Frame::BASE, FIRST, SECOND].map(state);
            holds(what, self.exit.is_none() && Instant::now() < end, || {
                format!("never; states are {states:?}, the child's exit status is {:?}", self.exit)
            })?;
            self.step();
        }
        Ok(())
    }

    /// Rounds until a frame is in this state.
    pub(crate) fn reaches(&mut self, frame: Frame, state: FrameState) -> Verdict {
        self.until(&format!("{state:?}"), |desk| frame.state(desk.words()) == state.raw())
    }

    /// Rounds until a task has ended.
    pub(crate) fn ends(&mut self, frame: Frame) -> Result<Ending, Violation> {
        let terminal = [FrameState::TaskDone.raw(), FrameState::TaskFailed.raw()];
        self.until("a terminal state", |desk| terminal.contains(&frame.state(desk.words())))?;
        Ok(self.ending(frame))
    }

    /// A task that must succeed, from its publication to its end.
    pub(crate) fn succeeds(&mut self, frame: Frame, sheet: &Sheet) -> Verdict {
        self.publish(frame, sheet, FrameState::TaskReady);
        let ending = self.ends(frame)?;
        equal("state and error of a task that succeeds", (ending.state, ending.error), (FrameState::TaskDone.raw(), 0))
    }

    /// What stands in a frame.
    pub(crate) fn ending(&self, frame: Frame) -> Ending {
        let mut text = Text::<256>::new();
        read_message(self.words(), frame, &mut text);
        Ending {
            state: frame.state(self.words()),
            error: self.words().load(frame.at(at::ERROR)),
            message: text.as_str().to_owned(),
            accepted: frame.accepted(self.words()),
        }
    }

    /// Publishes a control.
    pub(crate) fn request(&self, request: &ControlRequest) {
        control::publish_request(self.words(), request);
    }

    /// Takes the answer of a control, once it is there, and frees the base frame.
    pub(crate) fn answer(&mut self) -> Result<(Ending, u64), Violation> {
        self.reaches(Frame::BASE, FrameState::ControlDone)?;
        let answer = (self.ending(Frame::BASE), control::read_result(self.words()));
        Frame::BASE.publish_state(self.words(), FrameState::Idle);
        Ok(answer)
    }

    /// A control that must succeed; its result.
    pub(crate) fn controls(&mut self, request: &ControlRequest) -> Result<u64, Violation> {
        self.request(request);
        let (ending, result) = self.answer()?;
        equal(format_args!("the error of {request:?} ({})", ending.message), ending.error, 0)?;
        Ok(result)
    }

    /// Rounds until the child leaves; its exit status.
    pub(crate) fn leaves(&mut self) -> Result<u8, Violation> {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(code) = self.exit {
                return Ok(code);
            }
            holds("the child leaves", Instant::now() < end, || "it goes on")?;
            self.step();
        }
    }

    /// The states that the child wrote into a frame, in order.
    pub(crate) fn states(&self, frame: Frame) -> Vec<u64> {
        self.written(frame, at::STATE)
    }

    /// Everything that the child wrote into one word of a frame, in order.
    pub(crate) fn written(&self, frame: Frame, field: usize) -> Vec<u64> {
        self.deeds.iter().filter(|deed| deed.at == frame.at(field)).map(|deed| deed.value).collect()
    }

    /// When the child wrote a value into a word, counted in words written.
    pub(crate) fn when(&self, frame: Frame, field: usize, value: i32) -> Result<usize, Violation> {
        let wanted = Deed { at: frame.at(field), value: value.cast_unsigned().into() };
        self.deeds.iter().position(|deed| *deed == wanted).must(format_args!("a write of {value} to field {field}"))
    }
}

/// State words as numbers, for comparison with [`Desk::states`].
pub(crate) fn raw<const N: usize>(states: [FrameState; N]) -> [u64; N] {
    states.map(|state| state.raw().cast_unsigned().into())
}
