//! What both engine benches put on an engine, and the other side of it, which completes at once whatever is handed out.

use std::hint::black_box;

use laneway_core::engine::{
    Action, Config, Engine, Outcome, Range, RangeKind, Submission, Target, WorkerClass, WorkerSpec,
};
use laneway_core::ids::{EndpointIndex, RunId, WorkerId};
use laneway_core::model::TaskArgs;
use laneway_core::wire::{AddressSpace, ChipTensor, Digest, Dtype};

/// The one buffer: it exists by address only.
pub(crate) const BUFFER: u64 = 1 << 30;
const BUFFER_BYTES: u64 = 1 << 30;

pub(crate) const DIGEST: Digest = Digest([7; 32]);

pub(crate) fn worker(index: usize) -> WorkerId {
    WorkerId::new(index as i32).expect("not negative")
}

/// An engine of so many NEXT_LEVEL workers and one buffer.
pub(crate) fn engine_of(workers: usize, config: &Config) -> Engine {
    let spec = |index: usize| WorkerSpec {
        class: WorkerClass::NextLevel(worker(index)),
        endpoint: EndpointIndex(index as u16),
        staging: false,
    };
    let specs: Vec<_> = (0..workers).map(spec).collect();
    let mut engine = Engine::new(config, 2, &specs).expect("a valid config");
    engine.add_range(Range { base: BUFFER, bytes: BUFFER_BYTES, kind: RangeKind::Buffer }).expect("free");
    engine
}

/// A page of the buffer.
pub(crate) fn page(index: u64) -> ChipTensor {
    ChipTensor::contiguous(BUFFER + index * 4096, 4096, Dtype::F32, &[1024], AddressSpace::Host).expect("valid")
}

/// Of each four tensors two are read, one is updated and one is overwritten.
pub(crate) fn arguments(tensors: u64) -> TaskArgs {
    arguments_from(0, tensors)
}

/// The same over the pages of the buffer from `first` on.
pub(crate) fn arguments_from(first: u64, tensors: u64) -> TaskArgs {
    let mut args = TaskArgs::new();
    for index in 0..tensors {
        let tensor = page(first + index);
        match index % 4 {
            0 | 1 => args.input(tensor),
            2 => args.inout(tensor),
            _ => args.output_existing(tensor),
        };
    }
    args
}

/// One task for the worker with this index.
pub(crate) fn submission<'a>(index: usize, members: &'a [&'a TaskArgs]) -> Submission<'a> {
    Submission { target: Target::NextLevel(worker(index)), digest: &DIGEST, config: None, members, deadline: None }
}

/// Takes everything that is handed out, and completes it at once.
#[inline(always)]
pub(crate) fn serve(engine: &mut Engine) {
    while let Some(action) = engine.next_action() {
        let Action::Dispatch { ticket, .. } = action else { continue };
        black_box(engine.payload(ticket).map(|payload| payload.blob.as_ptr()));
        engine.accepted(ticket);
        engine.completed(ticket, Outcome::Success);
    }
    black_box(engine.take_signals());
}

/// Ends a run whose tasks have all ended.
#[inline(always)]
pub(crate) fn end(engine: &mut Engine, run: RunId) {
    engine.close_submission(run).expect("open");
    assert!(engine.is_terminal(run));
    engine.release(run).expect("known");
}
