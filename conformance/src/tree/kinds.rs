//! Other kinds of children: threads, those that a user makes, and none at all.

use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;
use laneway_linux::{
    CallableHandle, ChildMode, ChipWorker, CustomChild, Endpoint, Failure, Leaf, OwnEndpoint, Report, Task, TaskArgs,
    Worker, WorkerId,
};
use laneway_sim::Kernel;

use super::Grove;
use super::grove::{add, children};
use crate::backend::Setup;
use crate::case::Case;
use crate::device::VectorAdd;
use crate::expect::{Must, Verdict, equal, mentions, refused};

const ADD: &[Kernel] = &[Kernel::Add];

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::tree(
            "kinds/children_that_are_threads_do_the_same",
            &["P-27"],
            "With ChildMode::Thread the same tasks have the same results and errors, in this process and without a fork.",
            threads,
        ),
        Case::tree(
            "kinds/a_child_of_a_users_own_kind_is_served_like_any_other",
            &["P-28"],
            "A leaf that a user wrote runs tasks by id, keeps its state between them, and its errors arrive with their text.",
            leaf,
        ),
        Case::tree(
            "kinds/work_for_one_worker_goes_to_no_other",
            &["E-30", "E-39"],
            "Of two children of one kind each runs the tasks that name it, however many the other has.",
            exact,
        ),
        Case::tree(
            "kinds/an_endpoint_of_a_users_own_ends_its_tasks_later",
            &["P-28"],
            "An endpoint that a user wrote takes a task over and ends it when its bell rang, each once.",
            endpoint,
        ),
        Case::tree(
            "kinds/a_level_2_worker_runs_a_device_without_a_child",
            &["C-17", "C-18"],
            "A device in the caller's own process registers, runs, submits and moves memory, and forks nothing.",
            level_2,
        )
        .kernels(ADD)
        .with_memory(),
    ]
}

fn threads(grove: &mut Grove<'_>) -> Verdict {
    let worker = grove.builder().subs(1).child_mode(ChildMode::Thread).build().must("a worker")?;
    let (adds, here) = (worker.register("add", add).must("register")?, std::process::id());
    let fails = worker
        .register("fail", move |_| Err(format!("in the host: {}", std::process::id() == here).into()))
        .must("register")?;
    worker.init().must("init")?;
    let x = worker.tensor::<i32>(&[4]).must("a tensor")?;
    worker.run(|orch| Ok(orch.submit_sub(&adds, TaskArgs::new().inout(&x).scalar(3)).map(drop)?)).must("a run")?;
    equal("the result", x.to_vec().must("the tensor")?, [3; 4])?;
    let error = worker.run(|orch| Ok(orch.submit_sub(&fails, TaskArgs::new()).map(drop)?));
    let error = refused("a task that fails", error, "an error", |_| true)?;
    mentions("the error", &error.to_string(), &["sub 0", "in the host: true"])?;
    equal("processes", children(), Vec::<i32>::new())?;
    worker.close().must("close")
}

/// Adds up what it is given, and refuses 13.
struct Sum {
    callables: Vec<Digest>,
    sum: u64,
    /// How the task ended that was taken over.
    ended: Option<Result<(), u64>>,
    ring: Option<laneway_linux::EndpointBell>,
}

impl Sum {
    fn add(&mut self, task: &Task<'_>) -> Result<(), u64> {
        let number: u64 = task.args.scalars().iter().sum();
        if number == 13 {
            return Err(self.sum);
        }
        self.sum += number;
        Ok(())
    }
}

fn unlucky(report: &mut Report, sum: u64) -> Failure {
    report.push_str(&format!("13 is not added to {sum}"));
    Failure::MESSAGE
}

impl Leaf for Sum {
    fn knows(&mut self, digest: &Digest) -> bool {
        self.callables.contains(digest)
    }

    fn run(&mut self, task: &Task<'_>, report: &mut Report) -> Result<(), Failure> {
        self.add(task).map_err(|sum| unlucky(report, sum))
    }

    fn control(&mut self, _: &ControlRequest, _: &mut Report) -> Result<u64, Failure> {
        Err(Failure::MESSAGE)
    }

    fn shutdown(&mut self) {}
}

impl Endpoint for Sum {
    fn knows(&mut self, digest: &Digest) -> bool {
        self.callables.contains(digest)
    }

    fn submit(&mut self, task: &Task<'_>, _: &mut Report) -> Result<(), Failure> {
        self.ended = Some(self.add(task));
        if let Some(bell) = &self.ring {
            bell.ring();
        }
        Ok(())
    }

    fn poll(&mut self, report: &mut Report) -> Option<Result<(), Failure>> {
        Some(self.ended.take()?.map_err(|sum| unlucky(report, sum)))
    }

    fn control(&mut self, _: &ControlRequest, _: &mut Report) -> Result<u64, Failure> {
        Err(Failure::MESSAGE)
    }

    fn shutdown(&mut self) {}
}

/// Adds 30 and 12, is refused 13, and asks with the next refusal what the sum is.
fn sums(worker: &Worker, who: WorkerId, add: &CallableHandle) -> Verdict {
    let run =
        |number| worker.run(|orch| Ok(orch.submit_next_level(add, who, TaskArgs::new().scalar(number)).map(drop)?));
    for (number, sum) in [(30, 30), (12, 42)] {
        run(number).must("a task")?;
        let error = refused("a task with 13", run(13), "an error", |_| true)?;
        mentions("the error", &error.to_string(), &["worker 0", &format!("13 is not added to {sum}")])?;
    }
    Ok(())
}

/// A child that adds up what it is given.
fn child() -> CustomChild {
    CustomChild::new("sum", |start| {
        let callables = start.callables.iter().map(|(digest, _)| *digest).collect();
        Ok::<_, String>(Sum { callables, sum: 0, ended: None, ring: None })
    })
}

fn leaf(grove: &mut Grove<'_>) -> Verdict {
    let worker = grove.builder().build().must("a worker")?;
    let who = worker.add_child(child()).must("add_child")?;
    let add = worker.register_custom("add", 1, b"").must("register_custom")?;
    worker.init().must("init")?;
    sums(&worker, who, &add)?;
    worker.close().must("close")
}

fn exact(grove: &mut Grove<'_>) -> Verdict {
    let worker = grove.builder().build().must("a worker")?;
    let ids = [worker.add_child(child()).must("add_child")?, worker.add_child(child()).must("add_child")?];
    let add = worker.register_custom("add", 1, b"").must("register_custom")?;
    worker.init().must("init")?;
    let tasks = |orch: &mut laneway_linux::Orchestrator<'_>| {
        for i in 0..12 {
            orch.submit_next_level(&add, ids[usize::from(i % 4 == 3)], TaskArgs::new().scalar(1))?;
        }
        Ok(())
    };
    worker.run(tasks).must("twelve tasks")?;
    for (id, sum) in ids.into_iter().zip([9, 3]) {
        let asked = worker.run(|orch| Ok(orch.submit_next_level(&add, id, TaskArgs::new().scalar(13)).map(drop)?));
        let error = refused("a task with 13", asked, "an error", |_| true)?;
        mentions("the error", &error.to_string(), &[&format!("13 is not added to {sum}")])?;
    }
    worker.close().must("close")
}

fn endpoint(grove: &mut Grove<'_>) -> Verdict {
    let worker = grove.builder().build().must("a worker")?;
    let who = worker.add_endpoint(OwnEndpoint::new("sum", |start| {
        let callables = start.callables.iter().map(|(digest, _)| *digest).collect();
        Ok::<_, String>(Sum { callables, sum: 0, ended: None, ring: Some(start.bell) })
    }));
    let who = who.must("add_endpoint")?;
    let add = worker.register_custom("add", 1, b"").must("register_custom")?;
    worker.init().must("init")?;
    sums(&worker, who, &add)?;
    worker.close().must("close")
}

fn level_2(grove: &mut Grove<'_>) -> Verdict {
    let chip = ChipWorker::new(grove.device(&Setup::default())?);
    let add = chip.register(&grove.blob(Kernel::Add)?).must("register")?;
    let args = |work: &VectorAdd| {
        let mut args = TaskArgs::new();
        for tensor in &work.tensors {
            args.no_dep(*tensor);
        }
        args
    };
    let (blocking, submitted) = (VectorAdd::new(), VectorAdd::new());
    chip.run(&add, args(&blocking)).must("run")?;
    blocking.is_done()?;
    let run = chip.submit(&add, args(&submitted)).must("submit")?;
    run.wait().must("wait")?;
    submitted.is_done()?;
    equal("whether it is done", run.is_done(), true)?;
    let there = chip.malloc(16).must("malloc")?;
    let mut back = [0_u32; 4];
    chip.copy_to(there, &[1_u32, 2, 3, 4]).must("copy_to")?;
    chip.copy_from(&mut back, there).must("copy_from")?;
    equal("what came back", back, [1, 2, 3, 4])?;
    chip.unregister(&add).must("unregister")?;
    refused("a run of what is registered no more", chip.run(&add, args(&blocking)), "an error", |_| true)?;
    equal("memory that was not freed", chip.close().must("close")?, vec![(there, 16)])?;
    equal("processes", children(), Vec::<i32>::new())
}
