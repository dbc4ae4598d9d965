//! Many threads at one worker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use laneway_linux::{BoxError, CallableError, ChildActivity, ChildHealth, Error, SubArgs, TaskArgs, Worker};

use crate::harness;
use crate::support::{Bench, Gate, until};

/// Rounds of each thread; `LANEWAY_STRESS_ROUNDS` asks for more.
fn rounds() -> u64 {
    std::env::var("LANEWAY_STRESS_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

fn nothing(_: &SubArgs<'_>, _: &[u8]) -> Result<(), BoxError> {
    Ok(())
}

/// Architecture, progress: every hand-over, with windows of every kind. A hang is the failure: the runner ends the case.
pub(crate) fn threads_submit_wait_register_cancel_and_drop_and_nothing_hangs() {
    const THREADS: u64 = 5;
    for nanos in [0, 200, 6_000] {
        let bench = Bench::of(Worker::builder().subs(3).spin(Duration::from_nanos(nanos)).build().unwrap());
        let ended = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 1..=THREADS {
                let (bench, ended) = (&bench, &ended);
                scope.spawn(move || {
                    let mut dice = thread.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    for _ in 0..rounds() {
                        dice ^= dice << 13;
                        dice ^= dice >> 7;
                        dice ^= dice << 17;
                        round(bench, dice);
                        ended.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(ended.into_inner(), THREADS * rounds());
        bench.worker.close().unwrap();
    }
}

fn round(bench: &Bench, dice: u64) {
    let x = bench.tensor(1);
    let tasks = 1 + dice % 7;
    let submit = || {
        bench.worker.submit(|orch| {
            for i in 0..tasks {
                // Some in a chain, some side by side.
                match i % 2 {
                    0 => orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?,
                    _ => orch.submit_sub(&bench.pid, TaskArgs::new().output(&bench.tensor(1)))?,
                };
            }
            Ok(())
        })
    };
    match (dice >> 8) % 6 {
        0 => {
            submit().unwrap().wait().unwrap();
            assert_eq!(x.to_vec().unwrap(), [tasks.div_ceil(2) as i32]);
        }
        1 => match submit().unwrap().wait_timeout(Duration::from_nanos(dice % 20_000)) {
            Ok(()) | Err(Error::WaitTimedOut { .. }) => {}
            Err(error) => panic!("{error}"),
        },
        2 => drop(submit().unwrap()),
        3 => {
            let run = submit().unwrap();
            run.cancel().unwrap();
            // It may have ended before.
            let _ = run.wait();
        }
        4 => match bench.worker.register_fn("nothing", 1, nothing, &[]) {
            Ok(handle) => bench.worker.unregister(&handle).unwrap(),
            // Another thread takes the last one away just now.
            Err(Error::Callable(CallableError::RegisterTombstoneActive { .. })) => {}
            Err(error) => panic!("{error}"),
        },
        _ => {
            let run = submit().unwrap();
            run.wait_accepted().unwrap();
            until("it is done, though nobody waits", || run.is_done());
        }
    }
}

/// L-24, T-10: a registration waits for the task of one child; the other child's tasks take what they always take, and the task
/// of the first ends in its time.
pub(crate) fn a_slow_control_on_one_child_delays_nothing_on_another() {
    const TASKS: u32 = 300;
    let bench = Bench::new(2);
    let x = bench.tensor(1);
    let chain = || {
        let start = Instant::now();
        let times: Vec<_> = (0..TASKS)
            .map(|_| {
                let start = Instant::now();
                bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
                start.elapsed()
            })
            .collect();
        (median(times), start.elapsed())
    };
    // Both chains run beside a task of the other child, and beside a thread that waits for it: in the second one a control
    // is outstanding too.
    let gate = Gate::new(&bench);
    let held = bench.worker.submit(|orch| {
        orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg()))?;
        for _ in 0..TASKS {
            orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?;
            orch.wait(&[x.as_arg()])?;
        }
        Ok(())
    });
    let held = held.unwrap();
    gate.open();
    held.wait().unwrap();
    let (alone, _) = chain();
    let gate = Gate::new(&bench);
    let registered = AtomicU64::new(0);
    let mut with_control = Vec::new();
    bench
        .worker
        .run(|orch| {
            orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg()))?;
            // A child that has not begun its task may answer before it.
            let runs = |child: &ChildHealth| child.activity == ChildActivity::Task;
            until("its task has begun", || bench.worker.health().children.iter().any(runs));
            std::thread::scope(|scope| {
                let registering = scope.spawn(|| {
                    let handle = bench.worker.register_fn("nothing", 1, nothing, &[]).unwrap();
                    registered.store(1, Ordering::Release);
                    handle
                });
                for _ in 0..TASKS {
                    let start = Instant::now();
                    orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?;
                    orch.wait(&[x.as_arg()])?;
                    with_control.push(start.elapsed());
                }
                assert_eq!(registered.load(Ordering::Acquire), 0, "its task holds the control back");
                gate.open();
                registering.join().unwrap();
                Ok(())
            })
        })
        .unwrap();
    let with_control = median(with_control);
    println!("a task takes {alone:?} alone, {with_control:?} beside an outstanding control");
    harness::in_time("a task beside an outstanding control", with_control, alone * 4 + Duration::from_micros(100));
    bench.worker.close().unwrap();
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
