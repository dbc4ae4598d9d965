//! Frames between hosts.

use laneway_core::wire::remote::*;
use laneway_core::wire::*;

use crate::golden::golden;
use crate::values::{buffer, config, nonzero, worker};

/// The example of the contract, and every payload between hosts.
#[test]
fn remote_frames() {
    let header = golden("remote_header");
    let hex: String = header.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "534c5233030000000200000088776655443322110500000007000000000000000900000000000000");
    let decoded = FrameHeader::decode(header.first_chunk().expect("40 bytes")).expect("legal");
    let expected = FrameHeader {
        kind: FrameType::Task,
        session: 0x1122_3344_5566_7788,
        worker: worker(5),
        sequence: 7,
        payload_bytes: 9,
        group: false,
    };
    assert_eq!(decoded, expected);

    let buffer = RemoteBuffer { owner: worker(5), id: nonzero(71), generation: nonzero(2) };
    let message = "unsupported: communication domains";
    let payloads = [
        (
            "remote_hello",
            Payload::Hello(Hello {
                session: nonzero(0x1122_3344_5566_7788),
                worker: worker(5),
                protocol: Version,
                profile: "tcp",
                features: 5,
                ready: true,
            }),
        ),
        (
            "remote_reply_unsupported",
            Payload::ControlReply(ControlReply {
                sequence: 26,
                command: RemoteCommand::Domain13,
                version: Version,
                error: -1,
                message,
                body: &[],
            }),
        ),
        (
            "remote_completion",
            Payload::Completion(Completion { sequence: 7, error: 1, message: "worker 5: code 3: naïve kernel" }),
        ),
        ("remote_health", Payload::Health),
        ("remote_shutdown", Payload::Shutdown),
    ];
    for (name, payload) in payloads {
        same_payload(name, payload);
    }

    let callable = CallableRef {
        registry: Registry::InnerWorker,
        kind: CallableKind::ChipCallable,
        digest: Digest(std::array::from_fn(|i| 0x10 + i as u8)),
    };
    let descriptor: Vec<u8> = (0..119).collect();
    let chip = ChipPayload {
        descriptor: &descriptor,
        location: Inline,
        size: 10,
        sha256: std::array::from_fn(|i| 0x60 + i as u8),
        inline: &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59],
        token: &[],
    };
    let mut chip_bytes = vec![0; 512];
    let len = chip.encode(&mut chip_bytes).expect("room");
    assert_eq!(ChipPayload::decode(&chip_bytes[..len]), Ok(chip));
    let payload = &chip_bytes[..len];
    let twelve: Vec<u8> = (0..12).collect();
    let copy = CopyRange { buffer, offset: 100, size: 12 };
    let export = ExportResult {
        buffer,
        space: RemoteSpace::RemoteWindow,
        offset: 64,
        bytes: 4096,
        export_id: 900,
        addr: 0xab_c000,
        rkey: 0x77,
        ub_address: 0,
        access: AccessBits::ReadWrite,
        profile: "tcp",
        descriptor: &[0x30, 0x31, 0x32, 0x33, 0x34, 0x35],
    };
    let requests = [
        ("remote_unregister", RemoteRequest::UnregisterCallable(callable)),
        (
            "remote_prepare_register",
            RemoteRequest::PrepareRegister(PrepareRegister { callable, payload_version: 1, payload }),
        ),
        ("remote_commit_register", RemoteRequest::CommitRegister(callable)),
        ("remote_abort_register", RemoteRequest::AbortRegister(callable)),
        ("remote_prepare_callable", RemoteRequest::PrepareCallable(callable)),
        ("remote_alloc", RemoteRequest::AllocBuffer(Alloc { bytes: 8192 })),
        ("remote_free", RemoteRequest::FreeBuffer(Free { buffer })),
        ("remote_copy_to", RemoteRequest::CopyTo(CopyTo { range: copy, bytes: &twelve })),
        ("remote_copy_from", RemoteRequest::CopyFrom(copy)),
        (
            "remote_export",
            RemoteRequest::Export(Export {
                buffer,
                offset: 64,
                bytes: 4096,
                access: AccessBits::ReadWrite,
                profile: "tcp",
            }),
        ),
        ("remote_import", RemoteRequest::Import(Import { importer: worker(6), access: AccessBits::Read, export })),
        (
            "remote_release_import",
            RemoteRequest::ReleaseImport(ReleaseImport { importer: worker(6), buffer, import_id: 1001 }),
        ),
    ];
    for (name, request) in requests {
        let mut body = vec![0; 4096];
        let len = request.encode(&mut body).expect("room");
        assert_eq!(RemoteRequest::decode(request.command(), &body[..len]), Ok(request), "{name}");
        let control = Control { command: request.command(), version: Version, body: &body[..len] };
        same_payload(name, Payload::Control(control));
    }

    let import = ImportResult {
        importer: worker(6),
        buffer,
        import_id: 1001,
        space: RemoteSpace::RemoteWindow,
        offset: 64,
        bytes: 4096,
        addr: 0xde_f000,
        rkey: 0x78,
        ub_address: 0,
        access: AccessBits::Read,
        profile: "tcp",
        descriptor: export.descriptor,
    };
    let alloc = AllocResult {
        buffer,
        space: RemoteSpace::RemoteDevice,
        bytes: 8192,
        addr: 0xab_c000,
        rkey: 0x77,
        ub_address: 0x99,
    };
    let replies = [
        ("remote_alloc_reply", 20, RemoteCommand::AllocBuffer, RemoteReply::Alloc(alloc)),
        ("remote_copy_from_reply", 23, RemoteCommand::CopyFrom, RemoteReply::Bytes(&twelve)),
        ("remote_export_reply", 24, RemoteCommand::Export, RemoteReply::Export(export)),
        ("remote_import_reply", 25, RemoteCommand::Import, RemoteReply::Import(import)),
    ];
    for (name, sequence, command, reply) in replies {
        let mut body = vec![0; 4096];
        let len = reply.encode(&mut body).expect("room");
        assert_eq!(RemoteReply::decode(command, &body[..len]), Ok(reply), "{name}");
        let (version, error, message) = (Version, 0, "");
        let reply = ControlReply { sequence, command, version, error, message, body: &body[..len] };
        same_payload(name, Payload::ControlReply(reply));
    }
}

/// `payload` is what the golden frame carries, and the frame is what it encodes to.
fn same_payload(name: &str, payload: Payload<'_>) {
    let bytes = golden(name);
    let (header, found) = FrameHeader::split(&bytes).expect("a legal header");
    assert_eq!(header.kind, payload.kind(), "{name}");
    assert_eq!(Payload::decode(header.kind, found), Ok(payload), "{name}");
    let mut out = vec![0xEE; 8192];
    let len = payload.encode(&mut out).expect("room");
    assert_eq!(&out[..len], found, "{name}");
    assert_eq!(header.encode().expect("a small payload"), bytes[..HEADER_BYTES], "{name}");
}

#[test]
fn a_remote_task() {
    let bytes = golden("remote_task");
    let (header, payload) = FrameHeader::split(&bytes).expect("a legal header");
    assert!(header.group);
    let Ok(Payload::Task(task)) = Payload::decode(header.kind, payload) else { panic!("a task") };

    let remote = |id, nbytes| {
        let (identity, range) = buffer(AddressSpace::Host, Access::ReadWrite, id, nbytes);
        BufferDescriptor::remote(identity, range).expect("legal")
    };
    let tensor = |id, nbytes, side| Tensor::contiguous(remote(id, nbytes), 0, Dtype::F32, &[side, side]).expect("fits");
    let tensors = [tensor(31, 64, 4), tensor(32, 256, 8), tensor(33, 64, 4)];
    let sidecars = [
        Some(RemoteTensorDesc::Inline { inline_offset: 8, nbytes: 64 }),
        Some(RemoteTensorDesc::Buffer {
            space: RemoteSpace::RemoteWindow,
            buffer: RemoteBuffer { owner: worker(5), id: nonzero(71), generation: nonzero(2) },
            offset: 128,
            nbytes: 256,
            remote_addr: 0xab_c000,
            rkey: 0x77,
        }),
        None,
    ];
    let scalars = [42, u64::MAX];
    let inline: Vec<u8> = (0..72).collect();
    assert!(task.args.tensors().eq(tensors));
    assert!(task.args.sidecars().eq(sidecars));
    assert!(task.args.scalars().eq(scalars));
    assert_eq!(task.args.inline(), inline);
    let unset = CallConfig { ring_task_window: [0; 4], ring_heap: [0; 4], ring_dep_pool: [0; 4], ..config() };
    assert_eq!(task.config.to_config(), Ok(unset));

    let travels = RemoteConfig::of(&unset).expect("travels");
    let args = RemoteArgsParts { tensors: &tensors, sidecars: &sidecars, scalars: &scalars, inline: &inline };
    let mut out = vec![0; 4096];
    let len = RemoteTaskParts { digest: task.digest, config: travels, args }.encode(&mut out).expect("room");
    assert_eq!(&out[..len], payload);
    let len = Payload::Task(task).encode(&mut out).expect("room");
    assert_eq!(&out[..len], payload);
    assert_eq!(
        RemoteConfig::of(&config()),
        Err(WireError::NotZero { field: "runtime_env.ring_task_window", value: 16 })
    );
}
