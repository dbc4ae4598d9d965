//! Frames between hosts: the header, and what bounds every payload.

use laneway_core::ids::WorkerId;
use laneway_core::wire::WireError;
use laneway_core::wire::remote::{
    FrameHeader, FrameType, HEADER_BYTES, MAX_PAYLOAD_BYTES, Payload, RemoteCommand, RemoteRequest, caps,
};

/// N-1
#[test]
fn each_gate_of_a_remote_header_has_its_own_error() {
    let header = FrameHeader {
        kind: FrameType::Task,
        session: 1,
        worker: WorkerId::new(5).expect("not negative"),
        sequence: 7,
        payload_bytes: 0,
        group: true,
    };
    let good = header.encode().expect("small");
    assert_eq!(FrameHeader::decode(&good), Ok(header));
    let refused = |at: usize, value: u32| {
        let mut bytes = good;
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        FrameHeader::decode(&bytes).expect_err("illegal")
    };
    assert!(matches!(refused(0, 0), WireError::UnknownCode { field: "magic", .. }));
    assert_eq!(refused(4, 2), WireError::Protocol { found: 2, served: 3 });
    assert!(matches!(refused(8, 0), WireError::UnknownCode { field: "frame type", value: 0, .. }));
    assert!(matches!(refused(8, 8), WireError::UnknownCode { field: "frame type", value: 8, .. }));
    assert!(matches!(refused(20, u32::MAX), WireError::OutOfRange { value: -1, min: 0, .. }));
    let (len, max) = (u64::from(MAX_PAYLOAD_BYTES) + 1, u64::from(MAX_PAYLOAD_BYTES));
    assert_eq!(refused(32, MAX_PAYLOAD_BYTES + 1), WireError::TooLong { field: "payload", len, max });
    assert!(matches!(refused(36, 2), WireError::NotZero { value: 2, .. }));
    assert!(matches!(FrameHeader::split(&good[..39]), Err(WireError::Short { have: 39, need: 40, .. })));
    let longer = [&good[..], &[0]].concat();
    assert!(matches!(FrameHeader::split(&longer), Err(WireError::Trailing { extra: 1, .. })));
    assert_eq!(good.len(), HEADER_BYTES);
}

/// A length that a peer sends is compared before anything is read by it; leftover bytes are refused.
#[test]
fn remote_payloads_bound_every_length() {
    let completion =
        |len: u32, message: &[u8]| [&7u64.to_le_bytes()[..], &1i32.to_le_bytes(), &len.to_le_bytes(), message].concat();
    let decode = |bytes: &[u8]| Payload::decode(FrameType::Completion, bytes).map(|_| ());
    assert_eq!(decode(&completion(2, b"no")), Ok(()));
    let (field, max) = ("Completion.message", u64::from(caps::MESSAGE));
    assert_eq!(decode(&completion(4_097, &[b'x'; 4_097])), Err(WireError::TooLong { field, len: 4_097, max }));
    assert_eq!(decode(&completion(u32::MAX, b"")), Err(WireError::TooLong { field, len: u32::MAX.into(), max }));
    assert!(matches!(decode(&completion(3, b"no")), Err(WireError::Short { .. })));
    assert!(matches!(decode(&completion(1, b"no")), Err(WireError::Trailing { extra: 1, .. })));
    assert!(matches!(decode(&completion(2, &[b'n', 0xFF])), Err(WireError::Text { at: 1, .. })));
    let what = "HEALTH payload";
    assert_eq!(Payload::decode(FrameType::Health, &[0]), Err(WireError::Trailing { what, extra: 1 }));

    let task = |tensors: u32, scalars: u32| {
        let head = [&[0u8; 32][..], &[0; 24], &[0; 4], &tensors.to_le_bytes(), &scalars.to_le_bytes()].concat();
        Payload::decode(FrameType::Task, &head).err()
    };
    let capped = |error: Option<WireError>| matches!(error, Some(WireError::ArgCounts { max_tensors: 4_096, .. }));
    assert!(capped(task(4_097, 0)) && capped(task(0, 4_097)) && capped(task(u32::MAX, u32::MAX)));
    assert!(matches!(task(4_096, 4_096), Some(WireError::Short { .. })));
}

/// N-8: what this version does not serve decodes to its name, so that it can be answered.
#[test]
fn reserved_remote_controls_decode_to_their_names() {
    for command in &RemoteCommand::ALL[12..] {
        let decoded = RemoteRequest::decode(*command, &[1, 2, 3]);
        assert_eq!(decoded, Ok(RemoteRequest::Unsupported(*command)));
    }
    let unknown = [18u32.to_le_bytes(), 1u32.to_le_bytes(), 0u32.to_le_bytes()].concat();
    let refused = Payload::decode(FrameType::Control, &unknown);
    assert!(matches!(refused, Err(WireError::UnknownCode { value: 18, .. })), "{refused:?}");
}
