//! Task frames and the structures on them.

use laneway_core::ids::{DispatchId, Generation, PipelineSlot, RunId};
use laneway_core::wire::args;
use laneway_core::wire::frame::{FrameArgs, TaskFrame};
use laneway_core::wire::*;
use zerocopy::{FromBytes, IntoBytes};

use crate::golden::golden;
use crate::values::{config, nth, nth_described, scalars};

#[test]
fn call_config() {
    let bytes = golden("call_config");
    let decoded = CallConfig::read_from_bytes(&bytes).expect("1,144 bytes");
    assert_eq!(decoded, config());
    decoded.validate().expect("legal");
    assert!(decoded.is_diagnostic());
    assert_eq!(decoded.output_prefix(), Ok(&b"/tmp/out/run-1"[..]));
    assert_eq!(config().as_bytes(), bytes);
}

#[test]
fn lease() {
    let bytes = golden("lease");
    let generation = Generation::new(0x0102_0304_0506_0708).expect("not 0");
    let decoded = PipelineSlotLease::read_from_bytes(&bytes).expect("16 bytes");
    assert_eq!(decoded.parse(), Ok((PipelineSlot::One, generation)));
    assert_eq!(PipelineSlotLease::new(PipelineSlot::One, generation).as_bytes(), bytes);
}

fn dispatch() -> DispatchIdentity {
    DispatchIdentity {
        run: RunId::new(11).expect("not 0"),
        slot: PipelineSlot::One,
        generation: Generation::new(5).expect("not 0"),
        dispatch: DispatchId::new(23).expect("not 0"),
    }
}

/// The element that a frame carries is decided by its protocol word; the other side refuses it naming both.
#[test]
fn task_frames_of_both_protocols() {
    let digest = Digest(std::array::from_fn(|i| 0x40 + i as u8));
    let rule = SlotRule::Exactly(PipelineSlot::One);
    let protocols = [
        (Protocol::ChipTensors, Protocol::Tensors, "task_frame_v2", FrameState::TaskReady),
        (Protocol::Tensors, Protocol::ChipTensors, "task_frame_v3", FrameState::PrepareReady),
    ];
    for (protocol, other, name, state) in protocols {
        let mut frame = TaskFrame::new();
        frame.as_mut_bytes().copy_from_slice(&golden(name));
        let request = frame.decode(protocol, rule).expect("legal");
        assert_eq!(request.identity, dispatch());
        assert_eq!(request.digest, &digest);
        assert_eq!(request.config, &config());
        let described: Vec<_> = (0..4).map(nth_described).collect();
        let chip: Vec<_> = (0..4).map(nth).collect();
        match request.args {
            FrameArgs::ChipTensors(list) => assert_eq!(list.tensors(), chip),
            FrameArgs::Tensors(list) => assert_eq!(list.tensors(), described),
        }
        assert_eq!(
            frame.decode(other, rule),
            Err(WireError::Protocol { found: protocol.version(), served: other.version() })
        );

        let mut built = TaskFrame {
            state: state.raw(),
            config: config(),
            lease: dispatch().lease(),
            digest,
            trailer: dispatch().trailer(protocol),
            ..TaskFrame::new()
        };
        match protocol {
            Protocol::ChipTensors => args::encode(&chip, &scalars(3), &mut built.args),
            Protocol::Tensors => args::encode_described(&described, &scalars(3), &mut built.args),
        }
        .expect("room");
        assert!(built.as_bytes() == golden(name), "{name}");
    }
}
