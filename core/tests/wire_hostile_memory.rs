//! W-8: the other side of a frame may write at any time. One thread rewrites lengths, headers and tensors of a frame
//! while another copies it once, word by word, and judges the copy. Whatever comes out satisfies every gate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use laneway_core::ids::{DispatchId, Generation, PipelineSlot, RunId};
use laneway_core::wire::args::{self, ArgsSnapshot, Counts};
use laneway_core::wire::frame::{self, TaskFrame};
use laneway_core::wire::*;
use zerocopy::{FromBytes, IntoBytes};

mod wire_properties;

/// Copies taken. `LANEWAY_CASES` makes it more or fewer.
fn rounds() -> u64 {
    std::env::var("LANEWAY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000_000)
}

/// The shared frame: every byte is accessed as part of one atomic word, by both threads.
struct Shared(Box<[AtomicU64]>);

impl Shared {
    fn of(frame: &TaskFrame) -> Self {
        let words = <[u64]>::ref_from_bytes(frame.as_bytes()).expect("aligned");
        Self(words.iter().map(|&word| AtomicU64::new(word)).collect())
    }

    fn copy(&self, at: usize, to: &mut [u64]) {
        for (to, from) in to.iter_mut().zip(&self.0[at / 8..]) {
            *to = from.load(Relaxed);
        }
    }

    /// A private copy of `T` at byte `at`.
    fn take<T: FromBytes + IntoBytes>(&self, at: usize) -> T {
        let mut value = T::new_zeroed();
        let words = <[u64]>::mut_from_bytes(value.as_mut_bytes()).expect("whole words");
        self.copy(at, words);
        value
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

/// What a hostile writer puts into a frame: often what was there, else something that looks like it.
fn scribble(shared: &Shared, honest: &[u64], random: &mut Random) {
    let args = frame::ARGS / 8;
    let tensor = args + 1 + 16 * (random.next() % 4) as usize;
    let targets = [
        args,
        tensor,
        tensor + 1,
        tensor + 3,
        tensor + 4,
        tensor + 5,
        tensor + 6,
        tensor + 8,
        tensor + 9,
        frame::CONFIG / 8,
        frame::CONFIG / 8 + 3,
        frame::CONFIG / 8 + 15,
        frame::LEASE / 8,
        frame::LEASE / 8 + 1,
        frame::TRAILER / 8,
        frame::TRAILER / 8 + 1,
        frame::TRAILER / 8 + 2,
        frame::TRAILER / 8 + 4,
    ];
    let at = random.pick(&targets);
    let was = honest[at];
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
    let word = if random.next().is_multiple_of(16) { random.pick(&lies) } else { was };
    shared.0[at].store(word, Relaxed);
}

fn honest_frame() -> TaskFrame {
    let identity = DispatchIdentity {
        run: RunId::new(3).expect("not 0"),
        slot: PipelineSlot::Zero,
        generation: Generation::new(2).expect("not 0"),
        dispatch: DispatchId::new(9).expect("not 0"),
    };
    let matrix = ChipTensor::contiguous(0x10_0000, 4096, Dtype::F32, &[16, 64], AddressSpace::Host).expect("fits");
    let tensors = [
        matrix,
        matrix.view(&[4, 16], &[8, 32]).expect("inside"),
        matrix.transpose(0, 1).expect("two dimensions"),
        matrix.slice(1, 0, 64, 4).expect("inside"),
    ];
    let mut frame =
        TaskFrame { lease: identity.lease(), trailer: identity.trailer(Protocol::ChipTensors), ..TaskFrame::new() };
    args::encode(&tensors, &[1, 2, 3], &mut frame.args).expect("room");
    frame
}

/// W-7, W-8
#[test]
fn whatever_is_taken_from_a_frame_under_attack_satisfies_every_gate() {
    let frame = honest_frame();
    let honest = <[u64]>::ref_from_bytes(frame.as_bytes()).expect("aligned").to_vec();
    let shared = Shared::of(&frame);
    let stop = AtomicBool::new(false);
    let (mut whole, mut refused) = (0u64, 0u64);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random(0x9E37_79B9_7F4A_7C15);
            while !stop.load(Relaxed) {
                scribble(&shared, &honest, &mut random);
            }
        });
        let mut snapshot = ArgsSnapshot::new();
        let mut own = Random(0xD1B5_4A32_D192_ED03);
        for _ in 0..rounds() {
            // On one core the other thread may not run for long: some lies are told from here.
            scribble(&shared, &honest, &mut own);
            match take(&shared, &mut snapshot) {
                Ok(tensors) => {
                    assert!(tensors <= args::MAX_TENSORS);
                    whole += 1;
                }
                Err(_) => refused += 1,
            }
        }
        stop.store(true, Relaxed);
    });
    assert!(whole > rounds() / 100 && refused > rounds() / 100, "{whole} taken, {refused} refused: no attack");
}

/// What a child does: identity and config from private copies; the counts once; as many words as they say; judge.
fn take(shared: &Shared, snapshot: &mut ArgsSnapshot) -> Result<usize, WireError> {
    let trailer: Trailer = shared.take(frame::TRAILER);
    let lease: PipelineSlotLease = shared.take(frame::LEASE);
    let identity = trailer.judge(&lease, Protocol::ChipTensors, SlotRule::Below(2))?;
    assert_eq!(identity.trailer(Protocol::ChipTensors), trailer);
    assert_eq!(identity.lease(), lease);

    let config: CallConfig = shared.take(frame::CONFIG);
    config.validate()?;
    wire_properties::call_config(config.as_bytes());

    let mut counts = [0];
    shared.copy(frame::ARGS, &mut counts);
    let counts = Counts::parse(counts[0], frame::ARGS_CAPACITY)?;
    let len = counts.encoded_len(Protocol::ChipTensors);
    // The counts are not read again: what was judged stands in front of the copy.
    let words = snapshot.words_mut();
    words[0] = counts.word();
    shared.copy(frame::ARGS + 8, &mut words[1..len / 8]);
    let view = args::decode(snapshot.blob(), len)?;
    assert_eq!(view.counts(), counts);
    view.tensors().iter().for_each(wire_properties::chip_tensor_is_legal);
    Ok(view.tensors().len())
}
