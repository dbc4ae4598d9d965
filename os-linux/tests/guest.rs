//! Workers inside host programs that behave badly (P-23, P-30).

mod harness;

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use laneway_linux::{CallableHandle, TaskArgs, Tensor, Worker};
use rustix::process::{Pid, Signal, getpid, kill_process};

fn main() -> std::process::ExitCode {
    harness::main(harness::cases![
        a_host_that_ignores_sigchld,
        a_host_that_reaps_whatever_ends,
        a_host_with_ten_thousand_open_descriptors,
        a_host_whose_thread_that_called_init_ends,
        a_host_that_is_a_subreaper_keeps_no_zombie,
        a_host_that_is_a_subreaper_keeps_no_zombie_of_a_child_that_left_in_order,
        ctrl_c_does_not_reach_the_children,
        the_handlers_and_the_mask_of_the_host_stay_as_they_were,
        a_death_is_noticed_in_a_host_without_pidfds_to_spare,
    ])
}

/// A worker with two children, and a callable that adds 1.
struct Guest {
    worker: Worker,
    add: CallableHandle,
    x: Tensor<i32>,
}

impl Guest {
    fn new() -> Self {
        let worker = Worker::builder().subs(2).heap_ring_bytes(1 << 20).buffer_bytes(1 << 20).build().unwrap();
        let add = worker.register("add", |args| {
            let x = args.tensor::<i32>(0)?;
            x.fill_with(|i| x.get(i).unwrap() + 1);
            Ok(())
        });
        let (add, x) = (add.unwrap(), worker.tensor::<i32>(&[1]).unwrap());
        worker.init().unwrap();
        Self { worker, add, x }
    }

    /// Works, notices a death, still works, and closes.
    fn live(self) {
        let run =
            || self.worker.run(|orch| Ok(orch.submit_sub(&self.add, TaskArgs::new().inout(&self.x)).map(drop)?));
        for _ in 0..10 {
            run().unwrap();
        }
        let victim = self.worker.health().children[1].pid;
        kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
        let start = Instant::now();
        while self.worker.health().ready {
            harness::in_time("the death until it is noticed", start.elapsed(), Duration::from_secs(5));
        }
        run().unwrap();
        assert_eq!(self.x.to_vec().unwrap(), [11]);
        let start = Instant::now();
        // Also where somebody else took the exit status: who leaves in order says so.
        self.worker.close().unwrap();
        harness::in_time("the close", start.elapsed(), Duration::from_secs(2));
        assert!(harness::children_of(getpid()).is_empty(), "nothing is left, not even a zombie");
    }
}

fn disposition(signal: libc::c_int, to: libc::sighandler_t) {
    // SAFETY: either a disposition that runs no code, or a handler that stores one word.
    assert_ne!(unsafe { libc::signal(signal, to) }, libc::SIG_ERR);
}

/// P-23
fn a_host_that_ignores_sigchld() {
    disposition(libc::SIGCHLD, libc::SIG_IGN);
    Guest::new().live();
}

/// P-23
fn a_host_that_reaps_whatever_ends() {
    let guest = Guest::new();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // SAFETY: reaps a child, whose status nobody here wants.
                unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
            }
        });
        guest.live();
        stop.store(true, Ordering::Relaxed);
    });
}

/// P-23
fn a_host_with_ten_thousand_open_descriptors() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = limit.saturating_sub(200).min(10_000);
    let open: Vec<_> = (0..count).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
    let start = Instant::now();
    Guest::new().live();
    harness::in_time(&format!("a life beside {count} descriptors"), start.elapsed(), Duration::from_secs(5));
    assert_eq!(open.len() as u64, count);
}

/// P-23: a parent-death signal would follow that thread; a lifeline follows the process.
fn a_host_whose_thread_that_called_init_ends() {
    let guest = std::thread::spawn(|| {
        let worker = Worker::builder().subs(2).buffer_bytes(1 << 20).allow_foreign_threads(true).build().unwrap();
        let add = worker.register("add", |args| {
            let x = args.tensor::<i32>(0)?;
            x.fill_with(|i| x.get(i).unwrap() + 1);
            Ok(())
        });
        let x = worker.tensor::<i32>(&[1]).unwrap();
        worker.init().unwrap();
        Guest { worker, add: add.unwrap(), x }
    });
    guest.join().unwrap().live();
}

/// P-34: what a dead child left behind is reaped by its group, and nobody else's child is.
fn a_host_that_is_a_subreaper_keeps_no_zombie() {
    rustix::process::set_child_subreaper(Some(getpid())).unwrap();
    let own = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let worker = Worker::builder().subs(2).buffer_bytes(1 << 20).build().unwrap();
    let helper = worker.register("helper", |_| {
        // SAFETY: the new process only sleeps.
        if unsafe { libc::fork() } == 0 {
            loop {
                std::thread::park();
            }
        }
        kill_process(getpid(), Signal::KILL)?;
        Ok(())
    });
    let helper = helper.unwrap();
    worker.init().unwrap();
    worker.run(|orch| Ok(orch.submit_sub(&helper, TaskArgs::new()).map(drop)?)).unwrap_err();
    let start = Instant::now();
    // The other SUB child and the host's own process.
    while harness::children_of(getpid()).len() != 2 {
        harness::in_time("the end of what the dead child started", start.elapsed(), Duration::from_secs(5));
    }
    worker.close().unwrap();
    assert_eq!(harness::children_of(getpid()).len(), 1, "the host's own child is left alone");
    let mut own = own;
    own.kill().unwrap();
    own.wait().unwrap();
}

/// P-14, P-34: nor one of what a child left behind that left in order itself; and nothing waits for long.
fn a_host_that_is_a_subreaper_keeps_no_zombie_of_a_child_that_left_in_order() {
    rustix::process::set_child_subreaper(Some(getpid())).unwrap();
    let worker = Worker::builder().subs(1).buffer_bytes(1 << 20).build().unwrap();
    let helper = worker.register("helper", |_| {
        // SAFETY: the new process only sleeps.
        if unsafe { libc::fork() } == 0 {
            loop {
                std::thread::park();
            }
        }
        Ok(())
    });
    let helper = helper.unwrap();
    worker.init().unwrap();
    worker.run(|orch| Ok(orch.submit_sub(&helper, TaskArgs::new()).map(drop)?)).unwrap();
    let start = Instant::now();
    worker.close().unwrap();
    harness::in_time("the close", start.elapsed(), Duration::from_millis(300));
    assert!(harness::children_of(getpid()).is_empty(), "nothing is left, not even a zombie");
}

static INTERRUPTED: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_interrupt(_: libc::c_int) {
    INTERRUPTED.fetch_add(1, Ordering::Relaxed);
}

/// P-17, P-30, T-40
fn ctrl_c_does_not_reach_the_children() {
    disposition(libc::SIGINT, on_interrupt as *const () as libc::sighandler_t);
    let guest = Guest::new();
    for child in guest.worker.health().children {
        kill_process(Pid::from_raw(child.pid).unwrap(), Signal::INT).unwrap();
    }
    kill_process(getpid(), Signal::INT).unwrap();
    assert_eq!(INTERRUPTED.load(Ordering::Relaxed), 1, "the host decides");
    guest.live();
}

/// P-18
fn the_handlers_and_the_mask_of_the_host_stay_as_they_were() {
    let state = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        // Without those above 31: libc installs handlers of its own there when a thread is started.
        let of = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            u64::from_str_radix(line[name.len()..].trim(), 16).unwrap() & 0x7fff_ffff
        };
        ["SigBlk:", "SigIgn:", "SigCgt:"].map(of)
    };
    let reaper = || {
        let mut is = 0;
        // SAFETY: writes one integer.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut is) }, 0);
        is
    };
    let before = (state(), reaper());
    let guest = Guest::new();
    assert_eq!((state(), reaper()), before);
    guest.live();
    assert_eq!((state(), reaper()), before);
}

/// P-32, L-25: the lifelines tell of a death where a child has no pidfd.
fn a_death_is_noticed_in_a_host_without_pidfds_to_spare() {
    // Ignored, a child that dies at once is gone before its pidfd can be opened; such a start fails, at once.
    disposition(libc::SIGCHLD, libc::SIG_IGN);
    let worker = Worker::builder().subs(1).init_timeout(Duration::from_secs(20)).build().unwrap();
    let dies = laneway_linux::CustomChild::new(
        "dying",
        |_| -> Result<Box<dyn laneway_linux::Leaf>, laneway_linux::BoxError> {
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(3) }
        },
    );
    worker.add_child(dies).unwrap();
    let start = Instant::now();
    let error = worker.init().unwrap_err();
    harness::in_time(&format!("the failed init ({error})"), start.elapsed(), Duration::from_secs(2));
    assert!(error.to_string().contains("dying, pid "), "{error}");
}
