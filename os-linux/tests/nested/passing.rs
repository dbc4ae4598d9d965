//! How fast a stop and a death are passed on from level to level (P-29).

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use laneway_linux::{BoxError, CallConfig, Orchestrator, TaskArgs, TaskArgsView};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::harness;
use crate::harness::descendants;
use crate::support::{Gate, Tower, hold, until, worker};

/// How long one level may take to pass a stop or a death on.
const A_LEVEL: Duration = Duration::from_millis(10);

/// On a busy machine one measurement proves little: the best of so many counts.
const TRIES: usize = 5;

/// Nanoseconds on the clock that all processes have in common.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What a callback does until it hears that it is to stop: both ask the orchestrator, and one is silent in between for longer
/// than a level may take.
#[derive(Clone, Copy)]
enum Manner {
    /// Asks for a little memory now and then.
    Asks,
    /// Looks at a word of shared memory now and then, and calls nothing.
    Silent,
}

/// A level that sends its task on, then keeps its callback open; it says when its children were told to stop by when the run
/// was cancelled under it. Cells: 0 lets the bottom go, 1 says that it runs, 2 + level is when that level heard of the stop.
fn keeps_building(
    manner: Manner,
    level: usize,
    send: impl Fn(&mut Orchestrator<'_>, &TaskArgs) -> Result<(), BoxError> + Send + Sync + 'static,
) -> impl Fn(&mut Orchestrator<'_>, TaskArgsView<'_>, &CallConfig) -> Result<(), BoxError> + Send + Sync + 'static {
    move |orch, args, _| {
        let cells = args.tensors()[0];
        let mut same = TaskArgs::new();
        same.no_dep(cells);
        send(orch, &same)?;
        let heard = |orch: &mut Orchestrator<'_>| orch.alloc::<i32>(&[1]).is_err();
        match manner {
            // Asked often enough to see when; what ends the loop is the stop alone.
            Manner::Asks => {
                while !heard(orch) {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            Manner::Silent => {
                let word = word(&cells, 2 + level - 1);
                // A level above the bottom hears of it from the one below, whose callback writes first.
                while word.load(Ordering::Acquire) == 0 && level > 3 {
                    std::thread::sleep(Duration::from_micros(200));
                }
                while !heard(orch) {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        }
        word(&cells, 2 + level).store(now(), Ordering::Release);
        Ok(())
    }
}

fn word(cells: &laneway_linux::ChipTensor, index: usize) -> &std::sync::atomic::AtomicU64 {
    // SAFETY: the tensor is mapped in the whole tree, has eight bytes an element, and everybody reaches it by atomics.
    unsafe { std::sync::atomic::AtomicU64::from_ptr((cells.addr() as usize + 8 * index) as *mut u64) }
}

/// The time from `close_now` at the top to each level's hearing of it, highest first.
fn stop_once(manner: Manner) -> Vec<Duration> {
    let l3 = worker(3, 1);
    let bottom = l3
        .register("bottom", |args| {
            let cells = args.tensors()[0];
            word(&cells, 1).store(1, Ordering::Release);
            while word(&cells, 0).load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            Ok(())
        })
        .unwrap();
    let (l4, l5, l6) = (worker(4, 0), worker(5, 0), worker(6, 0));
    let send = move |orch: &mut Orchestrator<'_>, args: &TaskArgs| Ok(orch.submit_sub(&bottom, args).map(drop)?);
    let three = l4.register_orchestration("three", keeps_building(manner, 3, send)).unwrap();
    let id3 = l4.add_worker(&l3).unwrap();
    let send =
        move |orch: &mut Orchestrator<'_>, args: &TaskArgs| Ok(orch.submit_next_level(&three, id3, args).map(drop)?);
    let four = l5.register_orchestration("four", keeps_building(manner, 4, send)).unwrap();
    let id4 = l5.add_worker(&l4).unwrap();
    let send =
        move |orch: &mut Orchestrator<'_>, args: &TaskArgs| Ok(orch.submit_next_level(&four, id4, args).map(drop)?);
    let five = l6.register_orchestration("five", keeps_building(manner, 5, send)).unwrap();
    let id5 = l6.add_worker(&l5).unwrap();
    l6.init().unwrap();
    let cells = l6.tensor::<u64>(&[8]).unwrap();
    let arg = cells.as_arg();
    let run = l6.submit(|orch| Ok(orch.submit_next_level(&five, id5, TaskArgs::new().no_dep(arg)).map(drop)?));
    let run = run.unwrap();
    until("the bottom runs", || word(&arg, 1).load(Ordering::Acquire) == 1);
    let start = std::thread::scope(|scope| {
        let closing = scope.spawn(|| {
            let start = now();
            l6.close_now().unwrap();
            start
        });
        let all = || (3..=5).all(|level| word(&arg, 2 + level).load(Ordering::Acquire) != 0);
        until("every level has heard", all);
        word(&arg, 0).store(1, Ordering::Release);
        closing.join().unwrap()
    });
    run.wait().unwrap_err();
    assert_eq!(descendants(), []);
    (3..=5)
        .rev()
        .map(|level| Duration::from_nanos(word(&arg, 2 + level).load(Ordering::Acquire).saturating_sub(start)))
        .collect()
}

/// The best of several tries, by level from the highest down.
fn stops(manner: Manner) -> Vec<Duration> {
    let tries: Vec<_> = (0..TRIES).map(|_| stop_once(manner)).collect();
    println!("a stop reached three levels after {tries:?}");
    tries.into_iter().min_by_key(|took| took.iter().max().copied()).unwrap()
}

/// P-29: every level passes a stop on while its callback is open.
pub(crate) fn a_stop_is_passed_on_within_ten_milliseconds_a_level() {
    for (levels, took) in (1..).zip(stops(Manner::Asks)) {
        harness::in_time(&format!("a stop down {levels} levels"), took, A_LEVEL * levels);
    }
}

/// P-29: also past callbacks that call nothing, which hear of it only when those below them have.
pub(crate) fn a_stop_is_passed_on_past_callbacks_that_call_nothing() {
    let slowest = stops(Manner::Silent).into_iter().max().unwrap();
    harness::in_time("a stop down three levels", slowest, A_LEVEL * 3);
}

/// P-29, P-14: from the death of the root to that of the deepest process, with a task running there.
pub(crate) fn a_death_is_passed_on_within_ten_milliseconds_a_level() {
    let once = || {
        // SAFETY: this case is a process with one thread; the child goes on as a parent of its own and never returns.
        match unsafe { libc::fork() } {
            0 => {
                let tower = Tower::new(3..=5, hold);
                let gate = Gate::new(&tower.top);
                drop(tower.run(&gate.args()));
                unreachable!("nobody opens the gate");
            }
            root => {
                until("the tree is up", || descendants().len() == 4);
                let watched: Vec<_> = descendants()
                    .into_iter()
                    .map(|pid| pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap())
                    .collect();
                let start = Instant::now();
                kill_process(Pid::from_raw(root).unwrap(), Signal::KILL).unwrap();
                for pidfd in &watched {
                    use std::os::fd::AsFd;
                    assert!(harness::is_ready_within(pidfd.as_fd(), Duration::from_secs(5)));
                }
                let took = start.elapsed();
                // SAFETY: reaps the child that was forked above.
                unsafe { libc::waitpid(root, std::ptr::null_mut(), 0) };
                took
            }
        }
    };
    let tries: Vec<_> = (0..TRIES).map(|_| once()).collect();
    println!("a death reached three levels after {tries:?}");
    harness::in_time("a death down three levels", tries.into_iter().min().unwrap(), A_LEVEL * 3);
}
