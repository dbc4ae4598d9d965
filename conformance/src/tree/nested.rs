//! Workers below workers.

use std::sync::Arc;
use std::time::Duration;

use laneway_linux::{
    BoxError, CallConfig, CallableHandle, Error, Orchestrator, SubArgs, TaskArgs, TaskArgsView, Worker, WorkerId,
    unallocated,
};

use super::Grove;
use super::grove::add;
use super::signal::Signal;
use crate::case::Case;
use crate::expect::{Must, Verdict, Violation, equal, holds, mentions, refused};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::tree(
            "nested/a_tower_of_workers_computes",
            &["P-1", "P-8", "P-11"],
            "Init starts the whole tree; a task goes down level by level, and its result is seen at the top.",
            tower,
        ),
        Case::tree(
            "nested/an_error_names_every_level_that_it_came_through",
            &["P-10", "W-9"],
            "The error at the top shows each level and child in order, and the original text to its end.",
            path,
        ),
        Case::tree(
            "nested/memory_of_the_levels_above_is_valid_below",
            &["P-11", "E-38", "E-27"],
            "Buffers, scratch and allocated outputs of the top are used two levels further down.",
            memory,
        ),
        Case::tree(
            "nested/a_nested_run_has_its_own_orchestrator_arguments_and_config",
            &["P-8", "E-40"],
            "The orchestration of a nested worker gets the task's arguments and config, and runs of its own.",
            own_run,
        ),
        Case::tree(
            "nested/a_nested_worker_belongs_to_its_parent",
            &["P-7", "P-9"],
            "A worker that is attached is neither started, closed, used nor attached again by the user.",
            attached,
        ),
        Case::tree(
            "nested/several_nested_workers_run_a_group",
            &["E-24", "E-31"],
            "A group over nested workers runs each member with its own arguments, and one task follows all of them.",
            group,
        ),
        Case::tree(
            "nested/a_panic_below_fails_its_task_and_the_tree_lives_on",
            &["P-8", "P-10", "E-6"],
            "A panic in an orchestration below is its task's failure, and the next task works.",
            panics,
        ),
        Case::tree(
            "nested/a_stop_reaches_an_orchestration_that_runs",
            &["P-29", "E-9"],
            "close_now at the top lets the task at the bottom end, starts no other below, and fails the run with \"worker closed\".",
            stopped,
        ),
    ]
}

/// A worker without children of its own but SUB ones.
fn worker(grove: &Grove<'_>, level: u32, subs: u32) -> Result<Worker, Violation> {
    grove.builder().level(level).subs(subs).build().must("a worker")
}

/// What a level does with a task: it sends it on.
#[derive(Clone)]
enum Pass {
    Sub(CallableHandle),
    Nested(CallableHandle, WorkerId),
}

impl Pass {
    fn on(&self, orch: &mut Orchestrator<'_>, args: TaskArgsView<'_>, config: &CallConfig) -> Result<(), BoxError> {
        let mut same = TaskArgs::new();
        for tensor in args.tensors() {
            same.inout(*tensor);
        }
        for scalar in args.scalars() {
            same.scalar(*scalar);
        }
        match self {
            Self::Sub(function) => orch.submit_sub(function, &same)?,
            Self::Nested(function, worker) => orch.submit_next_level_with(function, *worker, &same, config)?,
        };
        Ok(())
    }
}

/// Workers of level 5, 4 and 3 below each other, with a SUB child at the bottom.
pub(super) struct Tower {
    pub(super) top: Worker,
    /// The callable of the top that reaches the bottom.
    pub(super) call: CallableHandle,
    pub(super) below: WorkerId,
}

impl Tower {
    pub(super) fn new(grove: &Grove<'_>, bottom: fn(&SubArgs<'_>) -> Result<(), BoxError>) -> Result<Self, Violation> {
        let lowest = worker(grove, 3, 1)?;
        let mut pass = Pass::Sub(lowest.register("bottom", bottom).must("register")?);
        let mut lower = lowest;
        for level in 4.. {
            let upper = worker(grove, level, 0)?;
            let sends = pass.clone();
            let call = upper.register_orchestration("pass on", move |orch, args, config| sends.on(orch, args, config));
            let call = call.must("register_orchestration")?;
            let below = upper.add_worker(&lower).must("add_worker")?;
            if level == 5 {
                upper.init().must("init")?;
                return Ok(Self { top: upper, call, below });
            }
            pass = Pass::Nested(call, below);
            lower = upper;
        }
        None.must("a level 5")
    }

    fn run(&self, args: &TaskArgs) -> Result<(), Error> {
        self.top.run(|orch| Ok(orch.submit_next_level(&self.call, self.below, args).map(drop)?))
    }
}

fn tower(grove: &mut Grove<'_>) -> Verdict {
    let tower = Tower::new(grove, add)?;
    let x = tower.top.tensor::<i32>(&[1000]).must("a tensor")?;
    x.fill_with(|i| i as i32).must("fill")?;
    for _ in 0..3 {
        tower.run(TaskArgs::new().inout(&x).scalar(2)).must("a run")?;
    }
    equal("the elements", x.to_vec().must("the tensor")?, (6..1006).collect::<Vec<i32>>())?;
    tower.top.close().must("close")
}

fn path(grove: &mut Grove<'_>) -> Verdict {
    let tower = Tower::new(grove, |_| Err(format!("the original text{}", ".".repeat(300)).into()))?;
    let text = refused("the run", tower.run(&TaskArgs::new()), "an error", |_| true)?.to_string();
    let mut rest = text.as_str();
    for part in ["level 5, run ", "worker 0: ", "level 4, run ", "worker 0: ", "level 3, run ", "sub 0: ", "original"] {
        let at = rest.find(part);
        holds(format_args!("{part:?} in its place"), at.is_some(), || format!("{text:?}"))?;
        rest = &rest[at.unwrap_or_default() + part.len()..];
    }
    holds("nothing is cut off", rest.contains(&".".repeat(300)), || format!("{text:?}"))?;
    tower.top.close().must("close")
}

fn stopped(grove: &mut Grove<'_>) -> Verdict {
    let (lower, top) = (worker(grove, 3, 1)?, worker(grove, 4, 0)?);
    let (running, gate, stop) = (Arc::new(Signal::new()?), Arc::new(Signal::new()?), Arc::new(Signal::new()?));
    let (started, opened, told) = (running.clone(), gate.clone(), stop.clone());
    let hold = lower.register("hold", move |_| {
        started.send()?;
        Ok(opened.wait()?)
    });
    let hold = hold.must("register")?;
    let call = top.register_orchestration("hold twice", move |orch, args, _| {
        for _ in 0..2 {
            orch.submit_sub(&hold, TaskArgs::new().inout(args.tensors()[0]))?;
        }
        // Asked for a little memory now and then, it hears of the stop when its run is cancelled under it.
        while orch.alloc::<i32>(&[1]).is_ok() {
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(told.send()?)
    });
    let call = call.must("register_orchestration")?;
    let below = top.add_worker(&lower).must("add_worker")?;
    top.init().must("init")?;
    let x = top.tensor::<i32>(&[1]).must("a tensor")?;
    let run = top.submit(|orch| Ok(orch.submit_next_level(&call, below, TaskArgs::new().inout(&x)).map(drop)?));
    let run = run.must("submit")?;
    running.wait().must("the first task runs")?;
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| top.close_now());
        stop.wait().must("the stop gets to the orchestration")?;
        gate.send().must("the gate")?;
        closing.join().ok().must("the thread that closes")?.must("close_now")
    })?;
    let error = refused("the run", run.wait(), "an error", |_| true)?;
    mentions("the error", &error.to_string(), &["worker closed"])
}

fn memory(grove: &mut Grove<'_>) -> Verdict {
    let tower = Tower::new(grove, add)?;
    let (call, below) = (&tower.call, tower.below);
    let x = tower.top.tensor::<i32>(&[64]).must("a tensor")?;
    tower
        .top
        .run(|orch| {
            let scratch = orch.alloc::<i32>(&[64])?;
            orch.submit_next_level(call, below, TaskArgs::new().inout(scratch).scalar(1))?;
            orch.submit_next_level(call, below, TaskArgs::new().inout(&x).scalar(2))?;
            let args = TaskArgs::new().output(unallocated::<i32>(&[8])?).scalar(3).clone();
            let out = orch.submit_next_level(call, below, args)?;
            equal("tensors that the submit returned", out.len(), 1)?;
            orch.submit_next_level(call, below, TaskArgs::new().inout(out[0]).inout(scratch).scalar(4))?;
            Ok(())
        })
        .must("the run")?;
    equal("the buffer", x.to_vec().must("the tensor")?, [2; 64])?;
    tower.top.close().must("close")
}

fn own_run(grove: &mut Grove<'_>) -> Verdict {
    let (l3, l4) = (worker(grove, 3, 1)?, worker(grove, 4, 0)?);
    let store = l3.register("store", |args| Ok(args.tensor::<i64>(0)?.set(0, args.scalar(0)? as i64)?));
    let store = store.must("register")?;
    let orch = l4.register_orchestration("orch", move |orch, args, config| {
        // Runs of this worker are its own: they are counted from 1.
        let seen = config.aicpu_thread_num as u64 * 1000 + orch.run().get() * 100 + args.scalars()[0];
        orch.submit_sub(&store, TaskArgs::new().output(args.tensors()[0]).scalar(seen))?;
        Ok(())
    });
    let (orch, id) = (orch.must("register_orchestration")?, l4.add_worker(&l3).must("add_worker")?);
    l4.init().must("init")?;
    let x = l4.tensor::<i64>(&[1]).must("a tensor")?;
    let config = CallConfig { aicpu_thread_num: 3, ..CallConfig::ZERO };
    for (run, expected) in [(1, 3105), (2, 3205)] {
        let args = TaskArgs::new().output(&x).scalar(5).clone();
        l4.run(|o| Ok(o.submit_next_level_with(&orch, id, &args, &config).map(drop)?)).must("a run")?;
        equal(format_args!("thread number, run and scalar of run {run}"), x.to_vec().must("x")?, [expected])?;
    }
    l4.close().must("close")
}

fn attached(grove: &mut Grove<'_>) -> Verdict {
    let (l3, l4, other) = (worker(grove, 3, 1)?, worker(grove, 4, 0)?, worker(grove, 4, 0)?);
    let itself = l4.add_worker(&l4);
    refused("a worker below itself", itself, "WrongState", |error| matches!(error, Error::WrongState { .. }))?;
    l4.add_worker(&l3).must("add_worker")?;
    let belongs = |error: &Error| matches!(error, Error::WrongState { state: "ATTACHED", .. });
    refused("attached twice", other.add_worker(&l3), "ATTACHED", belongs)?;
    refused("init by the user", l3.init(), "ATTACHED", belongs)?;
    refused("close by the user", l3.close(), "ATTACHED", belongs)?;
    l4.init().must("init")?;
    refused("a run by the user", l3.run(|_| Ok(())), "ATTACHED", belongs)?;
    refused("close_now by the user", l3.close_now(), "ATTACHED", belongs)?;
    l4.close().must("close")
}

fn group(grove: &mut Grove<'_>) -> Verdict {
    let l4 = worker(grove, 4, 1)?;
    let sum = l4.register("sum", |args| {
        let (a, b, sum) = (args.tensor::<i32>(0)?, args.tensor::<i32>(1)?, args.tensor::<i32>(2)?);
        sum.fill_with(|i| a.get(i).unwrap_or_default() + b.get(i).unwrap_or_default());
        Ok(())
    });
    let sum = sum.must("register")?;
    let l3s = [worker(grove, 3, 1)?, worker(grove, 3, 1)?];
    // One orchestration for both: which function it calls depends on the worker that it runs on.
    let mut adds = Vec::new();
    for l3 in &l3s {
        adds.push(l3.register("add", add).must("register")?);
    }
    let orch = l4.register_orchestration("orch", move |orch, args, _| {
        let add = &adds[args.scalars()[0] as usize];
        orch.submit_sub(add, TaskArgs::new().inout(args.tensors()[0]).scalar(args.scalars()[1]))?;
        Ok(())
    });
    let orch = orch.must("register_orchestration")?;
    let mut ids = Vec::new();
    for l3 in &l3s {
        ids.push(l4.add_worker(l3).must("add_worker")?);
    }
    l4.init().must("init")?;
    let mut tensors = Vec::new();
    for _ in 0..3 {
        tensors.push(l4.tensor::<i32>(&[16]).must("a tensor")?);
    }
    let (mut one, mut two) = (TaskArgs::new(), TaskArgs::new());
    one.inout(&tensors[0]).scalar(0).scalar(3);
    two.inout(&tensors[1]).scalar(1).scalar(4);
    l4.run(|o| {
        o.submit_next_level_group(&orch, &ids, &[&one, &two], None)?;
        o.submit_sub(&sum, TaskArgs::new().input(&tensors[0]).input(&tensors[1]).output(&tensors[2]))?;
        Ok(())
    })
    .must("the run")?;
    equal("the sum of both members' results", tensors[2].to_vec().must("the tensor")?, [7; 16])?;
    l4.close().must("close")
}

fn panics(grove: &mut Grove<'_>) -> Verdict {
    let (l3, l4) = (worker(grove, 3, 1)?, worker(grove, 4, 0)?);
    let orch = l4.register_orchestration("orch", |_, args, _| match args.scalars() {
        [] => panic!("no scalar at all"),
        _ => Ok(()),
    });
    let (orch, id) = (orch.must("register_orchestration")?, l4.add_worker(&l3).must("add_worker")?);
    l4.init().must("init")?;
    let ended = l4.run(|o| Ok(o.submit_next_level(&orch, id, TaskArgs::new()).map(drop)?));
    let text = refused("a run whose orchestration panics", ended, "an error", |_| true)?.to_string();
    holds("the text of the panic", text.contains("panicked: no scalar at all"), || text.clone())?;
    l4.run(|o| Ok(o.submit_next_level(&orch, id, TaskArgs::new().scalar(1)).map(drop)?)).must("the next run")?;
    l4.close().must("close")
}
