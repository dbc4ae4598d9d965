//! Controls and the names by which they point at bytes.

use laneway_core::wire::control::{ControlCommand, ControlFrame, ShmName, Staged};
use laneway_core::wire::{Protocol, WireError, frame};

#[test]
fn an_unknown_control_names_its_number() {
    for value in [12, 13, 14, 15, 19, u64::MAX] {
        let control = ControlFrame { subcommand: value, arg0: 0, payload: [0; frame::CONTROL_PAYLOAD_BYTES] };
        assert_eq!(control.decode(Protocol::ChipTensors), Err(WireError::UnknownCommand { value }));
    }
    assert_eq!(WireError::UnknownCommand { value: 13 }.to_string(), "unknown control sub-command 13");
    assert_eq!(ControlCommand::from_raw(18), Ok(ControlCommand::CommittedDeviceMemory));
}

#[test]
fn a_control_name_is_an_offset_or_a_shared_memory_name() {
    for offset in [0, 1, 0xf, 0x10, 0x1f40c0, u64::MAX] {
        let slot = Staged::Region(offset).slot();
        let text = format!("@{offset:x}");
        assert_eq!(&slot[..text.len() + 1], [text.as_bytes(), &[0]].concat());
        assert_eq!(Staged::parse(&slot), Ok(Staged::Region(offset)));
    }
    let parse = |text: &[u8]| {
        let mut slot = [0; 32];
        slot[..text.len()].copy_from_slice(text);
        Staged::parse(&slot)
    };
    let full = [b'x'; 32];
    assert_eq!(Staged::parse(&full), Err(WireError::Unterminated { field: "control name", capacity: 32 }));
    assert!(matches!(parse(b"@"), Err(WireError::OutOfRange { value: 0, min: 1, max: 16, .. })));
    assert!(matches!(parse(b"@12345678123456781"), Err(WireError::OutOfRange { value: 17, .. })));
    assert!(matches!(parse(b"@12G4"), Err(WireError::Text { at: 3, .. })));
    assert!(matches!(parse(b""), Err(WireError::Zero { .. })));
    assert!(matches!(parse(b"a/b"), Err(WireError::Text { at: 1, .. })));
    assert!(matches!(ShmName::new("@12"), Err(WireError::Text { at: 0, .. })));
    assert!(matches!(ShmName::new(&"x".repeat(32)), Err(WireError::TooLong { len: 32, max: 31, .. })));
    let name = ShmName::new("/psm_1").expect("legal");
    assert_eq!(parse(b"/psm_1"), Ok(Staged::Shm(name)));
    assert_eq!(name.as_str(), "/psm_1");
}
