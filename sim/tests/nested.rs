//! Chips below nested workers: starts that fail at every depth, and work that reaches them.

#[path = "../../os-linux/tests/harness/mod.rs"]
mod harness;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use laneway_linux::{BoxError, Chip, Error, InitCanceller, TaskArgs, Worker};
use laneway_sim::{Config, HostMemory, Kernel, Profile, Simulator, callable};
use rustix::process::{Pid, Signal, getpid, kill_process};

fn main() -> std::process::ExitCode {
    harness::main_in_both_modes(
        harness::cases![
            a_level_4_computes_on_the_chips_of_a_level_3,
            an_error_in_a_start_at_every_depth_names_the_path,
            a_panic_in_a_start_at_every_depth_is_an_error,
            a_start_that_was_cancelled_before_it_began_starts_nothing,
            an_interrupted_system_call_cancels_nothing,
        ],
        harness::cases![
            an_exit_in_a_start_at_every_depth_is_an_error,
            a_kill_in_a_start_at_every_depth_is_an_error,
            a_hang_in_a_start_at_every_depth_ends_at_the_deadline,
            a_start_is_cancelled_from_another_thread_at_every_depth,
            a_start_is_cancelled_by_the_hosts_own_signal_handler,
        ],
    )
}

const HBG: Profile = Profile::A2a3HostBuildGraph;

fn chip() -> Chip {
    chip_after(|| Ok(()))
}

/// A chip whose start does `start` first.
fn chip_after(start: impl Fn() -> Result<(), BoxError> + Send + 'static) -> Chip {
    Chip::new(HBG.platform(), HBG.runtime(), move |shared| {
        start()?;
        // SAFETY: the worker keeps the ranges of its tensors mapped for the child's life, and this child makes no
        // reference into them.
        let host = unsafe { HostMemory::ranges(shared.iter().cloned()) };
        Simulator::new(Config::new(HBG), host).map_err(BoxError::from)
    })
}

fn worker(level: u32, subs: u32, timeout: Duration) -> Worker {
    let builder = harness::builder!().level(level).subs(subs).heap_ring_bytes(1 << 20).buffer_bytes(1 << 20);
    // Threads of these cases hold no lock while a child is forked.
    builder.init_timeout(timeout).allow_foreign_threads(true).build().unwrap()
}

const NONE: [i32; 0] = [];

const LONG: Duration = Duration::from_secs(20);

/// A worker above `depth` others; the lowest has the chip, which has siblings that start well at every level.
fn tower(depth: u32, timeout: Duration, odd: Chip) -> Worker {
    let mut current = worker(3, 1, if depth == 0 { timeout } else { LONG });
    current.add_chip(chip()).unwrap();
    current.add_chip(odd).unwrap();
    for level in 4..4 + depth {
        let upper = worker(level, 1, if level == 3 + depth { timeout } else { LONG });
        upper.add_worker(&current).unwrap();
        current = upper;
    }
    current
}

/// Starts a tree of each depth whose lowest chip does `start`; each must fail with one error that names the whole path and
/// `cause`, and leave nothing.
fn fails_everywhere(cause: &str, start: fn() -> Result<(), BoxError>) {
    let before = harness::descriptors();
    let place = if harness::in_threads() { "a thread of this process)" } else { "pid " };
    for depth in 0..=3 {
        let top = tower(depth, LONG, chip_after(start));
        let text = top.init().unwrap_err().to_string();
        let mut at = 0;
        for level in (4..4 + depth).rev() {
            let part = format!("level {level}, worker 0 (nested worker, {place}");
            at += text[at..].find(&part).unwrap_or_else(|| panic!("{part:?} is not where it belongs in {text:?}"));
        }
        assert!(text[at..].contains(&format!("level 3, worker 1 (chip, {place}")), "{text}");
        assert!(text.contains(cause), "{cause:?} is not in {text:?}");
        assert_eq!(harness::descendants(), NONE, "left by depth {depth}");
        drop(top);
        assert_eq!(harness::descriptors(), before);
    }
    // T-33: another start can follow.
    let top = tower(1, LONG, chip());
    top.init().unwrap();
    top.close().unwrap();
}

/// P-8, P-11
fn a_level_4_computes_on_the_chips_of_a_level_3() {
    let (l3, l4) = (worker(3, 0, LONG), worker(4, 0, LONG));
    let chips = [l3.add_chip(chip()).unwrap(), l3.add_chip(chip()).unwrap()];
    let add = l3.register_chip(HBG.platform(), HBG.runtime(), &callable(Kernel::Add)).unwrap();
    let sum = l4
        .register_orchestration("sum", move |orch, args, config| {
            let [a, b, c] = args.tensors() else { return Err("three tensors are needed".into()) };
            for (chip, half) in chips.iter().zip([0..500, 500..1000]) {
                let part = |tensor: &laneway_linux::ChipTensor| tensor.slice(0, half.start, half.end, 1);
                let mut args = TaskArgs::new();
                args.input(part(a)?).input(part(b)?).output(part(c)?);
                orch.submit_next_level_with(&add, *chip, &args, config)?;
            }
            Ok(())
        })
        .unwrap();
    let id = l4.add_worker(&l3).unwrap();
    l4.init().unwrap();
    let [a, b, c] = [(); 3].map(|()| l4.tensor::<f32>(&[1000]).unwrap());
    a.fill_with(|i| i as f32).unwrap();
    b.fill_with(|i| 2.0 * i as f32).unwrap();
    l4.run(|orch| Ok(orch.submit_next_level(&sum, id, TaskArgs::new().input(&a).input(&b).output(&c)).map(drop)?))
        .unwrap();
    assert!(c.to_vec().unwrap().iter().enumerate().all(|(i, x)| *x == 3.0 * i as f32));
    l4.close().unwrap();
}

/// T-33, P-3, P-5, P-10
fn an_error_in_a_start_at_every_depth_names_the_path() {
    fails_everywhere("chip 1 init: no such device", || Err("no such device".into()));
}

/// T-33, P-3
fn a_panic_in_a_start_at_every_depth_is_an_error() {
    fails_everywhere("chip 1 init: out of ideas", || panic!("out of ideas"));
}

/// T-33, P-5
fn an_exit_in_a_start_at_every_depth_is_an_error() {
    fails_everywhere("exited with status 7", || std::process::exit(7));
}

/// T-33, P-5
fn a_kill_in_a_start_at_every_depth_is_an_error() {
    fails_everywhere("SIGKILL", || {
        kill_process(getpid(), Signal::KILL)?;
        Ok(())
    });
}

/// How much later than its deadline a failed start may return.
const LATENESS: Duration = Duration::from_millis(200);

fn hang() -> Result<(), BoxError> {
    loop {
        std::thread::park();
    }
}

/// T-33, P-5: a child gets the smaller of its own time and its parent's.
fn a_hang_in_a_start_at_every_depth_ends_at_the_deadline() {
    for depth in 0..=3 {
        let timeout = Duration::from_millis(1000);
        let top = tower(depth, timeout, chip_after(hang));
        let start = Instant::now();
        let text = top.init().unwrap_err().to_string();
        let took = start.elapsed();
        println!("depth {depth}: {:?} after the deadline", took.saturating_sub(timeout));
        harness::in_time(&format!("init at depth {depth}"), took, timeout + LATENESS);
        if !text.contains("level 3, worker 1 (chip, pid ") {
            // The innermost worker has the earliest deadline; what it says gets to the top before the last one is over.
            harness::in_time(&format!("{text}: the report from below"), took, timeout);
        }
        assert!(text.contains("level 3, worker 1 (chip, pid ") && text.contains("was not ready"), "{text}");
        assert_eq!(harness::descendants(), NONE, "left by depth {depth}");
    }
}

/// T-35, P-7
fn a_start_is_cancelled_from_another_thread_at_every_depth() {
    for depth in 0..=3 {
        let top = tower(depth, LONG, chip_after(hang));
        let (other, canceller) = (top.clone(), top.init_canceller().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while harness::descendants().len() < 3 + 2 * depth as usize {
                    std::thread::yield_now();
                }
                if depth % 2 == 0 { canceller.cancel() } else { other.close().unwrap() }
            });
            assert_eq!(top.init(), Err(Error::InitCancelled));
        });
        assert_eq!(harness::descendants(), NONE, "left by depth {depth}");
        assert!(matches!(top.init(), Err(Error::WrongState { state: "CLOSED", .. })));
    }
}

static CANCELLER: OnceLock<InitCanceller> = OnceLock::new();

extern "C" fn on_interrupt(_: libc::c_int) {
    if let Some(canceller) = CANCELLER.get() {
        canceller.cancel();
    }
}

extern "C" fn on_alarm(_: libc::c_int) {}

/// Installs a handler of the host, without SA_RESTART.
fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: all zero is an empty mask and no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    // SAFETY: both handlers do only what is allowed in one.
    assert_eq!(unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) }, 0);
}

/// P-7, T-40: Ctrl-C reaches the whole foreground group; the children leave the decision to the parent.
fn a_start_is_cancelled_by_the_hosts_own_signal_handler() {
    handle(libc::SIGINT, on_interrupt);
    let top = tower(2, LONG, chip_after(hang));
    CANCELLER.set(top.init_canceller().unwrap()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while harness::descendants().len() < 7 {
                std::thread::yield_now();
            }
            for pid in harness::descendants() {
                let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::INT);
            }
            assert_eq!(harness::descendants().len(), 7, "no child died of it");
            kill_process(getpid(), Signal::INT).unwrap();
        });
        assert_eq!(top.init(), Err(Error::InitCancelled));
    });
    assert_eq!(harness::descendants(), NONE);
}

/// P-7
fn a_start_that_was_cancelled_before_it_began_starts_nothing() {
    let top = tower(1, LONG, chip_after(hang));
    top.init_canceller().unwrap().cancel();
    // The request stays for as long as somebody has the canceller; one that was dropped cancels nothing.
    let kept = top.init_canceller().unwrap();
    kept.cancel();
    assert_eq!(top.init(), Err(Error::InitCancelled));
    assert_eq!(harness::descendants(), NONE);
}

/// P-7
fn an_interrupted_system_call_cancels_nothing() {
    handle(libc::SIGALRM, on_alarm);
    let every = libc::timeval { tv_sec: 0, tv_usec: 500 };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: a timer of this process, with a handler for its signal.
    assert_eq!(unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()) }, 0);
    let slow = chip_after(|| {
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    });
    let top = tower(1, LONG, slow);
    top.init().unwrap();
    top.close().unwrap();
}
