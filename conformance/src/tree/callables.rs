//! Registering and unregistering in a tree that runs.

use laneway_linux::{BoxError, CallableError, CallableHandle, Error, SubArgs, TaskArgs, Worker};
use laneway_sim::{Kernel, Program};

use super::Grove;
use super::grove;
use crate::backend::Setup;
use crate::case::Case;
use crate::expect::{Must, Verdict, Violation, equal, holds, mentions, refused};

const ADD: &[Kernel] = &[Kernel::Add];

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::tree(
            "callables/a_function_reaches_every_child_that_runs",
            &["R-5", "R-11"],
            "A function registered after init, with captured bytes, runs in every SUB child.",
            late,
        ),
        Case::tree(
            "callables/one_payload_has_one_digest",
            &["R-1", "R-4"],
            "The digest of a callable is the same whether it is registered before the forks or after them.",
            one_digest,
        ),
        Case::tree(
            "callables/the_last_handle_takes_the_callable_away",
            &["R-2", "R-7"],
            "Two registrations of one payload are two handles; the callable goes with the last one, and can come again.",
            counted,
        ),
        Case::tree(
            "callables/a_dead_or_foreign_handle_is_refused",
            &["R-2", "R-12"],
            "A handle that was unregistered, and one of another worker, are refused in submits and in unregister.",
            dead,
        ),
        Case::tree(
            "callables/a_name_belongs_to_one_function",
            &["R-2"],
            "Another function under a name, version and capture that are taken is refused; another version is not.",
            taken,
        ),
        Case::tree(
            "callables/a_callable_that_no_child_runs_fails_init",
            &["R-4"],
            "Init refuses a registration that no child of the tree could resolve, and names it.",
            unserved,
        ),
        Case::tree(
            "callables/a_closure_is_for_before_the_forks",
            &["R-11"],
            "A closure that is registered after init is refused.",
            closure,
        ),
        Case::tree(
            "callables/a_chip_callable_comes_and_goes_while_the_tree_runs",
            &["R-5", "R-7", "R-10"],
            "A chip callable registered after init runs on every chip; once unregistered its handle is dead.",
            chip_late,
        )
        .kernels(ADD),
        Case::tree(
            "callables/a_chip_callable_is_passed_on_below_nested_workers",
            &["R-9", "R-5"],
            "A chip callable that the top registers while the tree runs reaches the chip of a nested worker, and goes with its handle.",
            passed_on,
        )
        .kernels(ADD),
        Case::tree(
            "callables/the_65th_chip_callable_is_an_error",
            &["R-8", "R-6", "C-8"],
            "A device holds 64 callables; the next is refused and leaves nothing, and a freed slot takes it.",
            exhausted,
        )
        .kernels(ADD)
        .programs(),
    ]
}

const ONE: [u8; 4] = 1_i32.to_le_bytes();

/// Adds the captured number to every element.
fn add_captured(args: &SubArgs<'_>, captured: &[u8]) -> Result<(), BoxError> {
    let by = i32::from_le_bytes(captured.try_into()?);
    let x = args.tensor::<i32>(0)?;
    x.fill_with(|i| x.get(i).unwrap_or_default() + by);
    Ok(())
}

fn another(_: &SubArgs<'_>, _: &[u8]) -> Result<(), BoxError> {
    Err("another function".into())
}

fn worker(grove: &Grove<'_>, subs: u32) -> Result<Worker, Violation> {
    grove.builder().subs(subs).build().must("a worker")
}

/// Runs `handle` on all of `children` SUB children at once; each adds to an element of its own.
fn on_all(worker: &Worker, handle: &CallableHandle, children: usize) -> Result<Vec<i32>, Error> {
    let tensors: Vec<_> = (0..children).map(|_| worker.tensor::<i32>(&[1])).collect::<Result<_, _>>()?;
    let lists: Vec<_> = tensors.iter().map(|x| TaskArgs::new().inout(x).clone()).collect();
    worker.run(|orch| Ok(orch.submit_sub_group(handle, &lists.iter().collect::<Vec<_>>()).map(drop)?))?;
    tensors.iter().map(|x| Ok(x.to_vec()?[0])).collect()
}

fn late(grove: &mut Grove<'_>) -> Verdict {
    let worker = worker(grove, 3)?;
    worker.init().must("init")?;
    let seven = worker.register_fn("add", 1, add_captured, &7_i32.to_le_bytes()).must("register_fn")?;
    equal("the sum in every child", on_all(&worker, &seven, 3), Ok(vec![7; 3]))?;
    let nine = worker.register_fn("add", 1, add_captured, &9_i32.to_le_bytes()).must("another capture")?;
    equal("the sum with another capture", on_all(&worker, &nine, 3), Ok(vec![9; 3]))?;
    let short = worker.register_fn("add", 2, add_captured, &[]).must("a capture that is too short")?;
    let error = refused("a function that fails", on_all(&worker, &short, 1), "its error", |_| true)?;
    mentions("the error", &error.to_string(), &["could not convert slice"])?;
    worker.close().must("close")
}

fn one_digest(grove: &mut Grove<'_>) -> Verdict {
    let (early, late) = (worker(grove, 2)?, worker(grove, 2)?);
    let before = early.register_fn("add", 1, add_captured, &ONE).must("register_fn before init")?;
    early.init().must("init")?;
    late.init().must("init")?;
    let after = late.register_fn("add", 1, add_captured, &ONE).must("register_fn after init")?;
    equal("the digests", before.digest(), after.digest())?;
    equal("what was inherited", on_all(&early, &before, 2), Ok(vec![1; 2]))?;
    equal("what was sent", on_all(&late, &after, 2), Ok(vec![1; 2]))?;
    early.close().must("close")?;
    late.close().must("close")
}

fn counted(grove: &mut Grove<'_>) -> Verdict {
    let worker = worker(grove, 2)?;
    worker.init().must("init")?;
    let register = || worker.register_fn("add", 1, add_captured, &ONE).must("register_fn");
    let (first, second) = (register()?, register()?);
    holds("two handles, one digest", first != second && first.digest() == second.digest(), || "one handle")?;
    worker.unregister(&first).must("unregister")?;
    let gone = on_all(&worker, &first, 1);
    holds("the first handle is dead", gone.is_err(), || format!("{gone:?}"))?;
    equal("the second handle", on_all(&worker, &second, 2), Ok(vec![1; 2]))?;
    worker.unregister(&second).must("unregister of the last")?;
    let gone = on_all(&worker, &second, 1);
    holds("the last handle is dead", gone.is_err(), || format!("{gone:?}"))?;
    for _ in 0..10 {
        worker.unregister(&register()?).must("unregister")?;
    }
    equal("a third registration", on_all(&worker, &register()?, 2), Ok(vec![1; 2]))?;
    worker.close().must("close")
}

fn dead(grove: &mut Grove<'_>) -> Verdict {
    let (one, two) = (worker(grove, 1)?, worker(grove, 1)?);
    let foreign = two.register_fn("add", 1, add_captured, &ONE).must("register_fn")?;
    let dead = one.register_fn("add", 1, add_captured, &ONE).must("register_fn")?;
    one.unregister(&dead).must("unregister")?;
    one.init().must("init")?;
    two.init().must("init")?;
    let mutated = |error: &Error| matches!(error, Error::Callable(CallableError::CallableHandleMutated { .. }));
    for (what, handle) in [("a foreign handle", &foreign), ("a dead handle", &dead)] {
        refused(format_args!("unregister of {what}"), one.unregister(handle), "CallableHandleMutated", mutated)?;
        refused(format_args!("a submit of {what}"), on_all(&one, handle, 1), "CallableHandleMutated", mutated)?;
    }
    equal("the foreign handle at home", on_all(&two, &foreign, 1), Ok(vec![1]))?;
    one.close().must("close")?;
    two.close().must("close")
}

fn taken(grove: &mut Grove<'_>) -> Verdict {
    let worker = worker(grove, 1)?;
    let first = worker.register_fn("add", 1, add_captured, &ONE).must("register_fn")?;
    worker.init().must("init")?;
    let second = worker.register_fn("add", 1, another, &ONE);
    refused("another function under the same name", second, "CallableNameTaken", |error| {
        matches!(error, Error::Callable(CallableError::CallableNameTaken { .. }))
    })?;
    worker.register_fn("add", 2, another, &ONE).must("another version")?;
    worker.register_fn("add", 1, another, b"more").must("another capture")?;
    worker.unregister(&first).must("unregister")?;
    worker.register_fn("add", 1, another, &ONE).must("the name that is free again")?;
    worker.close().must("close")
}

fn unserved(grove: &mut Grove<'_>) -> Verdict {
    let upper = worker(grove, 0)?;
    upper.add_worker(&worker(grove, 1)?).must("add_worker")?;
    let function = upper.register("function", grove::add).must("register")?;
    let error = refused("init", upper.init(), "CallableKindUnsupported", |error| {
        matches!(error, Error::Callable(CallableError::CallableKindUnsupported { .. }))
    })?;
    mentions("the error", &error.to_string(), &["function", &function.digest().to_string()[..19]])?;
    equal("children after the failed init", grove::children(), Vec::<i32>::new())
}

fn closure(grove: &mut Grove<'_>) -> Verdict {
    let worker = worker(grove, 1)?;
    worker.init().must("init")?;
    let error = worker.register("late", |_| Ok(()));
    let error = refused("a closure after init", error, "RegisteredTooLate", |error| {
        matches!(error, Error::RegisteredTooLate { .. })
    })?;
    mentions("the error", &error.to_string(), &["late"])?;
    worker.close().must("close")
}

fn chip_late(grove: &mut Grove<'_>) -> Verdict {
    let (blob, (platform, runtime)) = (grove.blob(Kernel::Add)?, grove.platform());
    let chips = grove.chips(&[Setup::default(), Setup::default()])?;
    for round in 0..3 {
        let late = chips.worker.register_chip(platform, runtime, &blob).must("register_chip after init")?;
        let run = |chip: usize| {
            let (a, b, out) = (chips.vector(1.0)?, chips.vector(2.0)?, chips.vector(0.0)?);
            let mut args = TaskArgs::new();
            args.input(&a).input(&b).output(&out);
            let id = chips.ids[chip];
            let ended = chips.worker.run(|orch| Ok(orch.submit_next_level(&late, id, args).map(drop)?));
            Ok::<_, Violation>((ended, out.to_vec().must("the sum")?))
        };
        for chip in 0..2 {
            equal(format_args!("chip {chip}, round {round}"), run(chip)?, (Ok(()), vec![3.0; 16]))?;
        }
        chips.worker.unregister(&late).must("unregister")?;
        let (dead, sum) = run(0)?;
        holds("the handle is dead", dead.is_err() && sum == [0.0; 16], || format!("{dead:?}, {sum:?}"))?;
        chips.adds(1)?;
    }
    chips.close(false)
}

/// 65 callables that differ.
fn many_blobs(grove: &Grove<'_>) -> Result<Vec<Vec<u8>>, Violation> {
    let blob = |number: usize| {
        let program = Program::new(&format!("adds{number}"), Kernel::Add.operands(), 0)
            .and_then(|program| program.step(Kernel::Add, &[0, 1, 2], None));
        grove.program(&program.must("a program")?)
    };
    (0..65).map(blob).collect()
}

fn passed_on(grove: &mut Grove<'_>) -> Verdict {
    let (lower, top) = (grove.builder().build().must("a worker")?, grove.builder().level(4).build().must("a worker")?);
    let chip = lower.add_chip(grove.chip(&Setup::default())?).must("add_chip")?;
    // The digest goes down as data: four words.
    let call = top.register_orchestration("add below", move |orch, args, _| {
        let words = args.scalars().iter().map(|word| format!("{:016x}", word.swap_bytes()));
        let add = orch.passed_on(&format!("sha256:{}", words.collect::<String>()))?;
        let [a, b, out] = args.tensors() else { return Err("three tensors are needed".into()) };
        Ok(orch.submit_next_level(&add, chip, TaskArgs::new().input(*a).input(*b).output(*out)).map(drop)?)
    });
    let call = call.must("register_orchestration")?;
    let below = top.add_worker(&lower).must("add_worker")?;
    top.init().must("init")?;
    let (platform, runtime) = grove.platform();
    let add = top.register_chip(platform, runtime, &grove.blob(Kernel::Add)?).must("register_chip")?;
    let [a, b, out] = [1.0, 2.0, 0.0].map(|value| {
        let tensor = top.tensor::<f32>(&[16]).must("a tensor")?;
        tensor.fill_with(|_| value).must("fill")?;
        Ok::<_, Violation>(tensor)
    });
    let (a, b, out) = (a?, b?, out?);
    let run = || {
        let mut args = TaskArgs::new();
        args.input(&a).input(&b).output(&out);
        for word in add.digest().words() {
            args.scalar(word);
        }
        top.run(|orch| Ok(orch.submit_next_level(&call, below, args).map(drop)?))
    };
    run().must("a task with what was passed on")?;
    equal("its result", out.to_vec().must("the tensor")?, [3.0; 16])?;
    top.unregister(&add).must("unregister")?;
    let error = refused("a task with what is registered no more", run(), "an error", |_| true)?;
    mentions("the error", &error.to_string(), &["did not pass it on"])?;
    top.close().must("close")
}

fn exhausted(grove: &mut Grove<'_>) -> Verdict {
    let (platform, runtime) = grove.platform();
    let blobs = many_blobs(grove)?;
    let chips = grove.chips(&[Setup::default()])?;
    let register = |number: usize| chips.worker.register_chip(platform, runtime, &blobs[number]);
    // One is taken by the callable of the case.
    let mut handles = Vec::new();
    for number in 1..64 {
        handles.push(register(number).must(format_args!("callable {}", number + 1))?);
    }
    let error = refused("callable 65", register(64), "an error", |_| true)?;
    mentions("the error", &error.to_string(), &["64"])?;
    chips.adds(0)?;
    let last = handles.pop().must("a handle")?;
    chips.worker.unregister(&last).must("unregister")?;
    register(64).must("a callable in the freed slot")?;
    chips.adds(0)?;
    chips.close(false)
}
