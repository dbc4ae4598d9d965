//! The properties of the fuzz targets on stable Rust: over the committed seeds, over mutations of them, and over bytes
//! of no meaning.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

mod wire_properties;

use wire_properties::{TARGETS, Target};

/// Inputs per target and kind. `LANEWAY_CASES` makes it more.
fn cases() -> u32 {
    std::env::var("LANEWAY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(5_000)
}

/// The committed seeds of a target, or those in `LANEWAY_CORPUS`: `../fuzz/corpus` replays what a run of the fuzzer kept.
fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let corpus = std::env::var("LANEWAY_CORPUS").unwrap_or_else(|_| "../fuzz/seeds".into());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(corpus).join(target.name);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} has no seed", target.name);
    paths.iter().map(|path| fs::read(path).expect("readable")).collect()
}

#[test]
fn every_committed_seed_keeps_its_property() {
    for target in &TARGETS {
        for seed in seeds(target) {
            assert!(seed.len() <= target.max_len, "{}: the fuzzer would cut this seed", target.name);
            (target.run)(&seed);
        }
    }
}

/// One change of an input: what fuzzers do, and what a hostile writer would.
#[derive(Clone, Debug)]
enum Mutation {
    Flip { at: usize, bit: u8 },
    Word { at: usize, value: u32 },
    Truncate { at: usize },
    Insert { at: usize, byte: u8 },
    Copy { from: usize, to: usize, len: usize },
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let word = prop_oneof![
        Just(0),
        Just(1),
        Just(u32::MAX),
        Just(0x7fff_ffff),
        Just(0x8000_0000),
        Just(256),
        Just(257),
        any::<u32>(),
        0..16u32
    ];
    let at = any::<usize>();
    prop_oneof![
        4 => (at, 0..8u8).prop_map(|(at, bit)| Mutation::Flip { at, bit }),
        6 => (at, word).prop_map(|(at, value)| Mutation::Word { at, value }),
        1 => at.prop_map(|at| Mutation::Truncate { at }),
        1 => (at, any::<u8>()).prop_map(|(at, byte)| Mutation::Insert { at, byte }),
        2 => (at, at, 1..160usize).prop_map(|(from, to, len)| Mutation::Copy { from, to, len }),
    ]
}

fn apply(input: &mut Vec<u8>, mutation: &Mutation) {
    if input.is_empty() {
        return;
    }
    let len = input.len();
    match *mutation {
        Mutation::Flip { at, bit } => input[at % len] ^= 1 << bit,
        // Fields lie at multiples of 4; between hosts they do not, so now and then anywhere.
        Mutation::Word { at, value } => {
            let at = if at % 5 == 0 { at % len } else { at % len / 4 * 4 };
            let end = len.min(at + 4);
            input[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
        }
        Mutation::Truncate { at } => input.truncate(at % len),
        Mutation::Insert { at, byte } => input.insert(at % len, byte),
        Mutation::Copy { from, to, len: count } => {
            let (from, to) = (from % len, to % len);
            let count = count.min(len - from).min(len - to);
            input.copy_within(from..from + count, to);
        }
    }
}

#[test]
fn a_mutated_seed_is_refused_or_keeps_the_property() {
    for target in &TARGETS {
        let seeds = seeds(target);
        let strategy = (0..seeds.len(), prop::collection::vec(mutation(), 0..6));
        TestRunner::new(Config { cases: cases(), ..Config::default() })
            .run(&strategy, |(seed, mutations)| {
                let mut input = seeds[seed].clone();
                mutations.iter().for_each(|mutation| apply(&mut input, mutation));
                (target.run)(&input);
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{}: {error}", target.name));
    }
}

#[test]
fn bytes_of_no_meaning_are_refused_or_keep_the_property() {
    for target in &TARGETS {
        TestRunner::new(Config { cases: cases(), ..Config::default() })
            .run(&prop::collection::vec(any::<u8>(), 0..target.max_len.min(2_048)), |input| {
                (target.run)(&input);
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{}: {error}", target.name));
    }
}

/// A field that carries a length can be cut at any byte: the decoder says so, it never reads on.
#[test]
fn every_cut_of_every_seed_is_refused_or_keeps_the_property() {
    for target in &TARGETS {
        for seed in seeds(target) {
            let step = if seed.len() > 4_096 { 61 } else { 1 };
            for cut in (0..seed.len()).step_by(step) {
                (target.run)(&seed[..cut]);
            }
        }
    }
}
