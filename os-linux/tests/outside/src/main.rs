//! A graph that goes through a child of a user's own kind and an endpoint of a user's own.
//!
//! The child fills a tensor and checks another one. The endpoint hands sums to a calculator, a program that it starts and talks
//! to over pipes, as it would to one on another machine; a thread reads the answers and rings.

mod calculator;
mod clerk;

use laneway_core::lane::ExitCause;
use laneway_linux::{
    CallableHandle, CustomChild, Doing, Error, FailureKind, OwnEndpoint, Place, StartCause, TaskArgs, Worker, WorkerId,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    if std::env::args().nth(1).as_deref() == Some(calculator::SERVE) {
        return calculator::serve();
    }
    a_graph_goes_through_both()?;
    an_error_of_the_endpoint_fails_its_task_alone()?;
    a_panic_loses_the_endpoint_and_nothing_else()?;
    a_start_that_fails_fails_init()?;
    println!("outside: 4 passed");
    Ok(())
}

struct Bench {
    worker: Worker,
    clerk: WorkerId,
    calculator: WorkerId,
    fill: CallableHandle,
    check: CallableHandle,
    sum: CallableHandle,
    panic: CallableHandle,
}

impl Bench {
    fn new() -> Result<Self, Error> {
        let worker = Worker::builder().build()?;
        let clerk = worker.add_child(CustomChild::new("clerk", clerk::Clerk::start))?;
        let calculator = worker.add_endpoint(OwnEndpoint::new("calculator", calculator::Calculator::start))?;
        let [fill, check, sum, panic] =
            ["fill", "check", "sum", "panic"].map(|name| worker.register_custom(name, 1, name.as_bytes()));
        let bench = Self { worker, clerk, calculator, fill: fill?, check: check?, sum: sum?, panic: panic? };
        bench.worker.init()?;
        Ok(bench)
    }
}

fn a_graph_goes_through_both() -> Outcome {
    let bench = Bench::new()?;
    let kinds: Vec<_> = bench.worker.health().children.into_iter().map(|child| child.kind).collect();
    assert_eq!(kinds, ["clerk", "calculator"]);
    let (x, y) = (bench.worker.tensor::<i32>(&[1000])?, bench.worker.tensor::<i32>(&[1])?);
    for round in 1..=20 {
        // What orders the three tasks are the tags, across both kinds.
        bench.worker.run(|orch| {
            orch.submit_next_level(&bench.fill, bench.clerk, TaskArgs::new().output(&x).scalar(round))?;
            orch.submit_next_level(&bench.sum, bench.calculator, TaskArgs::new().input(&x).output(&y))?;
            orch.submit_next_level(&bench.check, bench.clerk, TaskArgs::new().input(&y).scalar(1000 * round))?;
            Ok(())
        })?;
    }
    assert_eq!(y.to_vec()?, [20_000]);
    let wrong = bench.worker.run(|orch| {
        Ok(orch.submit_next_level(&bench.check, bench.clerk, TaskArgs::new().input(&y).scalar(7)).map(drop)?)
    });
    assert!(wrong.unwrap_err().to_string().contains("20000 is not 7"));
    Ok(bench.worker.close()?)
}

fn an_error_of_the_endpoint_fails_its_task_alone() -> Outcome {
    let bench = Bench::new()?;
    let none = bench.worker.tensor::<i32>(&[1])?;
    let one = |args: &TaskArgs| {
        bench.worker.run(|orch| Ok(orch.submit_next_level(&bench.sum, bench.calculator, args).map(drop)?))
    };
    // Refused at once, and answered with an error later.
    let refused = one(TaskArgs::new().input(&none)).unwrap_err();
    assert!(matches!(refused, Error::RunFailed { kind: FailureKind::Task, .. }), "{refused:?}");
    assert!(refused.to_string().contains("worker 1: code 1: two tensors are needed"), "{refused}");
    none.copy_from(&[-1])?;
    let answered = one(TaskArgs::new().input(&none).output(&bench.worker.tensor::<i32>(&[1])?)).unwrap_err();
    assert!(answered.to_string().contains("the calculator does not do negative numbers"), "{answered}");
    none.copy_from(&[5])?;
    one(TaskArgs::new().input(&none).output(&bench.worker.tensor::<i32>(&[1])?))?;
    Ok(bench.worker.close()?)
}

fn a_panic_loses_the_endpoint_and_nothing_else() -> Outcome {
    let bench = Bench::new()?;
    let run = || {
        bench
            .worker
            .run(|orch| Ok(orch.submit_next_level(&bench.panic, bench.calculator, TaskArgs::new()).map(drop)?))
    };
    let error = run().unwrap_err().to_string();
    assert!(error.contains("panic: as asked"), "{error}");
    // Its thread ends a moment after its last answer.
    while !matches!(bench.worker.health().children[1].doing, Doing::Dead { .. }) {
        std::thread::yield_now();
    }
    let error = run().unwrap_err();
    let expected = ExitCause::ThreadEnded { status: 82 };
    assert!(error.to_string().contains(&expected.to_string()), "{error}");
    let x = bench.worker.tensor::<i32>(&[4])?;
    bench.worker.run(|orch| {
        Ok(orch.submit_next_level(&bench.fill, bench.clerk, TaskArgs::new().output(&x).scalar(3)).map(drop)?)
    })?;
    assert_eq!(x.to_vec()?, [3; 4]);
    Ok(bench.worker.close()?)
}

fn a_start_that_fails_fails_init() -> Outcome {
    let worker = Worker::builder().subs(1).build()?;
    worker.add_endpoint(OwnEndpoint::new("nowhere", |_| Err::<calculator::Calculator, _>("no route to host")))?;
    let error = worker.init().unwrap_err();
    let Error::ChildStart { kind: "nowhere", place: Place::Thread, cause: StartCause::Failed(text), .. } = &error
    else {
        return Err(format!("{error:?}").into());
    };
    assert_eq!(text, "nowhere 0 init: no route to host");
    Ok(())
}
