//! Deaths are noticed, told right and reaped once (P-16, P-23, P-32, P-34, T-34, T-37).
#![allow(unsafe_code)]

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use laneway_linux::sys::child::ChildProcess;
use laneway_linux::sys::clock;
use laneway_linux::sys::epoll::{Events, Poller, Token, Watch};
use laneway_linux::sys::exit::Exit;
use laneway_linux::sys::farewell::{Budget, Farewell, Standing};
use laneway_linux::sys::fork::{Fork, fork};
use laneway_linux::sys::group::Group;
use laneway_linux::sys::lifeline::{AtHangUp, LifelinePipe};
use laneway_linux::sys::threads::foreign_threads;
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, WaitOptions, set_child_subreaper};

use crate::harness::{self, Channel, LIMIT, children_of, descriptors, is_ready_within};
use crate::support::{BELOW, GONE_WITHIN, HEAD, assert_subtree_ends, child, exit_of, sleep_for_ever};

/// A plain fork, as a user's callable might do it.
fn plain_fork(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the caller is a single thread, and the child leaves without returning.
    match unsafe { libc::fork() } {
        0 => {
            let code = body();
            // SAFETY: ends the process.
            unsafe { libc::_exit(code) }
        }
        pid => pid,
    }
}

/// L-27
pub(crate) fn the_subtree_pipe_hangs_up_only_when_the_grandchild_is_gone() {
    let (gate, channel) = (Channel::new(), Channel::new());
    let mut started = child(&BELOW, |_| {
        plain_fork(|| {
            channel.send(b"born");
            i32::from(gate.receive_text() != "go")
        });
        0
    });
    assert_eq!(channel.receive_text(), "born");
    assert_eq!(exit_of(&mut started), Exit::Code(0));
    assert!(!started.subtree.is_gone());
    gate.send(b"go");
    assert_subtree_ends(&started, LIMIT / 4);
}

/// P-6, P-16
pub(crate) fn a_group_dies_with_its_head() {
    let channel = Channel::new();
    let mut started = child(&HEAD, |_| {
        plain_fork(|| {
            channel.send(b"born");
            sleep_for_ever()
        });
        sleep_for_ever()
    });
    assert_eq!(channel.receive_text(), "born");
    // The head alone is killed; noticing its end kills the rest while the zombie still holds the number.
    assert!(started.process.signal(Signal::KILL));
    assert!(is_ready_within(started.process.pidfd().unwrap(), LIMIT / 4));
    assert!(!started.subtree.is_gone());
    assert!(exit_of(&mut started).is_killed());
    assert_subtree_ends(&started, GONE_WITHIN);
}

/// P-16
pub(crate) fn exits_are_reported_as_they_happened() {
    let mut coded = child(&HEAD, |_| 3);
    assert_eq!(exit_of(&mut coded), Exit::Code(3));
    assert_eq!(coded.process.exit(), Some(Exit::Code(3)));
    let mut aborted = child(&HEAD, |_| {
        // SAFETY: ends the process by SIGABRT.
        unsafe { libc::abort() }
    });
    assert_eq!(exit_of(&mut aborted).to_string(), "signal 6 (SIGABRT)");
    let mut killed = child(&HEAD, |_| sleep_for_ever());
    assert_eq!(killed.process.poll(), None);
    assert!(killed.process.kill());
    assert_eq!(exit_of(&mut killed), Exit::Signal { number: 9, core_dumped: false });
}

/// P-23
pub(crate) fn a_host_that_ignores_sigchld_loses_no_child() {
    // SAFETY: ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    let mut early = child(&HEAD, |_| 3);
    assert_eq!(exit_of(&mut early), Exit::Unknown);
    let mut late = child(&HEAD, |_| sleep_for_ever());
    assert_eq!(late.process.poll(), None);
    assert!(late.process.kill());
    assert_eq!(exit_of(&mut late), Exit::Unknown);
    assert!(!late.process.kill());
}

/// P-23
pub(crate) fn a_host_that_reaps_everything_loses_no_child() {
    let mut started = child(&HEAD, |_| sleep_for_ever());
    assert!(started.process.kill());
    let (pid, _) = rustix::process::wait(WaitOptions::empty()).unwrap().unwrap();
    assert_eq!(pid.as_raw_nonzero().get(), started.process.pid());
    assert!(!started.process.signal(Signal::TERM));
    assert_eq!(exit_of(&mut started), Exit::Unknown);
}

/// P-32
pub(crate) fn a_child_without_a_pidfd_is_signalled_and_reaped() {
    let adopt = |code: Option<i32>| {
        // SAFETY: this process is a single thread, and the child ends below.
        match unsafe { fork() }.unwrap() {
            Fork::Parent(pid) => ChildProcess::adopt_without_pidfd(pid, Group::Head),
            Fork::Child => match code {
                // SAFETY: ends the process.
                Some(code) => unsafe { libc::_exit(code) },
                None => sleep_for_ever(),
            },
        }
    };
    let wait = |child: &ChildProcess| {
        let pid = rustix::process::Pid::from_raw(child.pid()).unwrap();
        rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    };
    let mut coded = adopt(Some(7));
    wait(&coded).unwrap();
    assert_eq!(coded.poll(), Some(Exit::Code(7)));
    let mut killed = adopt(None);
    assert_eq!((killed.pidfd().is_none(), killed.poll()), (true, None));
    assert!(killed.kill());
    wait(&killed).unwrap();
    assert!(killed.poll().unwrap().is_killed());
    assert!(!killed.signal(Signal::TERM));
}

/// T-34: the number of a reaped child belongs to somebody else by now, made certain here by taking it back.
pub(crate) fn a_reaped_child_is_never_signalled() {
    let mut started = child(&HEAD, |_| 0);
    assert_eq!(exit_of(&mut started), Exit::Code(0));
    let number = started.process.pid();
    // Where this process may choose it, the next child gets the same number.
    let _ = std::fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string());
    let mut next = child(&HEAD, |_| sleep_for_ever());
    assert!(!started.process.signal(Signal::KILL) && !started.process.kill());
    assert_eq!(started.process.poll(), Some(Exit::Code(0)));
    assert_eq!(next.process.poll(), None, "process {} was killed in place of {number}", next.process.pid());
    assert!(next.process.kill());
    assert!(exit_of(&mut next).is_killed());
}

/// P-12, T-36: one leaves, one ignores what it is asked, one is stopped.
pub(crate) fn children_that_stay_are_killed_when_one_shared_time_is_over() {
    let channel = Channel::new();
    let mut polite = child(&HEAD, |_| {
        channel.send(b"r");
        sleep_for_ever()
    });
    let stubborn = child(&HEAD, |_| {
        // SAFETY: ignoring a signal runs no code.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
        plain_fork(|| {
            channel.send(b"r");
            sleep_for_ever()
        });
        sleep_for_ever()
    });
    let stopped = child(&HEAD, |_| {
        channel.send(b"r");
        sleep_for_ever()
    });
    let mut ready = 0;
    while ready < 3 {
        ready += channel.receive().len();
    }
    assert!(stopped.process.signal(Signal::STOP));
    let stop = WaitId::PidFd(stopped.process.pidfd().unwrap());
    assert!(rustix::process::waitid(stop, WaitIdOptions::STOPPED).unwrap().unwrap().stopped());
    assert_eq!(polite.process.poll(), None);
    let mut children = [polite, stubborn, stopped];
    assert!(children.iter().all(|child| child.process.signal(Signal::TERM)));
    let leave = Duration::from_millis(300);
    let start = Instant::now();
    let farewell = Farewell::new(clock::now(), Budget { leave, die: LIMIT / 4 });
    assert_eq!(farewell.run(&mut children, |_| {}), Standing::Gone);
    let took = start.elapsed();
    assert!(took >= leave, "{took:?}");
    harness::in_time("the farewell", took, leave + GONE_WITHIN);
    let exits = children.map(|child| child.process.exit().unwrap().to_string());
    assert_eq!(exits, ["signal 15 (SIGTERM)", "signal 9 (SIGKILL)", "signal 9 (SIGKILL)"]);
}

/// P-32
pub(crate) fn without_pidfds_the_lifeline_tells_of_a_death_both_ways() {
    let set = Poller::new().unwrap();
    let mut events = Events::new();
    let pipe = LifelinePipe::new().unwrap();
    // SAFETY: this process is a single thread, and the child ends below.
    let pid = match unsafe { fork() }.unwrap() {
        Fork::Parent(pid) => pid,
        Fork::Child => {
            let mut lifeline = pipe.into_child();
            assert_eq!(lifeline.arm(AtHangUp::Die), Ok(false));
            sleep_for_ever()
        }
    };
    let hold = pipe.into_parent();
    let mut child = ChildProcess::adopt_without_pidfd(pid, Group::Head);
    set.add(&hold, Token(3), Watch::OneShot).unwrap();
    set.wait(&mut events, Some(Duration::ZERO)).unwrap();
    assert!(events.is_empty());
    assert!(child.kill());
    set.wait(&mut events, Some(LIMIT / 4)).unwrap();
    let told: Vec<_> = events.iter().map(|ready| (ready.token, ready.hung_up)).collect();
    assert_eq!(told, [(Token(3), true)]);
    // It can be reaped a moment later.
    let start = Instant::now();
    while child.poll().is_none() {
        harness::in_time("the reaping", start.elapsed(), GONE_WITHIN);
    }
    assert!(child.exit().unwrap().is_killed());
}

/// P-18, P-34: PID 1 of a namespace of its own, with the /proc of the outer one. Making one takes privileges; without them
/// there is nothing to show.
pub(crate) fn everything_works_for_the_first_process_of_a_container() {
    // SAFETY: affects the children of this process alone.
    if unsafe { libc::unshare(libc::CLONE_NEWPID) } != 0 {
        assert!(!rustix::process::geteuid().is_root(), "{}", std::io::Error::last_os_error());
        return;
    }
    let channel = Channel::new();
    let mut first = child(&HEAD, |_| {
        let threads = foreign_threads().unwrap();
        let born = Channel::new();
        let mut inner = child(&HEAD, |lifeline| {
            // An orphan that PID 1 inherits.
            plain_fork(|| {
                born.send(b"born");
                sleep_for_ever()
            });
            i32::from(lifeline.is_cut())
        });
        assert_eq!(born.receive_text(), "born");
        let exit = exit_of(&mut inner);
        assert_subtree_ends(&inner, LIMIT / 4);
        while inner.process.has_orphans() {
            inner.process.poll();
        }
        let left = rustix::process::wait(WaitOptions::NOHANG).err();
        let own = rustix::process::getpid();
        channel.send(format!("pid {own}, {threads} threads, {exit}, {left:?}").as_bytes());
        0
    });
    assert_eq!(channel.receive_text(), format!("pid 1, 0 threads, exit status 0, {:?}", Some(Errno::CHILD)));
    assert_eq!(exit_of(&mut first), Exit::Code(0));
}

/// P-34
pub(crate) fn a_subreaper_reaps_the_orphans_of_its_dead_child() {
    let own = rustix::process::getpid();
    set_child_subreaper(Some(own)).unwrap();
    let channel = Channel::new();
    let mut started = child(&HEAD, |_| {
        for _ in 0..3 {
            plain_fork(|| {
                channel.send(b"b");
                sleep_for_ever()
            });
        }
        sleep_for_ever()
    });
    let mut born = 0;
    while born < 3 {
        born += channel.receive().len();
    }
    assert!(started.process.kill());
    assert!(exit_of(&mut started).is_killed());
    assert_subtree_ends(&started, LIMIT / 4);
    // They are gone for the pipe a moment before they are zombies.
    while started.process.has_orphans() {
        started.process.poll();
    }
    assert_eq!(children_of(own), []);
}

/// P-22. The lower quartile: what the machine does besides is not the library's doing.
pub(crate) fn a_death_is_noticed_within_a_millisecond() {
    let mut times: Vec<_> = (0..51)
        .map(|_| {
            let mut started = child(&HEAD, |_| sleep_for_ever());
            let set = Poller::new().unwrap();
            let mut events = Events::new();
            set.add(started.process.pidfd().unwrap(), Token(1), Watch::OneShot).unwrap();
            let start = Instant::now();
            assert!(started.process.signal(Signal::KILL));
            set.wait(&mut events, Some(LIMIT / 4)).unwrap();
            let took = start.elapsed();
            set.remove(started.process.pidfd().unwrap()).unwrap();
            assert!(started.process.poll().unwrap().is_killed());
            took
        })
        .collect();
    times.sort_unstable();
    harness::in_time("the better quarter of the notices", times[12], Duration::from_millis(1));
}

/// P-14, T-37
pub(crate) fn two_hundred_children_leave_no_descriptor_and_no_zombie() {
    let before = descriptors();
    for round in 0..200 {
        let mut started = child(&HEAD, |_| round % 5);
        assert!(is_ready_within(started.subtree.as_fd(), LIMIT / 4));
        assert_eq!(exit_of(&mut started), Exit::Code(round % 5));
    }
    assert_eq!(descriptors(), before);
    assert_eq!(rustix::process::wait(WaitOptions::NOHANG).err(), Some(rustix::io::Errno::CHILD));
}
