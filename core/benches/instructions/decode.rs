//! Decoding of what another process wrote.

use std::hint::black_box;
use std::sync::LazyLock;

use laneway_core::ids::{DispatchId, Generation, PipelineSlot, RunId};
use laneway_core::wire::args;
use laneway_core::wire::frame::TaskFrame;
use laneway_core::wire::*;

use super::Case;

pub(crate) const CASES: &[Case] = &[
    Case { name: "decode a frame without arguments", times: 1, run: || decode(&INPUT.empty) },
    Case { name: "decode a frame of 1 tensor", times: 1, run: || decode(&INPUT.one) },
    Case { name: "decode a frame of 4 tensors", times: 1, run: || decode(&INPUT.four) },
    Case { name: "decode a frame of 4 tensors and 8 scalars", times: 1, run: || decode(&INPUT.scalars) },
    Case { name: "decode a frame of 256 tensors", times: 1, run: || decode(&INPUT.full) },
    Case { name: "decode a frame of 4 tensors, protocol 3", times: 1, run: || decode_v3(&INPUT.described) },
    Case { name: "judge the identity of a frame", times: 1, run: || judge(&INPUT.four) },
    Case { name: "judge an empty config", times: 1, run: || config(&INPUT.four.config) },
];

struct Input {
    empty: TaskFrame,
    one: TaskFrame,
    four: TaskFrame,
    scalars: TaskFrame,
    full: TaskFrame,
    described: TaskFrame,
}

static INPUT: LazyLock<Box<Input>> = LazyLock::new(|| Box::new(input()));

const RULE: SlotRule = SlotRule::Exactly(PipelineSlot::Zero);

#[inline(never)]
fn counted_decode(frame: &TaskFrame, served: Protocol) -> bool {
    frame.decode(served, RULE).is_ok()
}

#[inline(never)]
fn counted_judge(frame: &TaskFrame) -> bool {
    frame.trailer.judge(&frame.lease, Protocol::ChipTensors, RULE).is_ok()
}

#[inline(never)]
fn counted_config(config: &CallConfig) -> bool {
    config.validate().is_ok()
}

fn decode(frame: &TaskFrame) {
    assert!(counted_decode(black_box(frame), Protocol::ChipTensors));
}

fn decode_v3(frame: &TaskFrame) {
    assert!(counted_decode(black_box(frame), Protocol::Tensors));
}

fn judge(frame: &TaskFrame) {
    assert!(counted_judge(black_box(frame)));
}

fn config(config: &CallConfig) {
    assert!(counted_config(black_box(config)));
}

fn frame(protocol: Protocol) -> TaskFrame {
    let identity = DispatchIdentity {
        run: RunId::FIRST,
        slot: PipelineSlot::Zero,
        generation: Generation::FIRST,
        dispatch: DispatchId::FIRST,
    };
    TaskFrame { lease: identity.lease(), trailer: identity.trailer(protocol), ..TaskFrame::new() }
}

fn input() -> Input {
    let tensors: Vec<_> = (0..256u64)
        .map(|i| ChipTensor::contiguous(0x1000 + 8192 * i, 8192, Dtype::F32, &[32, 64], AddressSpace::Host))
        .collect::<Result<_, _>>()
        .expect("fits");
    let of = |count: usize, scalars: &[u64]| {
        let mut frame = frame(Protocol::ChipTensors);
        args::encode(&tensors[..count], scalars, &mut frame.args).expect("room");
        frame
    };
    let identity = BufferIdentity { owner: [1; 8], buffer_id: 1, generation: 1 };
    let range = BufferRange { space: AddressSpace::Host, access: Access::ReadWrite, nbytes: 8192, owner_path: 0 };
    let buffer = BufferDescriptor::at_address(Backend::ForkShm, identity, range, 0x1000).expect("legal");
    let tensor = Tensor::contiguous(buffer, 0, Dtype::F32, &[32, 64]).expect("fits");
    let mut described = frame(Protocol::Tensors);
    args::encode_described(&[tensor; 4], &[], &mut described.args).expect("room");
    Input {
        empty: of(0, &[]),
        one: of(1, &[]),
        four: of(4, &[]),
        scalars: of(4, &[7; 8]),
        full: of(256, &[]),
        described,
    }
}
