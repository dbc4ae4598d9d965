//! What a child asks of the scheduler.

use std::time::Duration;

use laneway_linux::sys::{clock, time_slice};
use laneway_linux::{BoxError, SubArgs, TaskArgs, Worker};

/// Which tasks came before makes a child with long tasks give way to others, and only while it has long ones.
pub(crate) fn a_child_that_computes_for_long_asks_for_long_slices() {
    let worker = Worker::builder().subs(1).build().unwrap();
    // Computes or sleeps for so many microseconds, and says what slice it ran with.
    let work = |computes: bool| {
        move |args: &SubArgs<'_>| -> Result<(), BoxError> {
            let slice = time_slice::current().unwrap_or_default();
            args.tensor::<u64>(0)?.set(0, slice.as_micros() as u64)?;
            let time = Duration::from_micros(args.scalar(0)?);
            if computes {
                let end = clock::thread_time() + time;
                while clock::thread_time() < end {}
            } else {
                std::thread::sleep(time);
            }
            Ok(())
        }
    };
    let compute = worker.register("compute", work(true)).unwrap();
    let sleep = worker.register("sleep", work(false)).unwrap();
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
    // A kernel that knows of no slices says zero.
    let long = if usual == 0 { 0 } else { 10_000 };
    assert_eq!(had, [usual, long, long]);
    worker.close().unwrap();
}
