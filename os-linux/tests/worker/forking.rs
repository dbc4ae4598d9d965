//! The host program and callables fork, execute other programs and close descriptors as they like.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use laneway_linux::{BoxError, CustomChild, CustomStart, Error, ExitCause, Leaf, TaskArgs, Worker};

use crate::harness::children;
use crate::support::Bench;

/// Forks, runs `side` in the new process, and returns how that ended.
fn forked(side: impl FnOnce() -> bool) -> i32 {
    // SAFETY: what the new process calls is what this test is about; it ends there.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let right = side();
        // SAFETY: ends the process.
        unsafe { libc::_exit(if right { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: writes one number.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

/// P-31, P-19: the host forks while a worker is open. What the new process has of it is refused there, and dropping it takes
/// nothing away from the worker.
pub(crate) fn a_worker_that_came_through_a_fork_of_the_host_is_refused_and_the_original_goes_on() {
    let bench = Bench::new(2);
    let x = bench.tensor(4);
    let run =
        bench.worker.submit(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1)).map(drop)?));
    let run = run.unwrap();
    run.wait().unwrap();
    let (other, kept) = (bench.worker.clone(), x.clone());
    let status = forked(move || {
        let refused = [
            run.wait(),
            other.run(|_| Ok(())),
            other.tensor::<i32>(&[1]).map(drop),
            other.close(),
            other.close_now(),
            run.cancel(),
            other.write_trace(),
        ];
        let right = refused.iter().all(|answer| *answer == Err(Error::Inherited)) && kept.to_vec() == Ok(vec![1; 4]);
        let right = right && run.is_done();
        drop((run, kept, other));
        right
    });
    assert_eq!(status, 0);
    // All of it, the last handles too.
    let mut all = Some((bench, x));
    assert_eq!(forked(|| all.take().is_some()), 0);
    let (bench, x) = all.unwrap();
    for _ in 0..10 {
        bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
    }
    assert_eq!(x.to_vec().unwrap(), [11; 4]);
    bench.worker.close().unwrap();
}

/// P-31: a callback that forks comes back twice; the copy is told so and has touched nothing.
pub(crate) fn a_callback_that_forks_builds_its_run_in_the_original_alone() {
    let bench = Bench::new(1);
    let x = bench.tensor(1);
    let (parent, mut child) = (std::process::id(), 0);
    let add = |orch: &mut laneway_linux::Orchestrator<'_>| {
        orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1)).map(drop)
    };
    let ran = bench.worker.run(|orch| {
        // SAFETY: the copy ends below.
        child = unsafe { libc::fork() };
        let answers = [add(orch), orch.wait(&[x.as_arg()]), orch.alloc::<i32>(&[1]).map(drop), orch.scope(|_| Ok(()))];
        match std::process::id() == parent {
            true => Ok(answers.into_iter().collect::<Result<(), Error>>()?),
            false if answers.iter().all(|answer| *answer == Err(Error::Inherited)) => Ok(()),
            false => Err("the copy could build".into()),
        }
    });
    if std::process::id() != parent {
        // SAFETY: ends the process.
        unsafe { libc::_exit(if ran == Err(Error::Inherited) { 0 } else { 1 }) };
    }
    ran.unwrap();
    let mut status = 0;
    // SAFETY: writes one number.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!((status, x.to_vec().unwrap()), (0, vec![1]));
    bench.worker.close().unwrap();
}

/// L-1, P-3: two processes would answer one task. The one that the callable forked ends before it does.
pub(crate) fn a_callable_that_forks_and_returns_on_both_sides_ends_its_task_once() {
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    let fork = worker.register("fork", |args| {
        // SAFETY: as a callable would that does not know better.
        let copy = unsafe { libc::fork() };
        if copy != 0 {
            let mut status = 0;
            // The copy is over before this task is.
            // SAFETY: writes one number.
            unsafe { libc::waitpid(copy, &mut status, 0) };
            args.tensor::<i32>(0)?.set(0, status)?;
        }
        Ok(())
    });
    let fork = fork.unwrap();
    worker.init().unwrap();
    let x = worker.tensor::<i32>(&[1]).unwrap();
    for _ in 0..10 {
        worker.run(|orch| Ok(orch.submit_sub(&fork, TaskArgs::new().output(&x))?)).unwrap();
        assert_eq!(x.to_vec().unwrap(), [101 << 8], "how the copy ended");
    }
    worker.close().unwrap();
}

/// L-1, P-5: nor do two processes tell how a start went whose code forked, and returned on both sides.
pub(crate) fn a_start_that_forks_and_returns_on_both_sides_is_told_of_once() {
    let worker = Worker::builder().build().unwrap();
    let forks = |_: CustomStart<'_>| -> Result<Box<dyn Leaf>, BoxError> {
        // SAFETY: as code would that does not know better.
        let copy = unsafe { libc::fork() };
        let mut status = 0;
        if copy != 0 {
            // SAFETY: writes one number.
            unsafe { libc::waitpid(copy, &mut status, 0) };
        }
        Err(format!("the copy ended with {status}").into())
    };
    worker.add_child(CustomChild::new("forking", forks)).unwrap();
    let error = worker.init().unwrap_err().to_string();
    assert!(error.contains(&format!("the copy ended with {}", 101 << 8)), "{error}");
}

/// How the only child of a worker ended in which `odd` ran; no run hangs meanwhile.
fn end_after(odd: fn() -> bool) -> ExitCause {
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    let odd = worker.register("odd", move |_| if odd() { Ok(()) } else { Err("it did not do it".into()) }).unwrap();
    worker.init().unwrap();
    let start = Instant::now();
    // A child that spins for its next task may still be given it.
    let error = loop {
        let run = worker.submit(|orch| Ok(orch.submit_sub(&odd, TaskArgs::new()).map(drop)?));
        if let Err(error) = run.and_then(|run| run.wait_timeout(Duration::from_secs(10))) {
            break error;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "the child serves on");
    };
    assert!(!matches!(error, Error::WaitTimedOut { .. }), "{error}");
    let start = Instant::now();
    loop {
        let health = worker.health();
        if let Some(laneway_linux::Doing::Dead { cause }) = health.children.first().map(|child| &child.doing) {
            let cause = *cause;
            worker.close().unwrap();
            assert_eq!(children(), []);
            return cause;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{health}");
        std::thread::yield_now();
    }
}

/// L-25, E-41: what is in the place of the child lives on, and nobody hears of it.
pub(crate) fn a_callable_that_executes_another_program_loses_its_child_at_once() {
    let cause = end_after(|| {
        let _ = Command::new("sleep").arg("1000").exec();
        false
    });
    assert!(matches!(cause, ExitCause::LetGo { .. }), "{cause}");
}

/// L-25, E-41: a child that can neither be rung nor ring leaves and says why, also where the numbers were given to others.
pub(crate) fn a_callable_that_closes_all_descriptors_loses_its_child_at_once() {
    let closed = || {
        // SAFETY: nothing in the child that is not laneway's own uses a descriptor above the streams.
        unsafe { libc::close_range(3, libc::c_uint::MAX, 0) == 0 }
    };
    let reused = || {
        // SAFETY: as above; the path is a string that ends.
        let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
        // SAFETY: as above.
        (3..64).all(|fd| unsafe { libc::dup2(null, fd) } == fd)
    };
    for odd in [closed as fn() -> bool, reused] {
        let cause = end_after(odd);
        assert!(matches!(cause, ExitCause::Exited { status: 84, .. } | ExitCause::LetGo { .. }), "{cause}");
    }
}

/// P-24: numbers of streams that the host closed are not used for mailboxes, bells and memory, into which it would print.
pub(crate) fn a_worker_of_a_host_without_standard_streams_uses_none_of_their_numbers() {
    for fd in 0..3 {
        // SAFETY: this case prints nothing.
        unsafe { libc::close(fd) };
    }
    let bench = Bench::of(
        Worker::builder().subs(2).tracing(true).close_foreign_descriptors(true).buffer_bytes(1 << 20).build().unwrap(),
    );
    let open: Vec<_> = crate::support::descriptors().into_iter().filter(|(fd, _)| *fd < 3).collect();
    // The listing itself has one.
    assert!(
        open.iter().all(|(_, what)| !["laneway", "anon_inode", "pipe:"].iter().any(|ours| what.contains(ours))),
        "{open:?}"
    );
    let x = bench.tensor(1);
    bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
    bench.worker.close().unwrap();
}

/// A window that no sum of times can hold is one that never ends.
pub(crate) fn any_spin_window_works() {
    for window in [Duration::ZERO, Duration::MAX] {
        let bench = Bench::of(crate::harness::builder!().subs(1).spin(window).build().unwrap());
        let x = bench.tensor(1);
        let add = |orch: &mut laneway_linux::Orchestrator<'_>| {
            (0..10).try_for_each(|_| orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1)).map(drop))
        };
        bench.worker.run(|orch| Ok(add(orch)?)).unwrap();
        assert_eq!(x.to_vec().unwrap(), [10]);
        bench.worker.close().unwrap();
    }
}
