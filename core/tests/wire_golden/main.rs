//! Golden vectors: bytes that a C program made from the contract alone. Each decodes to the value that it stands for and
//! that value encodes back to the same bytes.
//!
//! `LANEWAY_GOLDEN=write` makes the vectors anew and, from them, the seed corpora of the fuzz targets.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::ErrorKind;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::Command;

use laneway_core::ids::{DispatchId, Generation, PipelineSlot, RunId, WorkerId};
use laneway_core::model::identity::{self, Descriptor};
use laneway_core::wire::args::{self, ArgsSnapshot};
use laneway_core::wire::control::{ControlCommand, ControlFrame, ControlRequest, CopySpan, ShmName, Staged};
use laneway_core::wire::frame::{self, FrameArgs, TaskFrame};
use laneway_core::wire::remote::*;
use laneway_core::wire::*;
use zerocopy::{FromBytes, IntoBytes};

mod wire_properties;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn golden(name: &str) -> Vec<u8> {
    let path = directory().join(format!("{name}.bin"));
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every vector, by name, freshly made by the C program.
fn made() -> Vec<(String, Vec<u8>)> {
    let scratch = env::temp_dir().join(format!("laneway-golden-{}", std::process::id()));
    fs::create_dir_all(&scratch).expect("a scratch directory");
    let program = scratch.join("vectors");
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let built = Command::new(&compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(directory().join("vectors.c"))
        .output();
    let built = match built {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            panic!("no C compiler named '{compiler}' on this machine: install gcc or clang, or name one in CC")
        }
        built => built.expect("the compiler starts"),
    };
    assert!(built.status.success(), "{compiler} failed:\n{}", String::from_utf8_lossy(&built.stderr));
    assert!(Command::new(&program).arg(&scratch).status().expect("the program starts").success());
    let mut vectors: Vec<_> = fs::read_dir(&scratch)
        .expect("the scratch directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bin"))
        .map(|path| {
            let name = path.file_stem().expect("a name").to_str().expect("ASCII").to_string();
            (name, fs::read(&path).expect("readable"))
        })
        .collect();
    vectors.sort();
    fs::remove_dir_all(&scratch).expect("the scratch directory is ours to remove");
    vectors
}

#[test]
fn the_committed_vectors_and_seeds_are_what_the_c_program_makes() {
    let write = env::var("LANEWAY_GOLDEN").is_ok_and(|mode| mode == "write");
    let vectors = made();
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    let mut wanted = BTreeSet::new();
    for (name, bytes) in &vectors {
        let mut files = vec![(directory().join(format!("{name}.bin")), bytes.clone())];
        for (target, seed) in wire_properties::seeds(name, bytes) {
            files.push((seeds.join(target).join(name), seed));
        }
        for (path, bytes) in files {
            if write {
                fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
                fs::write(&path, &bytes).expect("writable");
            }
            let committed = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(committed == bytes, "{} is stale: LANEWAY_GOLDEN=write", path.display());
            wanted.insert(path);
        }
    }
    for entry in fs::read_dir(directory()).expect("the golden directory") {
        let path = entry.expect("an entry").path();
        let is_vector = path.extension().is_some_and(|extension| extension == "bin");
        assert!(!is_vector || wanted.contains(&path), "{} is made by nobody", path.display());
    }
}

fn config() -> CallConfig {
    let mut config = CallConfig {
        aicpu_thread_num: 4,
        enable_chip_swimlane: 2,
        enable_dump_args: 1,
        enable_pmu: 7,
        enable_dep_gen: 1,
        enable_scope_stats: 1,
        ring_task_window: [16, 0, 1024, 0],
        ring_heap: [1024, 0, 0, 1 << 30],
        ring_dep_pool: [0, 100, 0, 0x7fff_ffff],
        ..CallConfig::ZERO
    };
    config.set_output_prefix(b"/tmp/out/run-1").expect("a short path");
    config
}

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

fn contiguous() -> ChipTensor {
    ChipTensor::contiguous(0x7f00_0000_1000, 4096, Dtype::F32, &[4, 8], AddressSpace::Host).expect("fits")
}

fn five() -> ChipTensor {
    let whole = ChipTensor::contiguous(0x10_0000, 7680, Dtype::Bf16, &[2, 4, 4, 5, 3], AddressSpace::Device);
    whole
        .and_then(|tensor| tensor.with_row_major(&[2, 4, 4, 5, 3], 480))
        .expect("fits")
        .with_owner_task(Some(77))
        .with_version(-3)
        .with_manual_dep(true)
}

fn decode_one(bytes: &[u8]) -> ChipTensor {
    let mut snapshot = ArgsSnapshot::new();
    snapshot.words_mut()[0] = 1;
    snapshot.words_mut()[1..17].as_mut_bytes().copy_from_slice(bytes);
    args::decode(snapshot.blob(), args::MAX_BYTES).expect("legal").tensors()[0]
}

#[test]
fn chip_tensors() {
    let vectors = [
        ("chip_tensor_contiguous", contiguous()),
        ("chip_tensor_strided", contiguous().slice(1, 1, 8, 2).expect("a slice")),
        ("chip_tensor_transposed", contiguous().transpose(0, 1).expect("two dimensions")),
        ("chip_tensor_empty", contiguous().view(&[0, 8], &[4, 0]).expect("no elements")),
        ("chip_tensor_five", five()),
    ];
    for (name, value) in vectors {
        let bytes = golden(name);
        assert_eq!(decode_one(&bytes), value, "{name}");
        assert_eq!(value.as_bytes(), bytes, "{name}");
    }
}

fn buffer(space: AddressSpace, access: Access, id: u64, nbytes: u64) -> (BufferIdentity, BufferRange) {
    let identity = BufferIdentity { owner: *b"OWNER--1", buffer_id: id, generation: 9 };
    (identity, BufferRange { space, access, nbytes, owner_path: 0x0102 })
}

fn at_address(
    backend: Backend,
    space: AddressSpace,
    access: Access,
    id: u64,
    nbytes: u64,
    addr: u64,
) -> BufferDescriptor {
    let (identity, range) = buffer(space, access, id, nbytes);
    BufferDescriptor::at_address(backend, identity, range, addr).expect("legal")
}

fn by_name(id: u64, nbytes: u64, name: &str) -> BufferDescriptor {
    let (identity, range) = buffer(AddressSpace::Host, Access::ReadWrite, id, nbytes);
    BufferDescriptor::posix(identity, range, name).expect("legal")
}

#[test]
fn self_describing_tensors() {
    use Access::{Read, ReadWrite, Write};
    use AddressSpace::{Device, Host};
    let remote = {
        let (identity, range) = buffer(Device, Write, 4, 4096);
        BufferDescriptor::remote(identity, range).expect("legal")
    };
    let vectors = [
        ("tensor_fork_shm", at_address(Backend::ForkShm, Host, ReadWrite, 1, 4096, 0x7f00_0000_1000), 16, 16),
        ("tensor_posix_shm", by_name(2, 4096, "psm_0123456789abcdef0123456789ab"), 0, 8),
        ("tensor_vmm_window", at_address(Backend::VmmWindow, Device, ReadWrite, 3, 4096, 0x10_0000), 0, 8),
        ("tensor_remote_sidecar", remote, 0, 8),
        ("tensor_device_malloc", at_address(Backend::DeviceMalloc, Device, ReadWrite, 5, 4096, 0x20_0000), 0, 8),
        ("tensor_fork_cow", at_address(Backend::ForkCow, Host, Read, 6, 4096, 0x30_0000), 0, 8),
    ];
    for (name, buffer, byte_offset, row) in vectors {
        let value = Tensor::new(buffer, byte_offset, Dtype::F32, &[4, 8], &[row, 1]).expect("legal");
        let bytes = golden(name);
        assert_eq!(value.as_bytes(), bytes, "{name}");
        let mut snapshot = ArgsSnapshot::new();
        snapshot.words_mut()[0] = 1;
        snapshot.words_mut()[1..19].as_mut_bytes().copy_from_slice(&bytes);
        let list = args::decode_described(snapshot.blob(), args::MAX_BYTES).expect("legal");
        assert_eq!(list.tensors(), [value], "{name}");
    }
}

fn nth(i: u64) -> ChipTensor {
    ChipTensor::contiguous(0x20_0000 + 64 * i, 64, Dtype::F32, &[16], AddressSpace::Host).expect("fits")
}

fn nth_described(i: u64) -> Tensor {
    let addr = 0x30_0000 + 64 * i;
    let buffer = at_address(Backend::ForkShm, AddressSpace::Host, Access::ReadWrite, 1000 + i, 64, addr);
    Tensor::contiguous(buffer, 0, Dtype::F32, &[4, 4]).expect("fits")
}

fn scalars(count: usize) -> Vec<u64> {
    (0..count as u64).map(|i| 0x1111_1111_1111_1111 * (i % 16)).collect()
}

fn snapshot(bytes: &[u8]) -> ArgsSnapshot {
    let mut snapshot = ArgsSnapshot::new();
    snapshot.words_mut().as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
    snapshot
}

/// W-4, W-7
#[test]
fn argument_lists() {
    for tensors in [0, 1, 256] {
        for scalar_count in [0, 128] {
            let scalars = scalars(scalar_count);
            let mut out = vec![0xEE; args::MAX_BYTES];

            let bytes = golden(&format!("args_v2_t{tensors}_s{scalar_count}"));
            let list: Vec<_> = (0..tensors).map(nth).collect();
            let private = snapshot(&bytes);
            let view = args::decode(private.blob(), bytes.len()).expect("legal");
            assert_eq!((view.tensors(), view.scalars()), (&list[..], &scalars[..]));
            let len = args::encode(&list, &scalars, &mut out).expect("room");
            assert_eq!(&out[..len], bytes);
            assert_eq!(args::encoded_len(list.len(), scalar_count, Protocol::ChipTensors), Ok(len));

            let bytes = golden(&format!("args_v3_t{tensors}_s{scalar_count}"));
            let list: Vec<_> = (0..tensors).map(nth_described).collect();
            let private = snapshot(&bytes);
            let view = args::decode_described(private.blob(), bytes.len()).expect("legal");
            assert_eq!((view.tensors(), view.scalars()), (&list[..], &scalars[..]));
            let len = args::encode_described(&list, &scalars, &mut out).expect("room");
            assert_eq!(&out[..len], bytes);
            assert_eq!(args::encoded_len(list.len(), scalar_count, Protocol::Tensors), Ok(len));
        }
    }
}

#[test]
fn chip_storage() {
    let bytes = golden("chip_storage");
    let decoded = ChipStorageTaskArgs::read_from_bytes(&bytes).expect("33,856 bytes");
    assert_eq!(decoded.tensors(), Ok(&[contiguous(), five()][..]));
    assert_eq!(decoded.scalars(), Ok(&[42][..]));
    let mut list = vec![0; 1024];
    let len = args::encode(&[contiguous(), five()], &[42], &mut list).expect("room");
    let private = snapshot(&list[..len]);
    let mut storage = ChipStorageTaskArgs::new();
    storage.load(args::decode(private.blob(), len).expect("legal"));
    assert_eq!(storage.as_bytes(), bytes);
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

/// Each control command, at its place on the base frame.
#[test]
fn controls() {
    let digest = |first: u8| Digest(std::array::from_fn(|i| first + i as u8));
    let addresses = CopySpan::Addresses { dst: 0xd000_1000, src: 0x7f00_0000_2000, nbytes: 256 };
    let device = at_address(Backend::DeviceMalloc, AddressSpace::Device, Access::ReadWrite, 5, 4096, 0xd000_1000);
    let buffers = CopySpan::Buffers { dst: device, src: by_name(6, 512, "psm_3f"), nbytes: 256 };
    let named = Staged::Shm(ShmName::new("/psm_callable_0123456789abcdef0").expect("31 bytes"));
    let (v2, v3) = (Protocol::ChipTensors, Protocol::Tensors);
    let vectors = [
        ("malloc", v2, ControlRequest::Malloc { bytes: 1 << 20 }),
        ("free", v2, ControlRequest::Free { address: 0xd000_0000 }),
        ("copy_to_v2", v2, ControlRequest::CopyTo(addresses)),
        ("copy_to_v3", v3, ControlRequest::CopyTo(buffers)),
        ("copy_from_v2", v2, ControlRequest::CopyFrom(addresses)),
        ("copy_from_v3", v3, ControlRequest::CopyFrom(buffers)),
        ("prepare", v2, ControlRequest::Prepare { digest: digest(0x10) }),
        (
            "register",
            v2,
            ControlRequest::Register { staged: Staged::Region(0x1f_40c0), bytes: 9999, digest: digest(0x10) },
        ),
        ("unregister", v2, ControlRequest::Unregister { digest: digest(0x10) }),
        ("alloc_domain", v2, ControlRequest::Unsupported(ControlCommand::AllocDomain)),
        ("release_domain", v2, ControlRequest::Unsupported(ControlCommand::ReleaseDomain)),
        ("comm_init", v2, ControlRequest::Unsupported(ControlCommand::CommInit)),
        ("region_allocate", v2, ControlRequest::Unsupported(ControlCommand::RegionAllocate)),
        ("region_release", v2, ControlRequest::Unsupported(ControlCommand::RegionRelease)),
        ("py_register", v2, ControlRequest::PyRegister { staged: named, bytes: 321, digest: digest(0x20) }),
        ("py_unregister", v2, ControlRequest::PyUnregister { digest: digest(0x20) }),
        ("committed_device_memory", v2, ControlRequest::CommittedDeviceMemory),
    ];
    let mut commands = BTreeSet::new();
    for (name, protocol, request) in vectors {
        let bytes = golden(&format!("control_{name}"));
        let gathered = wire_properties::gather_control(&bytes);
        assert_eq!(gathered.decode(protocol), Ok(request), "{name}");
        commands.insert(gathered.subcommand);

        let encoded = ControlFrame::encode(&request);
        let mut head = vec![0; frame::CONTROL_PAYLOAD + frame::CONTROL_PAYLOAD_BYTES];
        head[frame::STATE..][..4].copy_from_slice(&FrameState::ControlRequest.raw().to_le_bytes());
        head[frame::SUBCOMMAND..][..8].copy_from_slice(&encoded.subcommand.to_le_bytes());
        head[frame::CONTROL_ARG0..][..8].copy_from_slice(&encoded.arg0.to_le_bytes());
        head[frame::CONTROL_PAYLOAD..].copy_from_slice(&encoded.payload);
        assert_eq!(head, bytes, "{name}");
    }
    let all: BTreeSet<_> = ControlCommand::ALL.iter().map(|command| command.raw()).collect();
    assert_eq!(commands, all);
}

///
#[test]
fn identities() {
    let abc = identity::sha256(b"abc");
    let signature = [ArgDirection::In, ArgDirection::In, ArgDirection::Out];
    let vectors = [
        (
            "descriptor_chip_callable",
            Descriptor::ChipCallable {
                platform: "a2a3sim",
                runtime: "host_build_graph",
                blob: std::array::from_fn(|i| i as u8),
                signature: identity::signature_digest(signature.into_iter()),
            },
        ),
        ("descriptor_python_serialized", Descriptor::PythonSerialized { payload: abc }),
        ("descriptor_python_import", Descriptor::PythonImport { module: "my_pkg.remote_orch", qualname: "l3_orch" }),
        ("descriptor_native", Descriptor::Native { name: "scale", version: 2, captured: abc, instance: 3 }),
    ];
    for (name, descriptor) in vectors {
        let bytes = golden(name);
        assert_eq!(Descriptor::decode(&bytes), Ok(descriptor), "{name}");
        let mut out = Vec::new();
        descriptor.write(|piece| out.extend_from_slice(piece)).expect("a known platform");
        assert_eq!(out, bytes, "{name}");
    }
    let text = golden("digest_text");
    let digest = Digest::from_text(&text).expect("71 characters");
    assert_eq!(vectors[0].1.digest(), Ok(digest));
    assert_eq!(digest.to_string().as_bytes(), text);
}

/// C-2: the contracts seen in the field.
#[test]
fn contracts_and_run_descriptor() {
    use ResourceClass::{DeviceScratch, ExecHandle, HostPerRun};
    use ResourceKind::{AicoreStream, AicpuStream, GmHeap, GmSm, RuntimeImage, TaskArgs};
    let tmr = [
        (TaskArgs, HostPerRun),
        (GmHeap, DeviceScratch),
        (GmSm, DeviceScratch),
        (RuntimeImage, DeviceScratch),
        (AicpuStream, ExecHandle),
        (AicoreStream, ExecHandle),
    ];
    let hbg = [(GmHeap, HostPerRun), (RuntimeImage, HostPerRun), (AicpuStream, ExecHandle), (AicoreStream, ExecHandle)];
    for (name, resources) in [("contract_tmr", &tmr[..]), ("contract_hbg", &hbg[..])] {
        let bytes = golden(name);
        let contract = PipelineContract::read_from_bytes(&bytes).expect("144 bytes");
        contract.validate().expect("legal");
        assert!(contract.declared().eq(resources.iter().copied()), "{name}");
        assert_eq!(PipelineContract::new(2, resources).expect("legal").as_bytes(), bytes, "{name}");
    }
    let run = NativeRunDescriptor {
        pipeline_slot: 1,
        arena_bank: 1,
        run_id: 11,
        generation: 5,
        dispatch_id: 23,
        run_epoch: 99,
        accepted_state: 0x7f00_0000_3000,
        accepted_value: 1,
        reserved: 0,
    };
    assert_eq!(run.as_bytes(), golden("native_run"));
}

/// C-14
#[test]
fn chip_callable() {
    let bytes = golden("chip_callable");
    let callable = ChipCallable::parse(&bytes).expect("legal");
    assert_eq!((callable.func_name(), callable.config_name()), ("orchestrate", "configure"));
    let children: Vec<_> = callable.children().collect();
    assert_eq!(children.iter().map(|child| child.func_id()).collect::<Vec<_>>(), [7, -1]);
    assert_eq!(children.iter().map(|child| child.offset()).collect::<Vec<_>>(), [128, 384]);
    let binary: Vec<u8> = (0..100).collect();
    let source = ChipCallableSource {
        func_name: "orchestrate",
        config_name: "configure",
        signature: &[ArgDirection::In, ArgDirection::In, ArgDirection::Out, ArgDirection::Scalar],
        binary: &binary,
        children: &[
            CoreCallableSource { func_id: 7, signature: &[ArgDirection::InOut], resolved_addr: 0, binary: &[0xA0; 33] },
            CoreCallableSource {
                func_id: -1,
                signature: &[ArgDirection::InOut, ArgDirection::Scalar],
                resolved_addr: 0x1234,
                binary: &[0xA1; 5],
            },
        ],
    };
    assert!(callable.signature().eq(source.signature.iter().copied()));
    for (child, source) in children.iter().zip(source.children) {
        assert!(child.signature().eq(source.signature.iter().copied()));
        assert_eq!((child.binary(), child.resolved_addr()), (source.binary, source.resolved_addr));
    }
    let mut out = vec![0xEE; source.encoded_len().expect("small")];
    assert_eq!(source.encode(&mut out), Ok(bytes.len()));
    assert!(out == bytes);
}

fn worker(id: i32) -> WorkerId {
    WorkerId::new(id).expect("not negative")
}

fn nonzero(value: u64) -> NonZeroU64 {
    NonZeroU64::new(value).expect("not 0")
}

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

    let config = RemoteConfig::of(&unset).expect("travels");
    let args = RemoteArgsParts { tensors: &tensors, sidecars: &sidecars, scalars: &scalars, inline: &inline };
    let mut out = vec![0; 4096];
    let len = RemoteTaskParts { digest: task.digest, config, args }.encode(&mut out).expect("room");
    assert_eq!(&out[..len], payload);
    let len = Payload::Task(task).encode(&mut out).expect("room");
    assert_eq!(&out[..len], payload);
    assert_eq!(
        RemoteConfig::of(&self::config()),
        Err(WireError::NotZero { field: "runtime_env.ring_task_window", value: 16 })
    );
}
