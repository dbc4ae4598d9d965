//! The words of a frame: identity, slots, codes and texts.

use laneway_core::ids::{DispatchId, Generation, PipelineSlot, RunId};
use laneway_core::wire::extension;
use laneway_core::wire::frame;
use laneway_core::wire::*;

/// L-5: protocol; ids; slot; lease slot, reserved word and generation. Each earlier fault hides the later ones.
#[test]
fn the_identity_of_a_frame_is_judged_in_its_order() {
    let good = DispatchIdentity {
        run: RunId::new(7).expect("not 0"),
        slot: PipelineSlot::One,
        generation: Generation::new(4).expect("not 0"),
        dispatch: DispatchId::new(9).expect("not 0"),
    };
    let (trailer, lease) = (good.trailer(Protocol::ChipTensors), good.lease());
    let rule = SlotRule::Exactly(PipelineSlot::One);
    let judge = |trailer: Trailer, lease: PipelineSlotLease| trailer.judge(&lease, Protocol::ChipTensors, rule);
    assert_eq!(judge(trailer, lease), Ok(good));

    let mut bad_lease = PipelineSlotLease { slot_id: 0, reserved: 1, generation: 3 };
    let mut bad = Trailer { protocol: 3, run: 0, slot: 2, generation: 0, dispatch: 0 };
    let mut errors = vec![judge(bad, bad_lease)];
    bad.protocol = 2;
    errors.push(judge(bad, bad_lease));
    bad.run = 7;
    errors.push(judge(bad, bad_lease));
    bad.generation = 4;
    errors.push(judge(bad, bad_lease));
    bad.dispatch = 9;
    errors.push(judge(bad, bad_lease));
    bad.slot = 1;
    errors.push(judge(bad, bad_lease));
    bad_lease.slot_id = 1;
    errors.push(judge(bad, bad_lease));
    bad_lease.reserved = 0;
    errors.push(judge(bad, bad_lease));
    bad_lease.generation = 4;
    errors.push(judge(bad, bad_lease));
    assert_eq!(
        errors,
        [
            Err(WireError::Protocol { found: 3, served: 2 }),
            Err(WireError::Zero { field: "trailer run id" }),
            Err(WireError::Zero { field: "trailer generation" }),
            Err(WireError::Zero { field: "trailer dispatch id" }),
            Err(WireError::Slot { found: 2, rule }),
            Err(WireError::LeaseMismatch { field: "slot", lease: 0, trailer: 1 }),
            Err(WireError::NotZero { field: "lease reserved word", value: 1 }),
            Err(WireError::LeaseMismatch { field: "generation", lease: 3, trailer: 4 }),
            Ok(good),
        ]
    );
}

/// W-2, L-34
#[test]
fn a_frame_carries_the_slots_of_its_endpoint() {
    let allowed = |rule: SlotRule| PipelineSlot::ALL.map(|slot| rule.allows(slot));
    assert_eq!(allowed(SlotRule::Exactly(PipelineSlot::Zero)), [true, false]);
    assert_eq!(allowed(SlotRule::Exactly(PipelineSlot::One)), [false, true]);
    assert_eq!(allowed(SlotRule::Below(0)), [false, false]);
    assert_eq!(allowed(SlotRule::Below(1)), [true, false]);
    assert_eq!(allowed(SlotRule::Below(2)), [true, true]);
    assert_eq!(frame::task(PipelineSlot::Zero), 65_536);
    assert_eq!(frame::task(PipelineSlot::One), 131_072);
}

/// W-5: the words by which a dispatch is named and accepted share one line of 64 bytes in every frame, and fill it to its end,
/// so that the other side gets all of them with one miss.
#[test]
fn identity_and_acceptance_lie_in_one_cache_line() {
    let starts = [frame::BASE, frame::task(PipelineSlot::Zero), frame::task(PipelineSlot::One)];
    let words = [
        (frame::SHUTDOWN, size_of::<i32>()),
        (frame::TRAILER, size_of::<Trailer>()),
        (frame::ACCEPTED, size_of::<i32>()),
        (frame::PREPARATION, size_of::<i32>()),
    ];
    for start in starts {
        let line = (start + frame::SHUTDOWN) / 64;
        for (at, bytes) in words {
            assert_eq!([(start + at) / 64, (start + at + bytes - 1) / 64], [line; 2], "offset {at}");
        }
        assert_eq!(start + frame::PREPARATION + size_of::<i32>(), (line + 1) * 64);
    }
    assert_eq!((frame::SHUTDOWN, frame::PREPARATION + 3), (65_224, 65_279));
}

/// T-21: the numbers are declared once; anything else stands for nothing.
#[test]
fn states_preparations_and_codes_round_trip_and_nothing_else_does() {
    for raw in -2..40 {
        assert_eq!(FrameState::from_raw(raw).map(FrameState::raw), (0..=12).contains(&raw).then_some(raw));
        assert_eq!(Preparation::from_raw(raw).map(Preparation::raw), (0..=2).contains(&raw).then_some(raw));
        let code = |legal: bool| legal.then_some(raw);
        assert_eq!(TensorTag::from_code(raw).ok().map(TensorTag::code), code((0..=4).contains(&raw)));
        assert_eq!(ArgDirection::from_code(raw).ok().map(ArgDirection::code), code((0..=3).contains(&raw)));
        assert_eq!(CallableKind::from_code(raw).ok().map(CallableKind::code), code((1..=4).contains(&raw)));
        assert_eq!(Namespace::from_code(raw).ok().map(Namespace::code), code((1..=3).contains(&raw)));
    }
    for code in 0..=255u8 {
        assert_eq!(Dtype::from_code(code).map(Dtype::code), (code <= 14).then_some(code));
        assert_eq!(AddressSpace::from_code(code).map(AddressSpace::code), (code <= 1).then_some(code));
        assert_eq!(Access::from_code(code).map(Access::code), (code <= 2).then_some(code));
        assert_eq!(Backend::from_code(code).map(Backend::code), (code <= 5).then_some(code));
    }
    let sizes = Dtype::ALL.map(Dtype::element_bytes);
    assert_eq!(sizes, [4, 2, 4, 2, 1, 1, 2, 8, 8, 2, 4, 1, 1, 1, 1]);
    for version in 0..6 {
        let protocol = Protocol::from_version(version);
        assert_eq!(protocol.map(Protocol::version), (2..=3).contains(&version).then_some(version));
    }
}

/// W-6: what `top` looks at has fixed numbers too.
#[test]
fn activities_round_trip_and_anything_else_is_unknown() {
    use extension::ChildActivity;
    for raw in 0..8 {
        assert_eq!(ChildActivity::from_raw(raw).raw(), raw);
    }
    assert_eq!(ChildActivity::from_raw(8), ChildActivity::Unknown);
}

#[test]
fn texts_end_at_a_character_and_in_their_field() {
    let mut message = [b'x'; frame::MESSAGE_BYTES];
    assert_eq!(frame::message_text(&message).len(), 256);
    message[254..].copy_from_slice("é".as_bytes());
    message[3] = 0;
    assert_eq!(frame::message_text(&message), "xxx");
    message[2] = 0xC3;
    assert_eq!(frame::message_text(&message), "xx");
    assert_eq!(frame::cut("aéz", 2), "a");
    assert_eq!(frame::cut("aéz", 3), "aé");
    assert_eq!(frame::cut("aéz", 9), "aéz");
    assert_eq!(frame::cut("é", 1), "");
}
