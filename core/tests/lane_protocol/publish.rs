//! What a dispatch touches, and peers of another make.

use std::cell::RefCell;
use std::collections::BTreeSet;

use laneway_core::ids::{DispatchId, Generation, RunId};
use laneway_core::lane::{Frames, Job, Lane, Outcome};
use laneway_core::mailbox::{ArrayWords, Frame, Words};
use laneway_core::serve::{Child, ChildSpec, Failure, NoBell, Served, publish_ready};
use laneway_core::wire::frame::{self, REGION_BYTES};
use laneway_core::wire::{CallConfig, Digest, FrameState, Protocol, extension};

use crate::support::*;

/// Counts which cache lines are written and which words are read.
#[derive(Default)]
struct Meter {
    written: RefCell<BTreeSet<usize>>,
    read: RefCell<BTreeSet<usize>>,
}

struct Metered<'a> {
    words: &'a ArrayWords,
    meter: &'a Meter,
}

impl Metered<'_> {
    fn wrote(&self, at: usize) {
        self.meter.written.borrow_mut().insert(at / 64);
    }
    fn looked(&self, at: usize) {
        self.meter.read.borrow_mut().insert(at);
    }
}

impl Words for Metered<'_> {
    fn load(&self, at: usize) -> i32 {
        self.looked(at);
        self.words.load(at)
    }
    fn load_relaxed(&self, at: usize) -> i32 {
        self.load(at)
    }
    fn store(&self, at: usize, value: i32) {
        self.wrote(at);
        self.words.store(at, value);
    }
    fn store_relaxed(&self, at: usize, value: i32) {
        self.store(at, value);
    }
    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        self.wrote(at);
        self.words.compare_exchange(at, expected, new)
    }
    fn fence(&self) {}
    fn read(&self, at: usize) -> u64 {
        self.looked(at);
        self.words.read(at)
    }
    fn write(&self, at: usize, value: u64) {
        self.wrote(at);
        self.words.write(at, value);
    }
}

fn job<'a>(key: u32, digest: &'a Digest, config: &'a CallConfig, blob: &'a [u8]) -> Job<'a, u32> {
    let (run, generation) = (RunId::FIRST, Generation::FIRST);
    Job { key, run, slot: ZERO, generation, digest, config, blob, limit: None, prepare_only: false }
}

/// Parent and child on metered words; returns what each wrote for the last of `jobs`, in lines.
fn lines(jobs: &[Job<'_, u32>]) -> (BTreeSet<usize>, BTreeSet<usize>, BTreeSet<usize>) {
    let words = ArrayWords::new(REGION_BYTES);
    words.write(extension::PARENT, extension::PARENT_MAGIC);
    publish_ready(&words, 0);
    words.store(frame::STATE, 0);
    let (ours, theirs) = (Meter::default(), Meter::default());
    let parent = Metered { words: &words, meter: &ours };
    let child_words = Metered { words: &words, meter: &theirs };
    let device = Device::default();
    (device.0.borrow_mut().blocking, device.0.borrow_mut().silent) = (true, true);
    let child_spec = ChildSpec { frames: Frames::One, protocol: Protocol::ChipTensors, depth: 0 };
    let mut child = Child::new(child_words, device, child_spec);
    let mut lane: Lane<u32, u32> = Lane::new(spec(Frames::One), &parent);
    let mut text = laneway_core::mailbox::LongText::new();
    let now = laneway_core::time::Instant::from_nanos(1);
    for job in jobs {
        for meter in [&ours, &theirs] {
            meter.written.borrow_mut().clear();
            meter.read.borrow_mut().clear();
        }
        lane.submit(&parent, job, now).unwrap();
        while child.step(&mut NoBell) != Served::Idle {}
        assert_eq!(lane.poll(&parent, now, &mut text), Some(success(job.key)));
    }
    (ours.written.take(), theirs.written.take(), theirs.read.take())
}

const STATE_LINE: usize = frame::FRAME_BYTES / 64;
const TRAILER_LINE: usize = (frame::FRAME_BYTES + frame::TRAILER) / 64;

/// Architecture, what a dispatch touches: two lines, three when run or callable change.
#[test]
fn a_steady_task_without_arguments_moves_two_lines() {
    let steady = [1, 2, 3].map(|key| job(key, &KNOWN, &CallConfig::ZERO, &NO_ARGS));
    let (ours, theirs, read) = lines(&steady);
    assert_eq!(ours, BTreeSet::from([STATE_LINE, TRAILER_LINE]));
    assert_eq!(theirs, BTreeSet::from([STATE_LINE]));
    let prefix = frame::FRAME_BYTES + frame::CONFIG + 120;
    assert!(read.contains(&prefix) && !read.contains(&(prefix + 8)), "the tail of an empty prefix is not read");
    assert!(read.iter().all(|at| at / 64 < (frame::FRAME_BYTES + frame::ARGS) / 64 + 1 || at / 64 >= TRAILER_LINE));

    let other = Digest([2; 32]);
    let (ours, _, _) = lines(&[steady[0], steady[1], job(3, &other, &CallConfig::ZERO, &NO_ARGS)]);
    assert_eq!(ours.len(), 3, "and the line of the lease and the callable");
}

/// Compared word by word, written where it differs: a scribbled frame is repaired by the next publish.
#[test]
fn a_frame_that_was_scribbled_over_is_repaired_by_the_next_publish() {
    let mut bench = Bench::new(Frames::One, Script { blocking: true, silent: true, ..Script::default() });
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.settle();
    bench.poll();
    let before = bench.words.clone();
    for field in [frame::CONFIG + 40, frame::DIGEST + 8, frame::ARGS, frame::TRAILER + 8, frame::LEASE] {
        bench.write(ZERO, field, u64::MAX);
    }
    bench.submit(2, 1, ZERO, false).unwrap();
    bench.settle();
    assert_eq!(bench.poll(), [success(2)]);
    before.write(Bench::dispatch_id_at(ZERO), DispatchId::FIRST.next().unwrap().get());
    assert!(before == *bench.words, "nothing but the dispatch id is different");
}

/// W-6: a child of another make gets every byte, IDLE before a reuse, and no detail area; everything works.
#[test]
fn a_child_that_shows_no_magic_is_served_all_the_same() {
    let mut bench = Bench::new(Frames::One, Script { blocking: true, silent: true, ..Script::default() });
    bench.words.write(extension::CHILD, 0);
    bench.lane = Lane::new(spec(Frames::One), &bench.words);
    bench.device.0.borrow_mut().launches = [Ok(()), Err(Failure::MESSAGE), Ok(())].into();
    for (key, outcome) in [(1, Outcome::Success), (2, Outcome::TaskFailure { code: 1 }), (3, Outcome::Success)] {
        // A stranger may leave anything in what is the parent's.
        bench.write(ZERO, frame::CONFIG + 8, 77);
        bench.submit(key, 1, ZERO, false).unwrap();
        assert_eq!(bench.settle(), Served::Idle);
        assert_eq!(bench.poll(), [completed(key, outcome)]);
    }
    assert!(bench.lane.take_published());
    assert!(!laneway_core::mailbox::extension::take_sleeper(&bench.words), "nobody is woken who did not ask");
}

/// W-9: a parent of another make gets the head of the text, and the detail area is left alone.
#[test]
fn a_parent_that_shows_no_magic_finds_the_text_in_the_message() {
    let words = ArrayWords::new(REGION_BYTES);
    publish_ready(&words, 0);
    words.store(frame::STATE, FrameState::Idle.raw());
    let device = Device::default();
    device.0.borrow_mut().launches = [Err(Failure::MESSAGE)].into();
    let child_spec = ChildSpec { frames: Frames::One, protocol: Protocol::ChipTensors, depth: 0 };
    let mut child = Child::new(&words, device, child_spec);
    let mut lane: Lane<u32, u32> = Lane::new(spec(Frames::One), &words);
    let now = laneway_core::time::Instant::from_nanos(1);
    lane.submit(&words, &job(1, &KNOWN, &CallConfig::ZERO, &NO_ARGS), now).unwrap();
    while child.step(&mut NoBell) != Served::Idle {}
    assert_eq!(words.read(Frame::task(ZERO).at(frame::DETAIL)), 0);
    let mut text = laneway_core::mailbox::LongText::new();
    laneway_core::mailbox::read_message(&words, Frame::task(ZERO), &mut text);
    assert_eq!(text.as_str(), "launch said no");
}

/// T-23: 256 tensors and 128 scalars fit a frame.
#[test]
fn the_largest_legal_argument_list_arrives() {
    use laneway_core::wire::{AddressSpace, ChipTensor, Dtype, args};
    let tensor = ChipTensor::contiguous(0x1000, 64, Dtype::F32, &[16], AddressSpace::Host).unwrap();
    let mut blob = vec![0; args::MAX_BYTES];
    let len = args::encode(&[tensor; 256], &[7; 128], &mut blob).unwrap();
    assert_eq!(len, 33_800);
    let mut bench = Bench::new(Frames::One, Script { blocking: true, silent: true, ..Script::default() });
    for key in 1..=2 {
        bench.submit_with(key, 1, ZERO, false, &KNOWN, &CallConfig::ZERO, &blob[..len]).unwrap();
        bench.settle();
        assert_eq!(bench.poll(), [success(key)]);
    }
    blob[..4].copy_from_slice(&257_i32.to_le_bytes());
    bench.submit_with(3, 1, ZERO, false, &KNOWN, &CallConfig::ZERO, &blob[..len]).unwrap();
    bench.settle();
    assert_eq!(bench.poll(), [failed(3)]);
    assert!(bench.text.as_str().contains("257") && bench.text.as_str().contains("256"), "{}", bench.text);
}
