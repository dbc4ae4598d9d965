//! Every gate of the payloads between hosts: one field of a golden frame is changed, and the error names it.

mod golden;

use laneway_core::wire::WireError;
use laneway_core::wire::remote::{
    ChipPayload, FrameHeader, HEADER_BYTES, Payload, RemoteCommand, RemoteReply, RemoteRequest, RemoteTensorDesc, caps,
};

use golden::golden;

fn payload(name: &str) -> Vec<u8> {
    golden(name)[HEADER_BYTES..].to_vec()
}

/// Decodes the payload of a golden frame as far as its body goes.
fn decode(name: &str, bytes: &[u8]) -> Result<(), WireError> {
    let header = FrameHeader::decode(golden(name).first_chunk().expect("40 bytes")).expect("a legal header");
    match Payload::decode(header.kind, bytes)? {
        Payload::Control(control) => match RemoteRequest::decode(control.command, control.body)? {
            RemoteRequest::PrepareRegister(register) => ChipPayload::decode(register.payload).map(|_| ()),
            _ => Ok(()),
        },
        Payload::ControlReply(reply) => RemoteReply::decode(reply.command, reply.body).map(|_| ()),
        _ => Ok(()),
    }
}

/// The error of a golden frame whose payload has `bytes` at `at`.
fn refused(name: &str, at: usize, bytes: &[u8]) -> String {
    let mut changed = payload(name);
    assert_eq!(decode(name, &changed), Ok(()), "{name} is legal as it is");
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    decode(name, &changed).expect_err("illegal").to_string()
}

const NONE: [u8; 8] = [0; 8];
const ALL: [u8; 8] = [0xFF; 8];

#[test]
fn hello() {
    assert_eq!(refused("remote_hello", 0, &NONE), "Hello.session is 0, which stands for none");
    assert_eq!(refused("remote_hello", 8, &ALL[..4]), "Hello.worker is -1, must be 0..=2147483647");
    assert_eq!(refused("remote_hello", 12, &[2]), "frame speaks protocol 2, this side serves protocol 3");
    assert_eq!(refused("remote_hello", 16, &[129]), "Hello.profile has 129 bytes, at most 128 fit");
    assert_eq!(refused("remote_hello", 20, &[0xFF]), "Hello.profile has an illegal byte at 0, must be UTF-8");
    assert_eq!(refused("remote_hello", 31, &[2]), "Hello.ready is 2, must be 0..=1");
}

/// Where the parts of the golden task's payload start.
const TENSOR: usize = 82;
const INLINE: usize = 296;
const BUFFER: usize = 377;

#[test]
fn config_and_tensors_of_a_task() {
    let task = |at, bytes: &[u8]| refused("remote_task", at, bytes);
    assert_eq!(task(36, &[5]), "enable_chip_swimlane is 5, must be 0..=4");
    assert_eq!(task(57, &[4]), "output_prefix has 1038 bytes, at most 1023 fit");
    assert_eq!(task(60, &[0]), "output_prefix has an illegal byte at 0, must be a path without NUL");
    assert_eq!(task(TENSOR + 16, &NONE[..4]), "argument 0: buffer: generation is 0, which names no buffer");
    assert_eq!(task(TENSOR + 20, &[2]), "tensor address space is 2, known are 0 HOST, 1 DEVICE");
    assert_eq!(task(TENSOR + 21, &[3]), "tensor access is 3, known are 0 READ, 1 WRITE, 2 READWRITE");
    assert_eq!(task(TENSOR + 22, &[0]), "tensor backend is 0, known are 3 REMOTE_SIDECAR");
    assert_eq!(task(TENSOR + 35, &[8]), "tensor body_len is 0x8, must be 0");
    assert_eq!(task(TENSOR + 39, &[1]), "tensor byte_offset is 0x1, must be 0");
    assert_eq!(task(TENSOR + 47, &[0]), "argument 0: ndims is 0, must be 1..=5");
    assert_eq!(task(TENSOR + 47, &ALL[..4]), "argument 0: ndims is 4294967295, must be 1..=5");
    assert!(task(TENSOR + 51, &[5]).starts_with("argument 0: 20 elements of 4 bytes from byte 0 on leave the buffer"));
    assert_eq!(task(TENSOR + 63, &[0]), "argument 0: strides[1] is 0");
    assert_eq!(task(TENSOR + 67, &[15]), "argument 0: dtype is 15, must be 0..=14");
    assert_eq!(task(TENSOR + 68, &[1]), "argument 0: dtype is 256, must be 0..=14");
    assert_eq!(task(474, &ALL[..4]), "inline bytes has 4294967295 bytes, at most 1048576 fit");
}

#[test]
fn sidecars_of_a_task() {
    let task = |at, bytes: &[u8]| refused("remote_task", at, bytes);
    let zero = |at, name: &str| assert_eq!(task(at, &[7]), format!("{name} is 0x7, must be 0"));
    assert_eq!(task(INLINE - 1, &[2]), "sidecar present is 2, must be 0..=1");
    assert!(task(INLINE, &[0]).starts_with("sidecar space is 0, known are 1 HOST_INLINE"));
    zero(INLINE + 4, "inline sidecar owner");
    zero(INLINE + 8, "inline sidecar buffer id");
    zero(INLINE + 16, "inline sidecar offset");
    zero(INLINE + 32, "inline sidecar remote address");
    zero(INLINE + 40, "inline sidecar key");
    zero(INLINE + 48, "inline sidecar generation");
    zero(INLINE + 72, "sidecar flags");
    assert_eq!(task(INLINE + 64, &[63]), "inline sidecar length (must be nbytes) is 63, must be 64..=64");
    let outside = "inline bytes of a tensor at 9 with 64 bytes leaves the 72 bytes that it must lie in";
    assert_eq!(task(INLINE + 56, &[9]), outside);
    assert!(task(INLINE + 56, &ALL).starts_with("inline bytes of a tensor at 18446744073709551615"));
    assert_eq!(task(BUFFER + 4, &ALL[..4]), "sidecar owner is -1, must be 0..=2147483647");
    assert_eq!(task(BUFFER + 8, &NONE), "sidecar buffer id is 0, which stands for none");
    assert_eq!(task(BUFFER + 48, &NONE), "sidecar generation is 0, which stands for none");
    zero(BUFFER + 56, "sidecar inline offset of a buffer");
    zero(BUFFER + 64, "sidecar inline length of a buffer");
    assert!(task(BUFFER + 16, &ALL).starts_with("range of a remote buffer at 18446744073709551615"));
    assert_eq!(RemoteTensorDesc::BYTES, 80);
}

/// A control's payload: command, version, length, body.
const BODY: usize = 12;

#[test]
fn registrations() {
    let prepare = |at, bytes: &[u8]| refused("remote_prepare_register", at, bytes);
    assert_eq!(prepare(4, &[2]), "frame speaks protocol 2, this side serves protocol 1");
    assert!(prepare(BODY, &[3]).starts_with("CallableRef.registry is 3, known are 1 dispatcher"));
    assert!(prepare(BODY + 4, &[5]).starts_with("callable kind is 5, known are 1 CHIP_CALLABLE"));
    // Behind registry, kind, digest, payload version and length: descriptor (119 bytes), location, size.
    let chip = BODY + 48;
    assert_eq!(prepare(chip + 1, &[16]), "ChipPayload.descriptor has 4215 bytes, at most 4096 fit");
    let staged = "ChipPayload.location is 2, known are 1 inline; 2 staged is not supported";
    assert_eq!(prepare(chip + 123, &[2]), staged);
    assert_eq!(prepare(chip + 127, &[11]), "ChipPayload.size is 11, must be 10..=10");
    let token = chip + 127 + 8 + 32 + 14;
    assert_eq!(prepare(token + 1, &[5]), "ChipPayload.token has 1280 bytes, at most 1024 fit");
    assert_eq!(prepare(token + 4, &[1]), "ChipPayload.reserved is 0x1, must be 0");
}

#[test]
fn buffers() {
    assert_eq!(refused("remote_free", BODY, &ALL[..4]), "buffer owner is -1, must be 0..=2147483647");
    assert_eq!(refused("remote_free", BODY + 4, &NONE), "buffer id is 0, which stands for none");
    assert_eq!(refused("remote_free", BODY + 12, &NONE), "buffer generation is 0, which stands for none");
    assert_eq!(refused("remote_copy_to", BODY + 28, &[13]), "CopyTo.size is 13, must be 12..=12");
    assert!(refused("remote_copy_from", BODY + 20, &ALL).starts_with("range of a copy at 18446744073709551615"));
    assert!(refused("remote_export", BODY + 20, &ALL).starts_with("range of an export at"));
    assert!(refused("remote_export", BODY + 36, &[0]).starts_with("Export.access is 0, known are 1 read"));
    assert!(refused("remote_export", BODY + 36, &[4]).starts_with("Export.access is 4, known are 1 read"));
    assert_eq!(refused("remote_export", BODY + 47, &[1]), "Export.reserved is 0x1, must be 0");
    let space = "ExportResult.space is 2, known are 3 REMOTE_WINDOW, 4 UB_LDST";
    assert_eq!(refused("remote_import", BODY + 8 + 20, &[2]), space);
    assert_eq!(refused("remote_import", BODY, &ALL[..4]), "Import.importer is -1, must be 0..=2147483647");
    assert_eq!(refused("remote_release_import", BODY + 32, &[9]), "ReleaseImport.reserved is 0x9, must be 0");
}

#[test]
fn replies() {
    // Sequence, command, version, error, message and length stand in front of the body.
    let body = 28;
    assert!(
        refused("remote_alloc_reply", body + 20, &[5]).starts_with("AllocResult.space is 5, known are 1 HOST_INLINE")
    );
    assert!(refused("remote_import_reply", body + 32, &[1]).starts_with("ImportResult.space is 1, known are 3"));
    assert!(refused("remote_import_reply", body + 36, &ALL).starts_with("range of an import at"));
    assert!(refused("remote_export_reply", body + 24, &ALL).starts_with("range of an export at"));
    assert_eq!(
        refused("remote_alloc_reply", 8, &[18]),
        "ControlReply.command is 18, known are 1..=12, reserved 13..=17"
    );
    let bytes = RemoteReply::decode(RemoteCommand::CommitRegister, &[1]);
    assert!(matches!(bytes, Err(WireError::Trailing { extra: 1, .. })), "{bytes:?}");
}

/// No cut of a payload is taken for a whole one: those with a fixed end say what is missing.
#[test]
fn no_cut_of_a_payload_decodes() {
    let names = [
        "remote_hello",
        "remote_task",
        "remote_completion",
        "remote_prepare_register",
        "remote_alloc",
        "remote_alloc_reply",
        "remote_export",
        "remote_export_reply",
        "remote_import",
        "remote_import_reply",
        "remote_release_import",
    ];
    for name in names {
        let whole = payload(name);
        for cut in 0..whole.len() {
            assert!(decode(name, &whole[..cut]).is_err(), "{name} cut at {cut}");
        }
        let longer = [&whole[..], &[0]].concat();
        assert!(matches!(decode(name, &longer), Err(WireError::Trailing { extra: 1, .. })), "{name}");
    }
    assert_eq!(caps::INLINE, 1 << 20);
}
