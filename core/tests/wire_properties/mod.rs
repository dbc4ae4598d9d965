//! What holds for every input of every decoder. The fuzz targets and the tests on stable Rust run the same functions;
//! each panics if its property does not hold.

#![allow(dead_code)] // each of those who include it uses a part

use laneway_core::ids::PipelineSlot;
use laneway_core::model::identity::Descriptor;
use laneway_core::wire::args::{self, ArgsSnapshot, ArgsView};
use laneway_core::wire::control::{ControlFrame, ControlRequest, CopySpan};
use laneway_core::wire::frame::{self, FrameArgs, TaskFrame};
use laneway_core::wire::remote::{
    ChipPayload, FrameHeader, FrameType, HEADER_BYTES, Payload, RemoteArgsParts, RemoteConfig, RemoteReply,
    RemoteRequest, RemoteTaskParts, caps,
};
use laneway_core::wire::*;
use zerocopy::{FromBytes, IntoBytes};

/// A fuzz target: its name, the property that it runs, and how large an input it can use.
pub(crate) struct Target {
    /// Name of the target and of its folder of seeds.
    pub(crate) name: &'static str,
    /// Panics if the property does not hold for the input.
    pub(crate) run: fn(&[u8]),
    /// Longer inputs show nothing new.
    pub(crate) max_len: usize,
}

/// Every fuzz target.
pub(crate) const TARGETS: [Target; 8] = [
    Target { name: "task_frame", run: task_frame, max_len: 4_096 },
    Target { name: "args_v2", run: args_v2, max_len: args::MAX_BYTES },
    Target { name: "args_v3", run: args_v3, max_len: args::MAX_BYTES },
    Target { name: "call_config", run: call_config, max_len: 1_144 },
    Target { name: "control_frame", run: control_frame, max_len: 201 },
    Target { name: "chip_callable", run: chip_callable, max_len: 16_384 },
    Target { name: "remote_frame", run: remote_frame, max_len: 8_192 },
    Target { name: "identity_text", run: identity_text, max_len: 1_024 },
];

/// Bytes from `shutdown` to the end of a frame: what a task frame's input starts with.
const TAIL: usize = frame::FRAME_BYTES - frame::SHUTDOWN;

/// The seeds that a golden vector gives: target and input.
pub(crate) fn seeds(name: &str, bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    if name.starts_with("task_frame") {
        return vec![("task_frame", [&bytes[frame::SHUTDOWN..], &bytes[..4_096 - TAIL]].concat())];
    }
    if name == "call_config" {
        return vec![("call_config", bytes.to_vec())];
    }
    if name.starts_with("args_v2") {
        return vec![("args_v2", bytes.to_vec())];
    }
    if name.starts_with("args_v3") {
        return vec![("args_v3", bytes.to_vec())];
    }
    if name.starts_with("chip_tensor") {
        return vec![("args_v2", [&1u64.to_le_bytes(), bytes].concat())];
    }
    if name.starts_with("tensor_") {
        return vec![("args_v3", [&1u64.to_le_bytes(), bytes].concat())];
    }
    if name.starts_with("control_") {
        let protocol = u8::from(name.ends_with("v3"));
        return vec![("control_frame", [&[protocol], gather_control(bytes).as_bytes()].concat())];
    }
    if name == "chip_callable" {
        return vec![("chip_callable", bytes.to_vec())];
    }
    if name.starts_with("remote_") && name != "remote_header" {
        return vec![("remote_frame", bytes.to_vec())];
    }
    if name.starts_with("descriptor_") || name == "digest_text" {
        return vec![("identity_text", bytes.to_vec())];
    }
    vec![]
}

/// The words of a control, gathered from the head of a base frame.
pub(crate) fn gather_control(head: &[u8]) -> ControlFrame {
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
    ControlFrame {
        subcommand: word(frame::SUBCOMMAND),
        arg0: word(frame::CONTROL_ARG0),
        payload: head[frame::CONTROL_PAYLOAD..][..frame::CONTROL_PAYLOAD_BYTES].try_into().expect("184 bytes"),
    }
}

/// The judgement of a tensor by other means: wide arithmetic, written from the contract's table.
pub(crate) fn chip_tensor_is_legal(tensor: &ChipTensor) {
    let (shape, strides) = (tensor.shape(), tensor.strides());
    assert!((1..=5).contains(&shape.len()) && strides.len() == shape.len());
    assert!(strides.iter().all(|&stride| stride > 0));
    let empty = shape.contains(&0);
    let reach = shape.iter().zip(strides).map(|(&n, &s)| u128::from(n.saturating_sub(1)) * u128::from(s)).sum::<u128>();
    let extent = if empty { 0 } else { reach + 1 };
    assert_eq!(u128::from(tensor.extent()), extent);
    let range = tensor.byte_range();
    let end = u128::from(tensor.addr()) + u128::from(tensor.buffer_bytes());
    assert!(end <= u128::from(u64::MAX));
    let element = u128::from(tensor.dtype().element_bytes());
    if empty {
        assert!(range.is_empty());
    } else {
        assert_eq!(u128::from(range.len()), extent * element);
        assert!(range.start >= tensor.addr() && u128::from(range.end) <= end);
    }
    if tensor.is_contiguous() && !empty {
        let mut row = 1u128;
        for (&n, &s) in shape.iter().zip(strides).rev() {
            assert!(n == 1 || u128::from(s) == row);
            row *= u128::from(n);
        }
    }
    tensor.validate().expect("a decoded tensor is legal");
}

/// The judgement of a self-describing tensor by other means.
fn tensor_is_legal(tensor: &Tensor) {
    let (shape, strides) = (tensor.shape(), tensor.strides());
    assert!((1..=5).contains(&shape.len()) && strides.len() == shape.len());
    assert!(shape.iter().chain(strides).all(|&entry| entry > 0));
    let reach = shape.iter().zip(strides).map(|(&n, &s)| u128::from(n - 1) * u128::from(s)).sum::<u128>();
    let (buffer, element) = (tensor.buffer(), u128::from(tensor.dtype().element_bytes()));
    let range = buffer.range();
    assert!(u128::from(tensor.byte_offset()) + (reach + 1) * element <= u128::from(range.nbytes));
    buffer_is_legal(buffer);
    tensor.validate().expect("a decoded tensor is legal");
}

pub(crate) fn buffer_is_legal(buffer: &BufferDescriptor) {
    let range = buffer.range();
    assert_ne!(buffer.identity().generation, 0);
    match buffer.backend() {
        Backend::VmmWindow | Backend::DeviceMalloc => assert_eq!(range.space, AddressSpace::Device),
        Backend::ForkShm | Backend::PosixShm | Backend::ForkCow => assert_eq!(range.space, AddressSpace::Host),
        Backend::RemoteSidecar => {}
    }
    if let Some(addr) = buffer.address() {
        assert!(addr != 0 && addr.checked_add(range.nbytes).is_some());
    }
    if let Some(name) = buffer.shm_name() {
        assert!((1..=32).contains(&name.len()));
        assert!(name.bytes().all(|byte| (0x20..0x7F).contains(&byte) && byte != b'/'));
    }
    assert!(buffer.backend() != Backend::ForkCow || range.access == Access::Read);
    let bytes: [u8; BufferDescriptor::BYTES] = buffer.as_bytes().try_into().expect("88 bytes");
    assert_eq!(BufferDescriptor::decode(&bytes).as_ref(), Ok(buffer));
}

/// A task frame: the tail of the frame first, then its head.
pub(crate) fn task_frame(input: &[u8]) {
    let mut frame = TaskFrame::new();
    let (tail, head) = input.split_at(input.len().min(TAIL));
    let bytes = frame.as_mut_bytes();
    bytes[frame::SHUTDOWN..][..tail.len()].copy_from_slice(tail);
    let head = &head[..head.len().min(frame::SHUTDOWN)];
    bytes[..head.len()].copy_from_slice(head);
    let rule = match frame.reserved {
        0 => SlotRule::Below(2),
        _ => SlotRule::Exactly(PipelineSlot::One),
    };
    for served in [Protocol::ChipTensors, Protocol::Tensors] {
        let decoded = frame.decode(served, rule);
        if frame.trailer.protocol != served.version() {
            let (found, served) = (frame.trailer.protocol, served.version());
            assert_eq!(decoded, Err(WireError::Protocol { found, served }));
            continue;
        }
        let Ok(request) = decoded else { continue };
        assert!(rule.allows(request.identity.slot));
        assert_eq!(request.identity.trailer(served), frame.trailer);
        assert_eq!(request.identity.lease(), frame.lease);
        request.config.validate().expect("a decoded config is legal");
        let mut again = TaskFrame {
            config: *request.config,
            lease: request.identity.lease(),
            digest: *request.digest,
            trailer: request.identity.trailer(served),
            ..TaskFrame::new()
        };
        match request.args {
            FrameArgs::ChipTensors(list) => {
                assert_eq!(served, Protocol::ChipTensors);
                list.tensors().iter().for_each(chip_tensor_is_legal);
                args::encode(list.tensors(), list.scalars(), &mut again.args).expect("it fitted before");
            }
            FrameArgs::Tensors(list) => {
                assert_eq!(served, Protocol::Tensors);
                list.tensors().iter().for_each(tensor_is_legal);
                args::encode_described(list.tensors(), list.scalars(), &mut again.args).expect("it fitted before");
            }
        }
        assert_eq!(again.decode(served, rule), Ok(request));
    }
    assert!(frame::message_text(&frame.message).len() <= frame::MESSAGE_BYTES);
}

/// Tensors and scalars into bytes, the length written.
type Encode<E> = fn(&[E], &[u64], &mut [u8]) -> Result<usize, WireError>;

/// What holds for an argument list of either protocol.
fn list<'a, E: args::Element + PartialEq + std::fmt::Debug>(
    private: &'a ArgsSnapshot,
    capacity: usize,
    width: usize,
    encode: Encode<E>,
) -> Option<ArgsView<'a, E>> {
    let word = |at: usize| i32::from_le_bytes(private.blob()[at..at + 4].try_into().expect("4 bytes"));
    let (tensors, scalars) = (word(0), word(4));
    let decoded = ArgsView::<E>::decode(private.blob(), capacity);
    let counts = (0..=256).contains(&tensors) && (0..=128).contains(&scalars);
    if capacity >= 8 && !counts {
        assert!(matches!(decoded, Err(WireError::ArgCounts { .. })), "{decoded:?}");
    }
    let view = decoded.ok()?;
    assert!(counts);
    assert_eq!((view.tensors().len(), view.scalars().len()), (tensors as usize, scalars as usize));
    let need = 8 + width * tensors as usize + 8 * scalars as usize;
    assert!(need <= capacity);
    let mut out = vec![0xEE; need];
    assert_eq!(encode(view.tensors(), view.scalars(), &mut out), Ok(need));
    assert!(out == private.blob()[..need], "a list encodes to the bytes that it was decoded from");
    assert!(encode(view.tensors(), view.scalars(), &mut out[..need - 1]).is_err());
    Some(view)
}

/// Private memory that holds `input` and nothing behind it.
pub(crate) fn private(input: &[u8]) -> (ArgsSnapshot, usize) {
    let mut snapshot = ArgsSnapshot::new();
    let len = input.len().min(args::MAX_BYTES);
    snapshot.words_mut().as_mut_bytes()[..len].copy_from_slice(&input[..len]);
    (snapshot, len)
}

/// An argument list of protocol 2.
pub(crate) fn args_v2(input: &[u8]) {
    let (private, capacity) = private(input);
    if let Some(view) = list::<ChipTensor>(&private, capacity, 128, args::encode) {
        view.tensors().iter().for_each(chip_tensor_is_legal);
        let mut storage = ChipStorageTaskArgs::new();
        storage.load(view);
        assert_eq!(storage.tensors(), Ok(view.tensors()));
        assert_eq!(storage.scalars(), Ok(view.scalars()));
    }
}

/// An argument list of protocol 3.
pub(crate) fn args_v3(input: &[u8]) {
    let (private, capacity) = private(input);
    if let Some(view) = list::<Tensor>(&private, capacity, 144, args::encode_described) {
        view.tensors().iter().for_each(tensor_is_legal);
    }
}

/// A `CallConfig`; what is missing is zero.
pub(crate) fn call_config(input: &[u8]) {
    let mut bytes = [0; size_of::<CallConfig>()];
    let len = input.len().min(bytes.len());
    bytes[..len].copy_from_slice(&input[..len]);
    let config = CallConfig::read_from_bytes(&bytes).expect("1,144 bytes");
    let enables = [
        config.enable_chip_swimlane,
        config.enable_dump_args,
        config.enable_pmu,
        config.enable_dep_gen,
        config.enable_scope_stats,
    ];
    assert_eq!(config.is_diagnostic(), enables.iter().any(|&enable| enable != 0));
    if config.validate().is_err() {
        return;
    }
    assert!(config.aicpu_thread_num == 0 || config.aicpu_thread_num >= 2);
    assert!((0..=4).contains(&config.enable_chip_swimlane));
    for ring in 0..RINGS {
        let (window, heap, pool) = (config.ring_task_window[ring], config.ring_heap[ring], config.ring_dep_pool[ring]);
        assert!(window == 0 || (window >= 4 && window.count_ones() == 1 && i32::try_from(window).is_ok()));
        assert!(heap == 0 || heap >= 1024);
        assert!(pool == 0 || (pool >= 4 && i32::try_from(pool).is_ok()));
    }
    let prefix = config.output_prefix().expect("a NUL");
    assert!(prefix.len() < OUTPUT_PREFIX_BYTES && !prefix.contains(&0));
    assert!(!config.is_diagnostic() || !prefix.is_empty());
    let mut again = config;
    again.set_output_prefix(prefix).expect("it fitted before");
    assert_eq!(again.output_prefix(), Ok(prefix));
    if let Ok(remote) = RemoteConfig::of(&config) {
        assert_eq!(remote.to_config(), Ok(again));
    }
}

/// A control: protocol, then the gathered words; what is missing is zero.
pub(crate) fn control_frame(input: &[u8]) {
    let (protocol, input) = input.split_first().map_or((0, input), |(first, rest)| (*first, rest));
    let served = if protocol & 1 == 0 { Protocol::ChipTensors } else { Protocol::Tensors };
    let mut bytes = [0; size_of::<ControlFrame>()];
    let len = input.len().min(bytes.len());
    bytes[..len].copy_from_slice(&input[..len]);
    let control = ControlFrame::read_from_bytes(&bytes).expect("200 bytes");
    let request = match control.decode(served) {
        Ok(request) => request,
        Err(WireError::UnknownCommand { value }) => {
            assert_eq!(value, control.subcommand);
            assert!(!matches!(value, 0..=11 | 16..=18));
            return;
        }
        Err(_) => return,
    };
    assert_eq!(request.command().raw(), control.subcommand);
    assert_eq!(ControlFrame::encode(&request).decode(served), Ok(request));
    if let ControlRequest::CopyTo(span) | ControlRequest::CopyFrom(span) = request {
        match span {
            CopySpan::Addresses { .. } => assert_eq!(served, Protocol::ChipTensors),
            CopySpan::Buffers { dst, src, nbytes } => {
                assert_eq!(served, Protocol::Tensors);
                assert!(nbytes <= dst.range().nbytes && nbytes <= src.range().nbytes);
                buffer_is_legal(&dst);
                buffer_is_legal(&src);
            }
        }
    }
}

/// A chip callable.
pub(crate) fn chip_callable(input: &[u8]) {
    let Ok(callable) = ChipCallable::parse(input) else { return };
    let within = |part: &[u8]| {
        let (whole, part) = (input.as_ptr_range(), part.as_ptr_range());
        assert!(whole.start <= part.start && part.end <= whole.end);
    };
    within(callable.binary());
    let children: Vec<_> = callable.children().collect();
    let mut taken = vec![(0, callable.binary().len() as u64)];
    for child in &children {
        within(child.binary());
        let start = u64::from(child.offset());
        assert!(start.is_multiple_of(64));
        taken.push((start, start + 192 + child.binary().len() as u64));
    }
    taken.sort_unstable();
    assert!(taken.windows(2).all(|pair| pair[0].1 <= pair[1].0 || pair[0].0 == pair[0].1), "parts overlap");

    let signatures: Vec<Vec<_>> = children.iter().map(|child| child.signature().collect()).collect();
    let sources: Vec<_> = children
        .iter()
        .zip(&signatures)
        .map(|(child, signature)| CoreCallableSource {
            func_id: child.func_id(),
            signature,
            resolved_addr: child.resolved_addr(),
            binary: child.binary(),
        })
        .collect();
    let signature: Vec<_> = callable.signature().collect();
    let source = ChipCallableSource {
        func_name: callable.func_name(),
        config_name: callable.config_name(),
        signature: &signature,
        binary: callable.binary(),
        children: &sources,
    };
    let mut out = vec![0; source.encoded_len().expect("it fitted before")];
    assert_eq!(source.encode(&mut out), Ok(out.len()));
    let again = ChipCallable::parse(&out).expect("what we write is legal");
    assert_eq!((again.func_name(), again.config_name()), (callable.func_name(), callable.config_name()));
    assert_eq!(again.binary(), callable.binary());
    assert!(again.signature().eq(signature.iter().copied()));
    assert_eq!(again.children().count(), children.len());
    for (a, b) in again.children().zip(&children) {
        assert_eq!((a.func_id(), a.resolved_addr(), a.binary()), (b.func_id(), b.resolved_addr(), b.binary()));
        assert!(a.signature().eq(b.signature()));
    }
}

/// A frame between hosts: header, then payload. The payload is decoded whatever the header's other fields say; its type
/// is chosen by the type byte.
pub(crate) fn remote_frame(input: &[u8]) {
    let Some((header, payload)) = input.split_first_chunk::<HEADER_BYTES>() else {
        assert!(FrameHeader::split(input).is_err());
        return;
    };
    if let Ok(decoded) = FrameHeader::decode(header) {
        assert_eq!(decoded.encode().as_ref(), Ok(header));
        let split = FrameHeader::split(input);
        assert_eq!(split.is_ok(), decoded.payload_bytes as usize == payload.len());
    }
    let Ok(kind) = FrameType::from_code(u32::from(header[8] & 7)) else { return };
    let Ok(decoded) = Payload::decode(kind, payload) else { return };
    assert_eq!(decoded.kind(), kind);
    let mut out = vec![0; payload.len()];
    assert_eq!(decoded.encode(&mut out), Ok(payload.len()));
    assert!(out == payload, "a payload encodes to the bytes that it was decoded from");
    match decoded {
        Payload::Task(task) => {
            let args = task.args;
            assert!(args.tensor_count() <= caps::TENSORS && args.scalars().len() <= caps::SCALARS as usize);
            assert_eq!(args.tensors().count(), args.tensor_count() as usize);
            assert_eq!(args.sidecars().count(), args.tensor_count() as usize);
            args.tensors().for_each(|tensor| tensor_is_legal(&tensor));
            args.sidecars().flatten().for_each(|sidecar| {
                sidecar.check(args.inline().len() as u32).expect("a decoded sidecar is legal");
            });
            task.config.to_config().expect("a decoded config is legal");
            let (tensors, sidecars): (Vec<_>, Vec<_>) = args.tensors().zip(args.sidecars()).unzip();
            let scalars: Vec<_> = args.scalars().collect();
            let (tensors, sidecars, scalars) = (&tensors[..], &sidecars[..], &scalars[..]);
            let args = RemoteArgsParts { tensors, sidecars, scalars, inline: args.inline() };
            let parts = RemoteTaskParts { digest: task.digest, config: task.config, args };
            out.fill(0);
            assert_eq!(parts.encode(&mut out), Ok(payload.len()));
            assert!(out == payload, "a task encodes from its parts to the bytes that it was decoded from");
        }
        Payload::Control(control) => {
            let Ok(request) = RemoteRequest::decode(control.command, control.body) else { return };
            assert_eq!(request.command(), control.command);
            if let RemoteRequest::Unsupported(_) = request {
                return;
            }
            let mut body = vec![0; control.body.len()];
            assert_eq!(request.encode(&mut body), Ok(body.len()));
            assert!(body == control.body);
            if let RemoteRequest::PrepareRegister(register) = request
                && let Ok(chip) = ChipPayload::decode(register.payload)
            {
                assert_eq!(chip.size, chip.inline.len() as u64);
                let mut bytes = vec![0; register.payload.len()];
                assert_eq!(chip.encode(&mut bytes), Ok(bytes.len()));
                assert!(bytes == register.payload);
            }
        }
        Payload::ControlReply(reply) => {
            let Ok(decoded) = RemoteReply::decode(reply.command, reply.body) else { return };
            let mut body = vec![0; reply.body.len()];
            assert_eq!(decoded.encode(&mut body), Ok(body.len()));
            assert!(body == reply.body);
        }
        Payload::Completion(completion) => assert!(completion.message.len() <= caps::MESSAGE as usize),
        Payload::Hello(hello) => assert!(hello.profile.len() <= caps::PROFILE as usize),
        Payload::Health | Payload::Shutdown => assert!(payload.is_empty()),
    }
}

/// The text form of a digest, and the canonical bytes behind one.
pub(crate) fn identity_text(input: &[u8]) {
    match Digest::from_text(input) {
        Ok(digest) => assert_eq!(digest.to_string().as_bytes(), input),
        Err(WireError::DigestFormat { len, at }) => {
            assert_eq!(len, input.len() as u64);
            assert!(at <= len.max(71));
        }
        Err(error) => panic!("{error}"),
    }
    if let Ok(descriptor) = Descriptor::decode(input) {
        let mut out = Vec::new();
        descriptor.write(|piece| out.extend_from_slice(piece)).expect("a decoded platform is known");
        assert_eq!(out, input);
        let digest = descriptor.digest().expect("a decoded platform is known");
        assert_eq!(Digest::from_text(digest.to_string().as_bytes()), Ok(digest));
    }
}
