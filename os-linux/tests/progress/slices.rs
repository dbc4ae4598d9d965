//! What a child asks of the scheduler.

use std::time::Duration;

use laneway_linux::sys::{clock, time_slice};
use laneway_linux::{BoxError, CallConfig, Orchestrator, SubArgs, TaskArgs, TaskArgsView, Worker};

/// Microseconds that this thread may run at a time; zero where the kernel knows of no slices.
fn slice() -> u64 {
    time_slice::current().unwrap_or_default().as_micros() as u64
}

fn compute(micros: u64) {
    let end = clock::thread_time() + Duration::from_micros(micros);
    while clock::thread_time() < end {}
}

/// Says what slice it ran with: (output), (microseconds to work for).
fn working(work: fn(u64)) -> impl Fn(&SubArgs<'_>) -> Result<(), BoxError> {
    move |args| {
        args.tensor::<u64>(0)?.set(0, slice())?;
        work(args.scalar(0)?);
        Ok(())
    }
}

/// Which tasks came before makes a child with long tasks give way to others, and only while it has long ones.
pub(crate) fn a_child_that_computes_for_long_asks_for_long_slices() {
    for allowed in [true, false] {
        let worker = Worker::builder().subs(1).long_slices(allowed).build().unwrap();
        let compute = worker.register("compute", working(compute)).unwrap();
        let sleep =
            worker.register("sleep", working(|micros| std::thread::sleep(Duration::from_micros(micros)))).unwrap();
        worker.init().unwrap();
        let at = worker.tensor::<u64>(&[1]).unwrap();
        let ran_with = |callable, micros| {
            worker.run(|orch| Ok(orch.submit_sub(callable, TaskArgs::new().output(&at).scalar(micros))?)).unwrap();
            at.to_vec().unwrap()[0]
        };
        let usual = ran_with(&compute, 5_000);
        let had = [(); 3].map(|()| ran_with(&compute, 5_000));
        assert_eq!(ran_with(&compute, 1), had[2], "what comes next is not known before it ended");
        let afterwards = [ran_with(&compute, 1), ran_with(&sleep, 5_000), ran_with(&sleep, 5_000), ran_with(&sleep, 1)];
        println!("{usual} µs at first, {had:?} with long tasks, {afterwards:?} with short and sleeping ones");
        assert_eq!(afterwards, [usual; 4]);
        let long = if allowed && usual > 0 { 10_000 } else { usual };
        assert_eq!(had, [usual, long, long]);
        worker.close().unwrap();
    }
}

/// What a child spins for between tasks is none of their time: a task that sleeps for long stays one that shall wake soon.
pub(crate) fn a_child_that_spins_for_long_between_tasks_keeps_its_slices() {
    let worker = Worker::builder().subs(1).spin(Duration::from_millis(50)).build().unwrap();
    let sleep = worker.register("sleep", working(|micros| std::thread::sleep(Duration::from_micros(micros)))).unwrap();
    worker.init().unwrap();
    let at = worker.tensor::<u64>(&[1]).unwrap();
    let had = [(); 4].map(|()| {
        worker.run(|orch| Ok(orch.submit_sub(&sleep, TaskArgs::new().output(&at).scalar(2_000))?)).unwrap();
        // The child has nothing to do meanwhile but to spin.
        compute(3_000);
        at.to_vec().unwrap()[0]
    });
    assert_eq!(had, [had[0]; 4]);
    worker.close().unwrap();
}

/// Whoever drives children shall be awake when they answer, however long its orchestrations take to submit.
pub(crate) fn a_nested_worker_that_submits_for_long_keeps_its_slices() {
    let below = Worker::builder().subs(1).build().unwrap();
    let tell = below.register("tell", |args| Ok(args.tensor::<u64>(0)?.set(0, args.scalar(0)?)?)).unwrap();
    let top = Worker::builder().level(4).build().unwrap();
    let submit = move |orch: &mut Orchestrator<'_>, args: TaskArgsView<'_>, _: &CallConfig| -> Result<(), BoxError> {
        compute(5_000);
        let mut told = TaskArgs::new();
        args.tensors().iter().for_each(|tensor| _ = told.output(*tensor));
        Ok(orch.submit_sub(&tell, told.scalar(slice())).map(drop)?)
    };
    let submit = top.register_orchestration("submit", submit).unwrap();
    let nested = top.add_worker(&below).unwrap();
    top.init().unwrap();
    let at = top.tensor::<u64>(&[1]).unwrap();
    let had = [(); 4].map(|()| {
        top.run(|orch| Ok(orch.submit_next_level(&submit, nested, TaskArgs::new().output(&at)).map(drop)?)).unwrap();
        at.to_vec().unwrap()[0]
    });
    assert_eq!(had, [had[0]; 4]);
    assert!(had[0] < 10_000, "{had:?}");
    top.close().unwrap();
}
