//! What a child finds when its own code begins, and what its end does (P-2, P-3, P-17, P-18, P-30).
#![allow(unsafe_code)]

use std::env;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use laneway_linux::child_entry::{ChildSpec, EXIT_PANIC};
use laneway_linux::sys::cpu::{self, CpuBudget};
use laneway_linux::sys::exit::Exit;
use laneway_linux::sys::lifeline::AtHangUp;
use rustix::process::Signal;

use crate::harness::Channel;
use crate::support::{HEAD, child, exit_of, sleep_for_ever, status};

extern "C" fn handler(_: libc::c_int) {}

/// P-17, P-30, T-40
pub(crate) fn signal_handlers_of_the_host_do_not_reach_a_child() {
    for signal in [libc::SIGTERM, libc::SIGUSR1, libc::SIGINT, libc::SIGCHLD] {
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(signal, handler as *const () as libc::sighandler_t) };
    }
    // SAFETY: ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    let before = (status("SigCgt"), status("SigBlk"), status("SigIgn"));
    let channel = Channel::new();
    let bit = |signal: i32| 1_u64 << (signal - 1);
    for (at_hang_up, blocked) in [(AtHangUp::Die, 0), (AtHangUp::Look, bit(libc::SIGRTMAX() - 5))] {
        let mut started = child(&ChildSpec { at_hang_up, ..HEAD }, |_| {
            // What libc keeps for itself it lets nobody change.
            let reserved = bit(32) | bit(33);
            let of = |name| u64::from_str_radix(&status(name), 16).unwrap() & !reserved;
            channel.send(format!("{:x} {:x} {:x}", of("SigCgt"), of("SigBlk"), of("SigIgn")).as_bytes());
            sleep_for_ever()
        });
        let ignored = bit(libc::SIGINT) | bit(libc::SIGPIPE);
        assert_eq!(channel.receive_text(), format!("0 {blocked:x} {ignored:x}"));
        assert!(started.process.signal(Signal::INT));
        assert!(started.process.signal(Signal::TERM));
        assert_eq!(exit_of(&mut started).to_string(), "signal 15 (SIGTERM)");
    }
    assert_eq!((status("SigCgt"), status("SigBlk"), status("SigIgn")), before);
}

/// P-3, P-18
pub(crate) fn a_panic_ends_a_child_and_the_hosts_hook_stays_silent() {
    static HOOK_RAN: AtomicBool = AtomicBool::new(false);
    let channel = Channel::new();
    let (told, sender) = (&channel, rustix::io::dup(channel.sender()).unwrap());
    std::panic::set_hook(Box::new(move |_| {
        HOOK_RAN.store(true, Ordering::Relaxed);
        let _ = rustix::io::write(&sender, b"hook");
    }));
    let mut panicked = child(&HEAD, |_| panic!("out of cheese"));
    assert_eq!(exit_of(&mut panicked), Exit::Code(EXIT_PANIC));
    let mut caught = child(&HEAD, |_| {
        let text = laneway_linux::sys::panics::catch(|| panic!("out of {}", "cheese")).unwrap_err();
        told.send(text.as_bytes());
        0
    });
    assert!(exit_of(&mut caught).is_success());
    let text = channel.receive_text();
    assert!(text.starts_with("out of cheese (at ") && text.contains("entry.rs:"), "{text}");
    // The parent's hook is still its own.
    assert!(std::panic::catch_unwind(|| panic!("here")).is_err());
    assert!(HOOK_RAN.load(Ordering::Relaxed));
    assert_eq!(channel.receive_text(), "hook");
    drop(std::panic::take_hook());
}

/// P-21
pub(crate) fn a_child_stays_on_the_cpus_that_it_was_given() {
    let before = CpuBudget::read().cpus;
    let last = *before.last().unwrap();
    let channel = Channel::new();
    let mut started = child(&HEAD, |_| {
        cpu::pin(&[last]).unwrap();
        channel.send(format!("{:?} {:?}", CpuBudget::read().cpus, cpu::current()).as_bytes());
        0
    });
    assert_eq!(channel.receive_text(), format!("{:?} {:?}", [last], Some(last)));
    assert!(exit_of(&mut started).is_success());
    assert_eq!(CpuBudget::read().cpus, before);
}

/// P-3: what cannot be printed is no reason to unwind.
pub(crate) fn a_child_with_closed_streams_never_unwinds_into_its_parents_frames() {
    let survived = AtomicBool::new(false);
    let parent = std::process::id();
    let run = || {
        let mut started = child(&HEAD, |_| {
            // A pipe that nobody reads: every write fails.
            let (read, write) = rustix::pipe::pipe().unwrap();
            drop(read);
            for stream in [1, 2] {
                // SAFETY: replaces a standard stream of this child, which has no other owner.
                unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&write), stream) };
            }
            print!("into the void");
            panic!("unheard");
        });
        survived.store(true, Ordering::Relaxed);
        assert_eq!(exit_of(&mut started), Exit::Code(EXIT_PANIC));
    };
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err();
    if std::process::id() != parent {
        // SAFETY: ends a child that should not be here.
        unsafe { libc::_exit(77) };
    }
    assert!(!unwound && survived.load(Ordering::Relaxed));
}

/// P-3, P-30
pub(crate) fn buffered_text_is_printed_once() {
    let channel = Channel::new();
    // SAFETY: descriptor 1 belongs to nobody in particular in this process.
    let mut stdout = unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(1) };
    rustix::io::dup2(channel.sender(), &mut stdout).unwrap();
    std::mem::forget(stdout);
    print!("parent ");
    // SAFETY: prints a constant text through C's buffer.
    unsafe { libc::printf(c"C ".as_ptr()) };
    let mut started = child(&HEAD, |_| {
        print!("child ");
        // SAFETY: as above.
        unsafe { libc::printf(c"C-child ".as_ptr()) };
        0
    });
    assert!(exit_of(&mut started).is_success());
    std::io::stdout().flush().unwrap();
    assert_eq!(channel.receive_text(), "parent C child C-child ");
}

/// P-2
pub(crate) fn numeric_libraries_are_told_to_use_one_thread_unless_the_user_says_more() {
    const NAMES: [&str; 4] = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"];
    for name in NAMES {
        // SAFETY: this process is a single thread.
        unsafe { env::remove_var(name) };
    }
    // SAFETY: as above.
    unsafe { env::set_var("MKL_NUM_THREADS", "4") };
    let channel = Channel::new();
    let mut started = child(&HEAD, |_| {
        channel.send(NAMES.map(|name| env::var(name).unwrap_or_default()).join(" ").as_bytes());
        0
    });
    assert_eq!(channel.receive_text(), "1 1 4 1");
    assert!(exit_of(&mut started).is_success());
    assert_eq!(env::var("OMP_NUM_THREADS"), Err(env::VarError::NotPresent));
}
