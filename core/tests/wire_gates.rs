//! Every gate by itself: one field of legal bytes is changed, and the error names that field, its value and the limit.

use laneway_core::ids::{DispatchId, Generation, PipelineSlot, RunId, WorkerId};
use laneway_core::model::{ModelError, TaskArgs};
use laneway_core::wire::args::{self, ArgsSnapshot, Counts};
use laneway_core::wire::control::{ControlCommand, ControlFrame, ShmName, Staged};
use laneway_core::wire::extension;
use laneway_core::wire::frame;
use laneway_core::wire::remote::{
    FrameHeader, FrameType, HEADER_BYTES, MAX_PAYLOAD_BYTES, Payload, RemoteCommand, RemoteRequest, caps,
};
use laneway_core::wire::*;
use zerocopy::{FromBytes, IntoBytes};

fn snapshot(tensors: u64, bytes: &[u8]) -> ArgsSnapshot {
    let mut snapshot = ArgsSnapshot::new();
    snapshot.words_mut()[0] = tensors;
    snapshot.words_mut().as_mut_bytes()[8..][..bytes.len()].copy_from_slice(bytes);
    snapshot
}

fn chip_tensor() -> Vec<u8> {
    let tensor = ChipTensor::contiguous(0x1000, 128, Dtype::F32, &[4, 8], AddressSpace::Host).expect("fits");
    tensor.as_bytes().to_vec()
}

/// The fault of the chip tensor whose bytes from `at` on are `bytes`.
fn chip_fault(at: usize, bytes: &[u8]) -> TensorFault {
    let mut raw = chip_tensor();
    raw[at..at + bytes.len()].copy_from_slice(bytes);
    let snapshot = snapshot(1, &raw);
    match args::decode(snapshot.blob(), args::MAX_BYTES) {
        Err(WireError::Argument { index: 0, fault }) => fault,
        other => panic!("{other:?}"),
    }
}

/// W-7
#[test]
fn each_gate_of_a_chip_tensor_has_its_own_fault() {
    use TensorFault as F;
    assert_eq!(chip_fault(36, &0u32.to_le_bytes()), F::Rank { ndims: 0 });
    assert_eq!(chip_fault(36, &6u32.to_le_bytes()), F::Rank { ndims: 6 });
    assert_eq!(chip_fault(40, &[15]), F::Dtype { code: 15 });
    assert_eq!(chip_fault(41, &[2]), F::Flag { field: "manual_dep", value: 2 });
    assert_eq!(chip_fault(42, &[255]), F::Flag { field: "is_contiguous", value: 255 });
    assert_eq!(chip_fault(43, &[2]), F::AddressSpace { value: 2 });
    assert_eq!(chip_fault(76, &0u32.to_le_bytes()), F::ZeroStride { dim: 1 });
    assert_eq!(chip_fault(76, &2u32.to_le_bytes()), F::NotRowMajor);
    assert_eq!(chip_fault(64, &33u64.to_le_bytes()), F::Extent { declared: 33, actual: 32 });
    assert_eq!(
        chip_fault(24, &1u64.to_le_bytes()),
        F::OutOfBuffer { offset_bytes: 4, extent: 32, element_bytes: 4, buffer_bytes: 128 }
    );
    assert_eq!(
        chip_fault(24, &u64::MAX.to_le_bytes()),
        F::OutOfBuffer { offset_bytes: u64::MAX, extent: 32, element_bytes: 4, buffer_bytes: 128 }
    );
    assert_eq!(
        chip_fault(8, &127u64.to_le_bytes()),
        F::OutOfBuffer { offset_bytes: 0, extent: 32, element_bytes: 4, buffer_bytes: 127 }
    );
    assert_eq!(chip_fault(0, &u64::MAX.to_le_bytes()), F::AddressWraps { addr: u64::MAX, bytes: 128 });
    let mut huge = [0; 20];
    huge.as_mut_slice().fill(0xFF);
    let mut raw = chip_tensor();
    raw[36..40].copy_from_slice(&5u32.to_le_bytes());
    raw[42] = 0;
    raw[44..64].copy_from_slice(&huge);
    raw[72..92].copy_from_slice(&huge);
    let private = snapshot(1, &raw);
    let refused = args::decode(private.blob(), args::MAX_BYTES);
    assert_eq!(refused, Err(WireError::Argument { index: 0, fault: F::ExtentOverflow }));
}

/// What nobody reads is not judged: a peer's compiler may leave padding there.
#[test]
fn padding_of_a_chip_tensor_is_not_judged() {
    let mut raw = chip_tensor();
    raw[92..128].fill(0xEE);
    raw[52..64].fill(0xEE);
    let private = snapshot(1, &raw);
    let view = args::decode(private.blob(), args::MAX_BYTES).expect("legal");
    assert_eq!(view.tensors()[0].shape(), [4, 8]);
}

/// Legal at any offset in protocol 2, refused in protocol 3.
#[test]
fn a_tensor_without_elements_is_legal_in_protocol_2_only() {
    let matrix = ChipTensor::contiguous(0x1000, 128, Dtype::F32, &[4, 8], AddressSpace::Host).expect("fits");
    let far = matrix.view(&[0, 8], &[u32::MAX, 0]).expect("no elements");
    assert_eq!((far.extent(), far.byte_range().is_empty()), (0, true));
    let private = snapshot(1, far.as_bytes());
    assert_eq!(args::decode(private.blob(), args::MAX_BYTES).expect("legal").tensors(), [far]);
    let refused = Tensor::contiguous(buffer(), 0, Dtype::F32, &[4, 0]);
    assert_eq!(refused, Err(TensorFault::Empty { dim: 1 }));
}

fn buffer() -> BufferDescriptor {
    let identity = BufferIdentity { owner: *b"OWNER--1", buffer_id: 1, generation: 9 };
    let range = BufferRange { space: AddressSpace::Host, access: Access::ReadWrite, nbytes: 256, owner_path: 0 };
    BufferDescriptor::at_address(Backend::ForkShm, identity, range, 0x1000).expect("legal")
}

fn posix(name: &str) -> Result<BufferDescriptor, BufferFault> {
    BufferDescriptor::posix(buffer().identity(), buffer().range(), name)
}

fn tensor() -> Vec<u8> {
    Tensor::contiguous(buffer(), 0, Dtype::F32, &[4, 8]).expect("fits").as_bytes().to_vec()
}

/// The fault of the tensor with these changes.
fn fault(changes: &[(usize, &[u8])]) -> TensorFault {
    let mut raw = tensor();
    for (at, bytes) in changes {
        raw[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    let private = snapshot(1, &raw);
    match args::decode_described(private.blob(), args::MAX_BYTES) {
        Err(WireError::Argument { index: 0, fault }) => fault,
        other => panic!("{other:?}"),
    }
}

/// Every gate of a buffer descriptor, and no two share a variant.
#[test]
fn each_gate_of_a_buffer_descriptor_has_its_own_fault() {
    use BufferFault as B;
    let faults = [
        (fault(&[(0, &[0x43, 0x53])]), B::Magic { found: 0x5343 }),
        (fault(&[(2, &[2])]), B::AddressSpace { value: 2 }),
        (fault(&[(3, &[3])]), B::Access { value: 3 }),
        (fault(&[(4, &[6])]), B::Backend { value: 6 }),
        (
            fault(&[(4, &[Backend::DeviceMalloc.code()])]),
            B::BackendSpace { backend: Backend::DeviceMalloc, space: AddressSpace::Host },
        ),
        (fault(&[(24, &[0; 4])]), B::Generation),
        (fault(&[(54, &[1, 0])]), B::Reserved { value: 1 }),
        (fault(&[(52, &[33, 0])]), B::BodyTooLong { len: 33 }),
        (fault(&[(52, &[7, 0])]), B::AddressLength { len: 7, backend: Backend::ForkShm }),
        (fault(&[(56, &[0; 8])]), B::NullAddress),
        (fault(&[(56, &[0xFF; 8])]), B::AddressWraps { addr: u64::MAX, bytes: 256 }),
        (fault(&[(4, &[1]), (52, &[0, 0])]), B::NameEmpty),
        (fault(&[(4, &[1]), (56, b"psm/1234")]), B::NameByte { at: 3, byte: b'/' }),
        (fault(&[(4, &[Backend::ForkCow.code()])]), B::CowAccess { access: Access::ReadWrite }),
        (fault(&[(64, &[7])]), B::BodyPadding { at: 8, byte: 7 }),
    ];
    for (found, expected) in faults {
        assert_eq!(found, TensorFault::Buffer(expected));
    }
    for device in [Backend::VmmWindow, Backend::DeviceMalloc] {
        assert_eq!(device.space(), Some(AddressSpace::Device));
    }
    assert_eq!(posix("a\u{7f}"), Err(B::NameByte { at: 1, byte: 0x7F }));
    assert_eq!(posix(&"x".repeat(33)), Err(B::BodyTooLong { len: 33 }));
    assert!(posix(&"x".repeat(32)).is_ok());
}

#[test]
fn each_gate_of_a_self_describing_tensor_has_its_own_fault() {
    use TensorFault as F;
    assert_eq!(fault(&[(96, &[6, 0, 0, 0])]), F::Rank { ndims: 6 });
    assert_eq!(fault(&[(140, &[15])]), F::Dtype { code: 15 });
    assert_eq!(fault(&[(141, &[0, 1, 0])]), F::Reserved { value: 0x100 });
    assert_eq!(fault(&[(108, &[1])]), F::PastRank { field: "shapes", dim: 2, value: 1, ndims: 2 });
    assert_eq!(fault(&[(136, &[1])]), F::PastRank { field: "strides", dim: 4, value: 1, ndims: 2 });
    assert_eq!(fault(&[(104, &[0])]), F::Empty { dim: 1 });
    assert_eq!(fault(&[(124, &[0])]), F::ZeroStride { dim: 1 });
    assert_eq!(
        fault(&[(88, &[129])]),
        F::OutOfBuffer { offset_bytes: 129, extent: 32, element_bytes: 4, buffer_bytes: 256 }
    );
    assert_eq!(
        fault(&[(88, &[0xFF; 8])]),
        F::OutOfBuffer { offset_bytes: u64::MAX, extent: 32, element_bytes: 4, buffer_bytes: 256 }
    );
}

/// W-7, T-23
#[test]
fn counts_over_their_caps_are_refused_with_counts_and_capacity() {
    let word = |tensors: i32, scalars: i32| u64::from(tensors as u32) | u64::from(scalars as u32) << 32;
    for (tensors, scalars) in [(-1, 0), (0, -1), (257, 0), (0, 129), (i32::MAX, i32::MAX), (i32::MIN, 1)] {
        let (max_tensors, max_scalars, capacity) = (256, 128, 1_000);
        let refused = WireError::ArgCounts {
            tensors: tensors.into(),
            scalars: scalars.into(),
            max_tensors,
            max_scalars,
            capacity,
        };
        assert_eq!(Counts::parse(word(tensors, scalars), 1_000), Err(refused));
        let private = snapshot(word(tensors, scalars), &[]);
        assert_eq!(args::decode(private.blob(), 1_000), Err(refused));
        assert_eq!(args::decode_described(private.blob(), 1_000).err(), Some(refused));
    }
    assert!(args::encoded_len(256, 128, Protocol::Tensors).is_ok());
    assert!(args::encoded_len(257, 0, Protocol::Tensors).is_err());
    assert!(args::encoded_len(0, 129, Protocol::Tensors).is_err());
}

/// W-7: one byte short is refused; the bytes behind the capacity do not count, even if they are there.
#[test]
fn a_list_that_does_not_fit_is_refused_with_counts_and_capacity() {
    let private = snapshot(1 | 1 << 32, &chip_tensor());
    assert!(args::decode(private.blob(), 144).is_ok());
    let refused = WireError::ArgSize { tensors: 1, scalars: 1, need: 144, capacity: 143 };
    assert_eq!(args::decode(private.blob(), 143), Err(refused));
    assert_eq!(args::decode(&private.blob()[..143], 144), Err(refused));
    let what = "argument list";
    assert_eq!(args::decode(private.blob(), 7), Err(WireError::Short { what, have: 7, need: 8 }));
    assert_eq!(
        args::encode(&[], &[1], &mut [0; 15]),
        Err(WireError::ArgSize { tensors: 0, scalars: 1, need: 16, capacity: 15 })
    );
}

/// Private memory that is not aligned as a frame's is refused, not read badly.
#[test]
fn a_misaligned_list_is_refused() {
    let private = snapshot(0, &[&1u64.to_le_bytes()[..], &chip_tensor()].concat());
    let refused = args::decode(&private.blob()[8..], 136);
    assert!(matches!(refused, Err(WireError::Misaligned { align: 64, .. })), "{refused:?}");
}

#[test]
fn an_address_can_be_put_into_an_encoded_list() {
    let unplaced = ChipTensor::contiguous(0, 128, Dtype::F32, &[4, 8], AddressSpace::Host).expect("fits");
    let mut blob = [0; 264];
    args::encode(&[unplaced, unplaced], &[], &mut blob).expect("room");
    args::place(&mut blob, 1, 0x4000).expect("the second tensor");
    let private = snapshot(2, &blob[8..]);
    let view = args::decode(private.blob(), 264).expect("legal");
    assert_eq!(view.tensors(), [unplaced, unplaced.with_address(0x4000).expect("low")]);
    assert!(args::place(&mut blob, 2, 0x4000).is_err());
    assert!(args::place(&mut blob, usize::MAX, 0x4000).is_err());
}

#[test]
fn each_field_of_a_config_is_refused_by_name() {
    type Change = fn(&mut CallConfig);
    let refused = |change: Change| {
        let mut config = CallConfig::ZERO;
        change(&mut config);
        config.validate().expect_err("illegal").to_string()
    };
    let ring = |name, value, rest| format!("runtime_env.{name}[2] is {value}, must be 0 (unset) or {rest}");
    assert_eq!(refused(|c| c.aicpu_thread_num = 1), "aicpu_thread_num (if not 0 = auto) is 1, must be 2..=2147483647");
    assert!(refused(|c| c.aicpu_thread_num = -1).starts_with("aicpu_thread_num (if not 0 = auto) is -1"));
    assert_eq!(refused(|c| c.enable_chip_swimlane = 5), "enable_chip_swimlane is 5, must be 0..=4");
    assert_eq!(refused(|c| c.enable_chip_swimlane = -1), "enable_chip_swimlane is -1, must be 0..=4");
    assert_eq!(refused(|c| c.enable_pmu = -1), "enable_pmu is -1, must be 0..=2147483647");
    let window = "4..=2147483647 and a power of two";
    assert_eq!(refused(|c| c.ring_task_window[2] = 2), ring("ring_task_window", 2, window));
    assert_eq!(refused(|c| c.ring_task_window[2] = 12), ring("ring_task_window", 12, window));
    assert!(refused(|c| c.ring_task_window[2] = 1 << 31).contains("2147483648"));
    assert_eq!(refused(|c| c.ring_heap[2] = 1023), ring("ring_heap", 1023, "1024..=18446744073709551615"));
    assert_eq!(refused(|c| c.ring_dep_pool[2] = 3), ring("ring_dep_pool", 3, "4..=2147483647"));
    assert_eq!(refused(|c| c.output_prefix.fill(b'x')), "output_prefix has no NUL in its 1024 bytes");
    let enables: [(&str, Change); 5] = [
        ("enable_chip_swimlane is 4", |c| c.enable_chip_swimlane = 4),
        ("enable_dump_args is 1", |c| c.enable_dump_args = 1),
        ("enable_pmu is 3", |c| c.enable_pmu = 3),
        ("enable_dep_gen is -1", |c| c.enable_dep_gen = -1),
        ("enable_scope_stats is 1", |c| c.enable_scope_stats = 1),
    ];
    for (text, enable) in enables {
        assert_eq!(refused(enable), format!("{text}, a diagnostic run needs an output_prefix, which is empty"));
        let mut config = CallConfig::ZERO;
        enable(&mut config);
        config.set_output_prefix(b"/tmp/x").expect("short");
        assert!(config.is_diagnostic() && config.validate().is_ok());
    }
    assert!(!CallConfig::default().is_diagnostic());
    let mut config = CallConfig::ZERO;
    assert!(config.set_output_prefix(&[b'x'; 1024]).is_err());
    assert!(config.set_output_prefix(b"a\0b").is_err());
    assert!(config.set_output_prefix(&[b'x'; 1023]).is_ok());
}

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

/// C-2
#[test]
fn a_contract_out_of_range_is_refused_by_field() {
    use ResourceClass::{DeviceScratch, ExecHandle, HostPerRun};
    use ResourceKind::{AicpuStream, GmHeap, GmSm, TaskArgs};
    let good = PipelineContract::new(2, &[(GmHeap, HostPerRun), (AicpuStream, ExecHandle)]).expect("legal");
    let refused = |change: fn(&mut PipelineContract)| {
        let mut contract = good;
        change(&mut contract);
        contract.validate().expect_err("illegal").to_string()
    };
    assert_eq!(refused(|c| c.abi_version = 2), "contract abi_version is 2, must be 1..=1");
    assert_eq!(refused(|c| c.resource_count = 9), "contract resource_count is 9, must be 0..=8");
    assert_eq!(refused(|c| c.pipeline_depth = 0), "contract pipeline_depth is 0, must be 1..=2");
    assert_eq!(refused(|c| c.pipeline_depth = 3), "contract pipeline_depth is 3, must be 1..=2");
    assert!(refused(|c| c.resources[0].kind = 7).starts_with("contract resource kind is 7, known are 1 GM_HEAP"));
    assert!(refused(|c| c.resources[1].class = 3).starts_with("contract resource class is 3, known are 0 HOST"));
    assert!(refused(|c| c.resource_count = 3).starts_with("contract resource kind is 0"));
    assert_eq!(refused(|c| c.resources[0].bytes_per_copy = 64), "contract resource bytes_per_copy is 0x40, must be 0");
    assert_eq!(
        PipelineContract::new(2, &[(GmHeap, HostPerRun), (GmHeap, HostPerRun)]),
        Err(WireError::ResourceTwice { kind: GmHeap })
    );
    assert_eq!(
        PipelineContract::new(2, &[(GmHeap, HostPerRun), (GmSm, DeviceScratch)]),
        Err(WireError::ArenaCopies { kind: GmSm, copies: 1, others: 2 })
    );
    // At depth 1 every class has one copy; other resources may be declared as often as one likes.
    assert!(PipelineContract::new(1, &[(GmHeap, HostPerRun), (GmSm, DeviceScratch)]).is_ok());
    assert!(PipelineContract::new(2, &[(TaskArgs, HostPerRun), (TaskArgs, DeviceScratch)]).is_ok());
    assert!(PipelineContract::new(2, &[(TaskArgs, HostPerRun); 9]).is_err());
}

///
#[test]
fn a_digest_has_one_text_form() {
    let digest = Digest(std::array::from_fn(|i| i as u8 * 7));
    let text = digest.to_string();
    assert_eq!(text.parse(), Ok(digest));
    assert_eq!(Digest::from_words(digest.words()), digest);
    let refused = |text: &str| match text.parse::<Digest>() {
        Err(WireError::DigestFormat { at, .. }) => at,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(""), 0);
    assert_eq!(refused("sha256"), 6);
    assert_eq!(refused("SHA256:"), 0);
    assert_eq!(refused(&text[..70]), 70);
    assert_eq!(refused(&format!("{text}0")), 71);
    assert_eq!(refused(&format!("{text} ")), 71);
    assert_eq!(refused(&text.replace('e', "E")), 7 + text[7..].find('e').expect("an e") as u64);
    assert_eq!(refused(&format!("{}g", &text[..70])), 70);
    assert!("x".parse::<Digest>().expect_err("no digest").to_string().starts_with("HASHID_FORMAT_INVALID"));
}

fn callable(children: &[CoreCallableSource<'_>]) -> Vec<u8> {
    let source = ChipCallableSource {
        func_name: "orchestrate",
        config_name: "configure",
        signature: &[ArgDirection::In],
        binary: &[7; 100],
        children,
    };
    let mut out = vec![0; source.encoded_len().expect("small")];
    source.encode(&mut out).expect("room");
    out
}

/// C-14
#[test]
fn each_gate_of_a_chip_callable_names_what_fails() {
    let core = CoreCallableSource { binary: &[9; 40], ..CoreCallableSource::default() };
    let good = callable(&[core, core]);
    assert!(ChipCallable::parse(&good).is_ok());
    let refused = |at: usize, value: u32| {
        let mut blob = good.clone();
        blob[at..at + 4].copy_from_slice(&value.to_le_bytes());
        ChipCallable::parse(&blob).expect_err("illegal").to_string()
    };
    let storage = good.len() - 9_376;
    assert_eq!(refused(1_024, 257), "sig_count is 257, must be 0..=256");
    assert_eq!(refused(1_024, u32::MAX), "sig_count is -1, must be 0..=256");
    assert!(refused(0, 4).starts_with("argument direction is 4"));
    let outside = format!("orchestration binary at 0 with 100000 bytes leaves the {storage} bytes");
    assert!(refused(1_028, 100_000).starts_with(&outside));
    assert_eq!(refused(1_096, 65), "func_name has 65 bytes, at most 64 fit");
    assert_eq!(refused(9_360, 65), "config_name has 65 bytes, at most 64 fit");
    assert_eq!(refused(1_032, 0xFF), "func_name has an illegal byte at 0, must be UTF-8");
    assert_eq!(refused(9_292, 1_025), "child_count is 1025, must be 0..=1024");
    assert_eq!(refused(5_200, 130), "child 1: offset is 130, must be a multiple of 64");
    assert_eq!(refused(5_196, 64), format!("child 0: offset is 64, must be 100..={storage}"));
    assert!(refused(5_200, 1 << 20).starts_with("child 1: offset is 1048576"));
    assert!(refused(5_200, 576).starts_with("child 1: end of header"));
    assert_eq!(refused(5_200, 128), "child 0 and 1 overlap");
    assert_eq!(refused(9_376 + 128 + 132, 65), "child 0 and 1 overlap");
    assert!(refused(9_376 + 384 + 132, 41).starts_with("child 1: end of binary"));
    assert_eq!(refused(9_376 + 128 + 128, 33), "child 0: sig_count is 33, must be 0..=32");
    assert!(ChipCallable::parse(&good[..9_375]).is_err());
    // Children may stand in any order, and bytes may follow.
    let mut swapped = good.clone();
    swapped[5_196..5_200].copy_from_slice(&384u32.to_le_bytes());
    swapped[5_200..5_204].copy_from_slice(&128u32.to_le_bytes());
    swapped.push(0);
    assert!(ChipCallable::parse(&swapped).is_ok());
}

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

fn small(i: u64) -> ChipTensor {
    ChipTensor::contiguous(0x1000 + 64 * i, 64, Dtype::F32, &[16], AddressSpace::Host).expect("fits")
}

/// T-23
#[test]
fn the_builder_keeps_its_first_error_and_counts_on() {
    let mut args = TaskArgs::new();
    for i in 0..256 {
        args.input(small(i));
    }
    assert_eq!(args.check(), Ok(()));
    args.input(small(256)).input(small(257));
    assert_eq!(args.check(), Err(ModelError::TooManyTensors { tensors: 258, max: 256 }));
    args.clear();
    for i in 0..128 {
        args.scalar(i);
    }
    assert_eq!(args.check(), Ok(()));
    args.scalar(128);
    assert_eq!(args.check(), Err(ModelError::TooManyScalars { scalars: 129, max: 128 }));
    args.input(small(0));
    assert_eq!(args.check(), Err(ModelError::TooManyScalars { scalars: 129, max: 128 }));
    args.clear();
    args.input(small(0)).scalar(5).output(small(1));
    assert_eq!(args.check(), Err(ModelError::TensorAfterScalar { index: 1, scalars: 1 }));
    assert_eq!((args.tensors(), args.scalars()), (&[small(0)][..], &[5][..]));
}

#[test]
fn the_builder_holds_what_was_put_in_and_reuses_its_memory() {
    let mut args = TaskArgs::with_capacity(5, 9);
    let mut places = vec![];
    for round in 0..3 {
        args.clear();
        args.input(small(1)).output(small(2)).inout(small(3)).output_existing(small(4)).no_dep(small(5));
        (0..9).for_each(|i| {
            args.scalar(round * 100 + i);
        });
        assert_eq!(args.check(), Ok(()));
        assert_eq!(args.tensors(), [1, 2, 3, 4, 5].map(small));
        assert!(args.scalars().iter().copied().eq((0..9).map(|i| round * 100 + i)));
        assert_eq!(args.tags(), TensorTag::ALL);
        assert!(args.ranges().iter().copied().eq(args.tensors().iter().map(|tensor| tensor.byte_range())));
        let view = args.view();
        assert_eq!((view.tensors(), view.scalars()), (args.tensors(), args.scalars()));
        places.push((args.tensors().as_ptr(), args.tags().as_ptr(), args.ranges().as_ptr()));
    }
    assert!(places.iter().all(|place| *place == places[0]));
    let empty = TaskArgs::new();
    assert!(empty.tensors().is_empty() && empty.scalars().is_empty());
}

/// A storage may come through a foreign function: its counts and tensors are judged when they are read.
#[test]
fn a_storage_with_false_counts_is_refused() {
    let mut bytes = ChipStorageTaskArgs::new().as_bytes().to_vec();
    bytes[33_792..33_796].copy_from_slice(&257i32.to_le_bytes());
    let storage = ChipStorageTaskArgs::read_from_bytes(&bytes).expect("33,856 bytes");
    assert!(matches!(storage.tensors(), Err(WireError::ArgCounts { tensors: 257, .. })));
    bytes[33_792..33_796].copy_from_slice(&1i32.to_le_bytes());
    let storage = ChipStorageTaskArgs::read_from_bytes(&bytes).expect("33,856 bytes");
    let fault = TensorFault::Rank { ndims: 0 };
    assert_eq!(storage.tensors(), Err(WireError::Argument { index: 0, fault }));
    bytes[33_796..33_800].copy_from_slice(&(-1i32).to_le_bytes());
    let storage = ChipStorageTaskArgs::read_from_bytes(&bytes).expect("33,856 bytes");
    assert!(storage.scalars().is_err());
}
