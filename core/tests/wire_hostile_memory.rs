//! W-8: the other side of a mailbox may write at any time. One thread rewrites lengths, headers and tensors while
//! another reads as the two sides of a mailbox do: copied once, word by word, then judged. Whatever comes out satisfies
//! every gate; nothing panics and nothing is read out of bounds.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering, fence};

use laneway_core::ids::{DispatchId, Generation, PipelineSlot, RunId};
use laneway_core::mailbox::{self, Frame, LONG_TEXT, LongText, Peer, Snapshot, Words};
use laneway_core::wire::control::{ControlCommand, ControlRequest, CopySpan, Staged};
use laneway_core::wire::*;
use laneway_core::wire::{args, extension, frame};
use zerocopy::IntoBytes;

mod wire_properties;

/// Reads under each of the five attacks, 2.5 million in all. `LANEWAY_CASES` makes it more or fewer.
fn rounds() -> u64 {
    std::env::var("LANEWAY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(500_000)
}

/// Memory of two threads: every byte belongs to one atomic, 32 bits for the named words and 64 for the rest. An access
/// of the other width is a fault of whoever makes it.
struct Shared {
    wide: Box<[AtomicU64]>,
    narrow: Box<[AtomicI32]>,
    is_narrow: Box<[bool]>,
}

impl Shared {
    fn new() -> Self {
        let wide = (0..frame::REGION_BYTES / 8).map(|_| AtomicU64::new(0)).collect();
        let narrow = (0..frame::REGION_BYTES / 4).map(|_| AtomicI32::new(0)).collect();
        let named = |at: usize| {
            frame::NARROW_WORDS.contains(&(at % frame::FRAME_BYTES)) || extension::NARROW_WORDS.contains(&at)
        };
        let is_narrow = (0..frame::REGION_BYTES / 4).map(|word| named(4 * word)).collect();
        Self { wide, narrow, is_narrow }
    }

    fn narrow(&self, at: usize) -> &AtomicI32 {
        assert!(self.is_narrow[at / 4], "{at} is no word of 32 bits");
        &self.narrow[at / 4]
    }

    fn wide(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8), "{at} is no place of a word");
        assert!(!self.is_narrow[at / 4] && !self.is_narrow[at / 4 + 1], "a word of 32 bits lies in the word at {at}");
        &self.wide[at / 8]
    }
}

impl Words for Shared {
    fn load(&self, at: usize) -> i32 {
        self.narrow(at).load(Ordering::Acquire)
    }

    fn load_relaxed(&self, at: usize) -> i32 {
        self.narrow(at).load(Ordering::Relaxed)
    }

    fn store(&self, at: usize, value: i32) {
        self.narrow(at).store(value, Ordering::Release);
    }

    fn store_relaxed(&self, at: usize, value: i32) {
        self.narrow(at).store(value, Ordering::Relaxed);
    }

    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        self.narrow(at).compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    fn read(&self, at: usize) -> u64 {
        self.wide(at).load(Ordering::Relaxed)
    }

    fn write(&self, at: usize, value: u64) {
        self.wide(at).store(value, Ordering::Relaxed);
    }
}

/// A small generator: the point is speed, not quality.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next() % of.len() as u64) as usize]
    }
}

/// What a hostile writer does: words at these places, honest ones and ones that look like it, one lie in `odds`.
struct Attack {
    honest: Vec<(usize, u64)>,
    odds: u64,
}

impl Attack {
    fn on(shared: &Shared, places: impl IntoIterator<Item = usize>, odds: u64) -> Self {
        Self { honest: places.into_iter().map(|at| (at, shared.read(at))).collect(), odds }
    }

    fn strike(&self, shared: &Shared, random: &mut Random) {
        let (at, was) = random.pick(&self.honest);
        let lies = [
            0,
            u64::MAX,
            was.wrapping_add(1),
            was.wrapping_sub(1),
            was ^ (1 << (random.next() % 64)),
            was | 0xFFFF_FFFF,
            was & 0xFFFF_FFFF,
            256 | 128 << 32,
            257,
            0x8000_0000,
            random.next(),
        ];
        let word = if random.next().is_multiple_of(self.odds) { random.pick(&lies) } else { was };
        shared.write(at, word);
    }

    /// Runs `read` again and again while another thread strikes. Both outcomes must occur, or nothing was shown.
    fn against(&self, shared: &Shared, mut read: impl FnMut() -> bool) {
        let stop = AtomicBool::new(false);
        let (mut legal, mut refused) = (0u64, 0u64);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random(0x9E37_79B9_7F4A_7C15);
                while !stop.load(Ordering::Relaxed) {
                    self.strike(shared, &mut random);
                }
            });
            let mut random = Random(0xD1B5_4A32_D192_ED03);
            for _ in 0..rounds() {
                // With one core the other thread may not run for long: some lies are told from here.
                self.strike(shared, &mut random);
                *if read() { &mut legal } else { &mut refused } += 1;
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(legal > rounds() / 100 && refused > rounds() / 100, "{legal} legal, {refused} refused: no attack");
    }
}

const TASK: Frame = Frame::task(PipelineSlot::Zero);

fn identity() -> DispatchIdentity {
    DispatchIdentity {
        run: RunId::new(3).expect("not 0"),
        slot: PipelineSlot::Zero,
        generation: Generation::new(2).expect("not 0"),
        dispatch: DispatchId::new(9).expect("not 0"),
    }
}

fn publish(shared: &Shared, protocol: Protocol, blob: &[u8]) {
    let identity = identity();
    shared.copy_in(TASK.at(frame::CONFIG), CallConfig::ZERO.as_bytes());
    shared.copy_in(TASK.at(frame::LEASE), identity.lease().as_bytes());
    shared.copy_in(TASK.at(frame::ARGS), blob);
    shared.copy_in(TASK.at(frame::TRAILER), identity.trailer(protocol).as_bytes());
}

/// The places of a task frame with four tensors of `width` bytes that decide something.
fn places(width: usize, fields: &[usize]) -> Vec<usize> {
    let tensors = (0..4).flat_map(|i| fields.iter().map(move |field| frame::ARGS + 8 + i * width + field));
    let head = [0, 24, 56, 88, 120].map(|field| frame::CONFIG + field);
    let lease = [0, 8].map(|field| frame::LEASE + field);
    let trailer = [0, 8, 16, 24, 32].map(|field| frame::TRAILER + field);
    let all = tensors.chain(head).chain(lease).chain(trailer).chain([frame::ARGS; 4]);
    all.map(|field| TASK.at(field)).collect()
}

/// What a child does with a published frame; whether it was legal.
fn stage(shared: &Shared, snapshot: &mut Snapshot, protocol: Protocol) -> bool {
    let stamp = TASK.stamp(shared);
    let Ok(identity) = stamp.judge(protocol, SlotRule::Below(2)) else { return false };
    assert_eq!((identity.trailer(protocol), identity.lease()), (stamp.trailer, stamp.lease));
    snapshot.copy_digest(shared, TASK);
    if snapshot.copy_config(shared, TASK).is_err() {
        return false;
    }
    wire_properties::call_config(snapshot.config().as_bytes());
    snapshot.copy_args(shared, TASK, protocol).is_ok()
}

/// W-7, W-8
#[test]
fn whatever_a_child_takes_from_a_frame_under_attack_satisfies_every_gate() {
    let shared = Shared::new();
    let matrix = ChipTensor::contiguous(0x10_0000, 4096, Dtype::F32, &[16, 64], AddressSpace::Host).expect("fits");
    let tensors = [
        matrix,
        matrix.view(&[4, 16], &[8, 32]).expect("inside"),
        matrix.transpose(0, 1).expect("two dimensions"),
        matrix.slice(1, 0, 64, 4).expect("inside"),
    ];
    let mut blob = [0; 1024];
    let len = args::encode(&tensors, &[1, 2, 3], &mut blob).expect("room");
    publish(&shared, Protocol::ChipTensors, &blob[..len]);
    let attack = Attack::on(&shared, places(128, &[0, 8, 24, 32, 40, 48, 64, 72]), 24);
    let mut snapshot = Snapshot::new();
    attack.against(&shared, || {
        if !stage(&shared, &mut snapshot, Protocol::ChipTensors) {
            return false;
        }
        let view = snapshot.args();
        assert!(view.tensors().len() <= args::MAX_TENSORS && view.scalars().len() <= args::MAX_SCALARS);
        view.tensors().iter().for_each(wire_properties::chip_tensor_is_legal);
        true
    });
}

/// W-7, W-8: the same for self-describing tensors; a legal copy passed every gate, which fuzzing and properties check.
#[test]
fn self_describing_tensors_under_attack_are_legal_or_refused() {
    let shared = Shared::new();
    let identity = BufferIdentity { owner: [1; 8], buffer_id: 1, generation: 1 };
    let range = BufferRange { space: AddressSpace::Host, access: Access::Read, nbytes: 4096, owner_path: 0 };
    let buffer = BufferDescriptor::at_address(Backend::ForkCow, identity, range, 0x1000).expect("legal");
    let tensor = Tensor::contiguous(buffer, 0, Dtype::F32, &[16, 64]).expect("fits");
    let mut blob = [0; 1024];
    let len = args::encode_described(&[tensor; 4], &[1, 2, 3], &mut blob).expect("room");
    publish(&shared, Protocol::Tensors, &blob[..len]);
    let attack = Attack::on(&shared, places(144, &[0, 24, 40, 48, 56, 88, 96, 104, 120, 136]), 24);
    let mut snapshot = Snapshot::new();
    attack.against(&shared, || stage(&shared, &mut snapshot, Protocol::Tensors));
}

/// W-3, W-8: controls, whose command, name and descriptors change while they are read.
#[test]
fn a_control_under_attack_is_legal_or_refused() {
    let shared = Shared::new();
    let identity = BufferIdentity { owner: [1; 8], buffer_id: 1, generation: 1 };
    let range = BufferRange { space: AddressSpace::Device, access: Access::ReadWrite, nbytes: 512, owner_path: 0 };
    let buffer = BufferDescriptor::at_address(Backend::DeviceMalloc, identity, range, 0x1000).expect("legal");
    let staged = Staged::Region(0xbeef);
    let requests = [
        ControlRequest::CopyTo(CopySpan::Buffers { dst: buffer, src: buffer, nbytes: 256 }),
        ControlRequest::Register { staged, bytes: 99, digest: Digest([7; 32]) },
    ];
    for request in requests {
        mailbox::control::publish_request(&shared, &request);
        let payload = (0..frame::CONTROL_PAYLOAD_BYTES / 8).map(|word| frame::CONTROL_PAYLOAD + 8 * word);
        let attack = Attack::on(&shared, payload.chain([frame::SUBCOMMAND, frame::CONTROL_ARG0]), 16);
        attack.against(&shared, || match mailbox::control::read_request(&shared, Protocol::Tensors) {
            Ok(ControlRequest::CopyTo(CopySpan::Buffers { dst, src, nbytes })) => {
                assert!(nbytes <= dst.range().nbytes && nbytes <= src.range().nbytes);
                wire_properties::buffer_is_legal(&dst);
                wire_properties::buffer_is_legal(&src);
                true
            }
            Ok(request) => ControlCommand::ALL.contains(&request.command()),
            Err(_) => false,
        });
    }
}

/// W-8, W-9: the texts of a failure, whose lengths and characters change while the parent reads them.
#[test]
fn the_texts_of_a_failure_under_attack_stay_in_their_bounds() {
    let shared = Shared::new();
    mailbox::write_failure(&shared, TASK, 1, &"é".repeat(300), Peer::Known);
    let texts = (0..32).map(|word| frame::DETAIL + 8 * word).chain((0..32).map(|word| frame::MESSAGE + 8 * word));
    let attack = Attack::on(&shared, texts.map(|at| TASK.at(at)), 64);
    let mut text = LongText::new();
    attack.against(&shared, || {
        text.clear();
        mailbox::read_failure(&shared, TASK, Peer::Known, &mut text);
        assert!(text.as_str().len() <= LONG_TEXT);
        text.as_str().chars().all(|character| character == 'é')
    });
}
