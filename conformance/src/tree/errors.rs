//! What an error says, and what is refused before anything runs.

use laneway_linux::{AddressSpace, CallConfig, ChipTensor, Dtype, Error, FailureKind, TaskArgs};

use super::Grove;
use super::grove::Subs;
use crate::case::Case;
use crate::expect::{Must, Verdict, Violation, equal, mentions, refused};
use crate::numbers::HostBuffer;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::tree(
            "errors/the_error_of_a_callable_arrives_with_its_text",
            &["L-28", "P-19"],
            "A callable's error is a task failure that names level, child and text.",
            text,
        ),
        Case::tree(
            "errors/a_long_error_arrives_whole",
            &["W-9"],
            "A text that is longer than the message field arrives to its last character.",
            long,
        ),
        Case::tree(
            "errors/a_panic_fails_its_task_and_the_child_lives_on",
            &["P-19", "P-3"],
            "A panic in a callable is a task failure with its text; the same process runs the next task.",
            panics,
        ),
        Case::tree(
            "errors/bad_argument_lists_are_refused_at_submit",
            &["W-7", "E-11"],
            "Too many tensors or scalars, a tensor after a scalar, and overlapping arguments are refused; the run goes on.",
            lists,
        ),
        Case::tree(
            "errors/memory_that_is_not_shared_is_refused",
            &["E-38"],
            "A plain heap pointer, and a tensor of another worker, are refused with the address.",
            unshared,
        ),
        Case::tree(
            "errors/a_config_out_of_range_is_refused_by_the_field",
            &["W-7", "E-11"],
            "A config that is not legal is refused at submit, by the name of the field.",
            config,
        ),
    ]
}

fn text(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let error = subs.one(&subs.fail, TaskArgs::new().scalar(42));
    let error = refused("a task that fails", error, "a task failure", |error| {
        matches!(error, Error::RunFailed { kind: FailureKind::Task, .. })
    })?;
    mentions("the error", &error.to_string(), &["level 3", "sub 0", "element 42 is wrong"])?;
    subs.close()
}

fn long(grove: &mut Grove<'_>) -> Verdict {
    let worker = grove.builder().subs(1).build().must("a worker")?;
    let text = "αβγ ".repeat(300);
    let long = text.clone();
    let fail = worker.register("long", move |_| Err(long.clone().into())).must("register")?;
    worker.init().must("init")?;
    let error = worker.run(|orch| Ok(orch.submit_sub(&fail, TaskArgs::new()).map(drop)?));
    let error = refused("a task that fails", error, "an error", |_| true)?.to_string();
    equal("whether its whole text is there", error.contains(&text), true)?;
    worker.close().must("close")
}

fn panics(grove: &mut Grove<'_>) -> Verdict {
    let worker = grove.builder().subs(1).build().must("a worker")?;
    let panics = worker.register("panics", |args| panic!("no {}", args.scalar(0)?)).must("register")?;
    let subs = Subs::start(worker)?;
    let before = subs.child()?;
    for number in 0..3 {
        let error = subs.one(&panics, TaskArgs::new().scalar(number));
        let error = refused("a task that panics", error, "an error", |_| true)?;
        mentions("the error", &error.to_string(), &[&format!("panic: no {number}")])?;
        subs.adds()?;
    }
    equal("the process that runs tasks", subs.child()?, before)?;
    subs.close()
}

/// A submit that must be refused; the run itself, and the next one, must work.
fn refuses(subs: &Subs, what: &str, args: &TaskArgs, parts: &[&str]) -> Verdict {
    let text = subs.worker.run(|orch| {
        let error = refused(what, orch.submit_sub(&subs.add, args), "an error", |_| true)?;
        Ok(error.to_string())
    });
    mentions(format_args!("the refusal of {what}"), &text.must("a run with a refused submit")?, parts)?;
    subs.adds()
}

fn lists(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let x = subs.tensor(8)?;
    let half = x.as_arg().slice(0, 0, 4, 1).must("a slice")?;
    let mut args = TaskArgs::new();
    args.scalar(1).input(&x);
    refuses(&subs, "a tensor after a scalar", &args, &["after"])?;
    args.clear();
    (0..257).for_each(|_| {
        args.no_dep(&x);
    });
    refuses(&subs, "257 tensors", &args, &["257", "256"])?;
    args.clear();
    (0..129).for_each(|_| {
        args.scalar(0);
    });
    refuses(&subs, "129 scalars", &args, &["129", "128"])?;
    args.clear();
    args.output(x.as_arg()).input(half);
    refuses(&subs, "reading what the same task writes", &args, &["overlap"])?;
    subs.close()
}

fn unshared(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let heap = HostBuffer::of(&[0; 256]);
    let address = heap.address().0;
    let tensor: Result<ChipTensor, Violation> =
        ChipTensor::contiguous(address, 256, Dtype::I32, &[64], AddressSpace::Host).must("a legal tensor");
    let address = format!("{address:#x}");
    refuses(&subs, "a heap pointer", TaskArgs::new().inout(tensor?).scalar(1), &[&address])?;
    let other = grove.subs(1)?;
    let foreign = other.tensor(8)?;
    let address = format!("{:#x}", foreign.as_arg().addr());
    refuses(&subs, "a tensor of another worker", TaskArgs::new().inout(&foreign).scalar(1), &[&address])?;
    other.adds()?;
    other.close()?;
    subs.close()
}

fn config(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let configs = [
        ("aicpu_thread_num", CallConfig { aicpu_thread_num: 1, ..CallConfig::ZERO }),
        ("enable_chip_swimlane", CallConfig { enable_chip_swimlane: 5, ..CallConfig::ZERO }),
        ("output_prefix", CallConfig { enable_pmu: 1, ..CallConfig::ZERO }),
    ];
    for (field, config) in configs {
        let error = subs.worker.run_with(|_, _, _| Ok(()), &TaskArgs::new(), &config);
        let error = refused(format_args!("a wrong {field}"), error, "an error", |_| true)?;
        mentions("the error", &error.to_string(), &[field])?;
    }
    subs.adds()?;
    subs.close()
}
