//! What the frames between hosts settle before there is a connection: who may say hello, how a stream is taken apart, what a
//! task may carry and what names remote memory.

use std::num::NonZeroU64;

use laneway_core::ids::WorkerId;
use laneway_core::wire::remote::*;
use laneway_core::wire::{
    Access, AddressSpace, Backend, BufferDescriptor, BufferIdentity, BufferRange, CallConfig, Digest, Dtype, Tensor,
    WireError,
};

const HELLO: Hello<'_> = Hello {
    session: NonZeroU64::MIN,
    worker: WorkerId::new(5).unwrap(),
    protocol: Version,
    profile: "tcp",
    features: 0,
    ready: true,
};

fn bytes_of(payload: &Payload<'_>) -> Vec<u8> {
    let mut out = vec![0; 4096];
    let len = payload.encode(&mut out).expect("legal");
    out.truncate(len);
    out
}

fn hello(bytes: &[u8]) -> Result<Payload<'_>, WireError> {
    Payload::decode(FrameType::Hello, bytes)
}

/// N-2: session, worker, protocol, profile and READY are all there and each is judged; what the far end expects it compares.
#[test]
fn a_hello_that_is_not_one_is_refused_field_by_field() {
    let good = bytes_of(&Payload::Hello(HELLO));
    assert_eq!(hello(&good), Ok(Payload::Hello(HELLO)));
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = good.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    let no_session = with(0, &[0; 8]);
    assert!(matches!(
        hello(&no_session),
        Err(WireError::OutOfRange { .. } | WireError::NotZero { .. } | WireError::Zero { .. })
    ));
    assert!(matches!(hello(&with(8, &(-1_i32).to_le_bytes())), Err(WireError::OutOfRange { value: -1, .. })));
    assert_eq!(hello(&with(12, &2_u32.to_le_bytes())), Err(WireError::Protocol { found: 2, served: 3 }));
    let long = Payload::Hello(Hello { profile: &"p".repeat(129), ..HELLO }).encode(&mut [0; 4096]);
    assert!(matches!(long, Err(WireError::TooLong { len: 129, max: 128, .. })), "{long:?}");
    let last = good.len() - 4;
    assert_eq!(hello(&with(last, &0_u32.to_le_bytes())), Ok(Payload::Hello(Hello { ready: false, ..HELLO })));
    let maybe = with(last, &2_u32.to_le_bytes());
    assert!(hello(&maybe).is_err(), "ready is 0 or 1");
    for len in 0..good.len() {
        assert!(matches!(hello(&good[..len]), Err(WireError::Short { .. })), "{len} of {} bytes", good.len());
    }
    // Each of them makes another hello: none can be mistaken for the one that was expected.
    let other = [
        Hello { session: NonZeroU64::MAX, ..HELLO },
        Hello { worker: WorkerId::new(6).unwrap(), ..HELLO },
        Hello { profile: "ub", ..HELLO },
        Hello { features: 1, ..HELLO },
    ];
    for other in other {
        let bytes = bytes_of(&Payload::Hello(other));
        assert_eq!(hello(&bytes), Ok(Payload::Hello(other)));
        assert_ne!(hello(&bytes), hello(&good));
    }
}

/// Takes whole frames off the front of what has arrived, as a reader does that never waits.
fn take_frame(arrived: &mut Vec<u8>) -> Option<(FrameHeader, Vec<u8>)> {
    let header = FrameHeader::decode(arrived.first_chunk()?).expect("a legal header");
    let end = HEADER_BYTES + header.payload_bytes as usize;
    let payload = arrived.get(HEADER_BYTES..end)?.to_vec();
    arrived.drain(..end);
    Some((header, payload))
}

/// N-1, N-6: a stream that is cut anywhere yields the same frames; the header alone says how long to wait.
#[test]
fn a_stream_can_be_resumed_at_any_byte() {
    let done = Completion { sequence: 7, error: 3, message: "naïve kernel" };
    let sent = [Payload::Hello(HELLO), Payload::Health, Payload::Completion(done), Payload::Shutdown];
    let mut stream = Vec::new();
    for (sequence, payload) in (0..).zip(&sent) {
        let bytes = bytes_of(payload);
        let header = FrameHeader {
            kind: payload.kind(),
            session: 9,
            worker: HELLO.worker,
            sequence,
            payload_bytes: bytes.len() as u32,
            group: false,
        };
        stream.extend_from_slice(&header.encode().expect("small"));
        stream.extend_from_slice(&bytes);
    }
    for cut in 0..=stream.len() {
        let (mut arrived, mut frames) = (Vec::new(), Vec::new());
        for part in [&stream[..cut], &stream[cut..]] {
            arrived.extend_from_slice(part);
            while let Some(frame) = take_frame(&mut arrived) {
                frames.push(frame);
            }
        }
        assert!(arrived.is_empty(), "cut at {cut}");
        let sequences: Vec<_> = frames.iter().map(|(header, _)| header.sequence).collect();
        assert_eq!(sequences, [0, 1, 2, 3], "cut at {cut}");
        for ((header, bytes), payload) in frames.iter().zip(&sent) {
            assert_eq!(Payload::decode(header.kind, bytes).as_ref(), Ok(payload), "cut at {cut}");
        }
    }
}

fn identity(id: u64) -> BufferIdentity {
    BufferIdentity { owner: *b"OWNER--1", buffer_id: id, generation: 9 }
}

fn encoded(tensors: &[Tensor], sidecars: &[Option<RemoteTensorDesc>], inline: &[u8]) -> Result<usize, WireError> {
    let config = RemoteConfig::of(&CallConfig::ZERO).expect("travels");
    let args = RemoteArgsParts { tensors, sidecars, scalars: &[], inline };
    RemoteTaskParts { digest: Digest([1; 32]), config, args }.encode(&mut [0; 4096])
}

/// N-9: a bare local address does not travel, nor a sidecar whose bytes are not there; nothing is sent of such a task.
#[test]
fn a_task_with_local_memory_is_not_written() {
    let range = BufferRange { space: AddressSpace::Host, access: Access::ReadWrite, nbytes: 64, owner_path: 1 };
    let tensor = |buffer| Tensor::contiguous(buffer, 0, Dtype::F32, &[16]).expect("fits");
    let remote = tensor(BufferDescriptor::remote(identity(1), range).expect("legal"));
    let local = tensor(BufferDescriptor::at_address(Backend::ForkShm, identity(1), range, 0x1000).expect("legal"));
    let inline = |inline_offset| Some(RemoteTensorDesc::Inline { inline_offset, nbytes: 64 });
    assert!(encoded(&[remote], &[inline(0)], &[0; 64]).is_ok());
    assert!(matches!(
        encoded(&[local], &[inline(0)], &[0; 64]),
        Err(WireError::UnknownCode { field: "tensor backend", .. })
    ));
    assert!(matches!(encoded(&[remote], &[], &[]), Err(WireError::OutOfRange { field: "number of sidecars", .. })));
    assert!(matches!(encoded(&[remote], &[inline(1)], &[0; 64]), Err(WireError::Outside { .. })));
    let part = tensor(BufferDescriptor::remote(identity(1), BufferRange { nbytes: 128, ..range }).expect("legal"));
    assert!(encoded(&[part], &[inline(0)], &[0; 64]).is_ok(), "a view from its first byte on");
}

fn range(id: u64, offset: u64, nbytes: u64) -> RemoteTensorDesc {
    let number = |value| NonZeroU64::new(value).expect("not 0");
    let buffer = RemoteBuffer { owner: HELLO.worker, id: number(id), generation: number(2) };
    let space = RemoteSpace::RemoteWindow;
    RemoteTensorDesc::Buffer { space, buffer, offset, nbytes, remote_addr: 0x1000, rkey: 7 }
}

/// N-10: memory is named by owner, id and generation, none of them nothing; disjoint ranges of one buffer go together in a task,
/// and one that wraps does not.
#[test]
fn remote_memory_is_named_by_owner_id_and_generation_and_a_range() {
    let whole = BufferRange { space: AddressSpace::Host, access: Access::ReadWrite, nbytes: 64, owner_path: 1 };
    let tensor = |id| {
        let buffer = BufferDescriptor::remote(identity(id), whole).expect("legal");
        Tensor::contiguous(buffer, 0, Dtype::F32, &[16]).expect("fits")
    };
    let two = [tensor(1), tensor(2)];
    assert!(
        encoded(&two, &[Some(range(3, 0, 64)), Some(range(3, 64, 64))], &[]).is_ok(),
        "disjoint ranges of one buffer"
    );
    assert!(
        matches!(encoded(&two[..1], &[Some(range(3, u64::MAX, 64))], &[]), Err(WireError::Outside { .. })),
        "it wraps"
    );

    let free = RemoteRequest::FreeBuffer(Free {
        buffer: RemoteBuffer { owner: HELLO.worker, id: NonZeroU64::MIN, generation: NonZeroU64::MIN },
    });
    let mut bytes = [0; 64];
    let len = free.encode(&mut bytes).expect("room");
    let decode = |bytes: &[u8]| RemoteRequest::decode(RemoteCommand::FreeBuffer, bytes).map(|_| ());
    assert_eq!(decode(&bytes[..len]), Ok(()));
    // i32 owner, u64 id, u64 generation.
    for (at, nothing) in [(0, &[0xff; 4][..]), (4, &[0; 8]), (12, &[0; 8])] {
        let mut changed = bytes;
        changed[at..at + nothing.len()].copy_from_slice(nothing);
        assert!(decode(&changed[..len]).is_err(), "byte {at}");
    }
}

/// N-10: an export keeps its offset, and its access is reading, writing or both, nothing else.
#[test]
fn an_export_keeps_its_offset_and_its_access() {
    let buffer = RemoteBuffer { owner: HELLO.worker, id: NonZeroU64::MIN, generation: NonZeroU64::MIN };
    let export = Export { buffer, offset: 4096, bytes: 512, access: AccessBits::Read, profile: "tcp" };
    let mut bytes = [0; 128];
    let len = RemoteRequest::Export(export).encode(&mut bytes).expect("room");
    let decode = |bytes: &[u8; 128]| match RemoteRequest::decode(RemoteCommand::Export, &bytes[..len]) {
        Ok(RemoteRequest::Export(Export { offset, access, .. })) => Ok((offset, access)),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error),
    };
    assert_eq!(decode(&bytes), Ok((4096, AccessBits::Read)));
    // Behind owner, id, generation, offset and bytes.
    let at = 4 + 4 * 8;
    for (bits, legal) in [(0_u32, false), (1, true), (2, true), (3, true), (4, false), (7, false)] {
        let mut changed = bytes;
        changed[at..at + 4].copy_from_slice(&bits.to_le_bytes());
        assert_eq!(decode(&changed).is_ok(), legal, "access bits {bits}");
    }
}
