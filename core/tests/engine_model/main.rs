//! Random programs, fed to the engine and to a reference that is slow and obvious.
//!
//! `ENGINE_PROGRAMS` sets how many programs of each family are run, `ENGINE_SEED` where they start; a failure prints
//! the seed and the smallest program that shows it. Of long programs a twentieth is run.

mod arguments;
mod dispatch;
#[path = "../engine_support/mod.rs"]
mod engine_support;
mod program;
mod reference;
mod sim;
mod submit;

use program::{Family, Program, program};
use proptest::test_runner::{Config as Cases, RngAlgorithm, TestError, TestRng, TestRunner};
use sim::Sim;

fn run(program: &Program) {
    let mut sim = Sim::new(program);
    for op in &program.ops {
        sim.run_op(op);
    }
    sim.finish();
}

fn programs(family: Family, share: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seed: u64 = number("ENGINE_SEED").unwrap_or(1);
    let cases: u64 = number("ENGINE_PROGRAMS").unwrap_or(1500) / share;
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Cases { cases: cases as u32, failure_persistence: None, max_shrink_iters: 20_000, ..Cases::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let result = runner.run(&program(family), |program| {
        run(&program);
        Ok(())
    });
    match result {
        Ok(()) => println!("{cases} programs from seed {seed}"),
        Err(TestError::Fail(reason, program)) => panic!("seed {seed}: {reason}\n{program:#?}"),
        Err(error) => panic!("seed {seed}: {error}"),
    }
}

/// E-1 to E-35 together, over views whose overlap can be decided exactly: every start, every end and every count is
/// what the reference says.
#[test]
fn random_programs_do_what_the_reference_does() {
    programs(Family::Tidy, 1);
}

/// The same over views of all kinds (E-15, E-16), but that the engine may know better than the reference which of them meet:
/// it has no edge for which there is no reason, and nothing starts before a task whose bytes it reads has ended.
#[test]
fn random_programs_over_wild_views_never_miss_an_edge() {
    programs(Family::Wild, 1);
}

/// E-17, E-23 in long runs through which tasks come and go: what a task that is gone wrote orders nothing, whoever writes or
/// reads there next.
#[test]
fn long_runs_do_what_the_reference_does() {
    programs(Family::Rolling, 20);
}
