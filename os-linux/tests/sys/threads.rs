//! Threads and forks (P-2).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use laneway_linux::sys::eventfd::Bell;
use laneway_linux::sys::threads::{LibraryThread, foreign_threads};

use crate::harness::{Channel, LIMIT, is_ready_within};
use crate::support::{HEAD, child, exit_of};

/// P-2
pub(crate) fn foreign_threads_are_counted_and_the_librarys_are_not() {
    assert_eq!(foreign_threads(), Ok(0));
    let (stop, stopped) = channel::<()>();
    let foreign = thread::spawn(move || stopped.recv());
    assert_eq!(foreign_threads(), Ok(1));
    let bell = Arc::new(Bell::new().unwrap());
    let asleep = Arc::clone(&bell);
    let ours = LibraryThread::spawn("background", move |presence| {
        presence.outside(|| is_ready_within(std::os::fd::AsFd::as_fd(&*asleep), LIMIT));
        5
    })
    .unwrap();
    assert_eq!(foreign_threads(), Ok(1));
    drop(stop);
    foreign.join().unwrap().unwrap_err();
    assert_eq!(foreign_threads(), Ok(0));
    // A child of a process with a parked thread of ours counts none, and can start threads and fork itself.
    let told = Channel::new();
    let mut started = child(&HEAD, |_| {
        let before = foreign_threads().unwrap();
        let inner = LibraryThread::spawn("inner", |_| 1).unwrap().join();
        let mut grandchild = child(&HEAD, |_| 0);
        told.send(format!("{before} {inner} {}", exit_of(&mut grandchild)).as_bytes());
        0
    });
    assert_eq!(told.receive_text(), "0 1 exit status 0");
    assert!(exit_of(&mut started).is_success());
    bell.ring();
    assert_eq!(ours.join(), 5);
    assert_eq!(foreign_threads(), Ok(0));
}

/// P-2
pub(crate) fn a_fork_waits_until_the_librarys_threads_are_parked() {
    let bell = Arc::new(Bell::new().unwrap());
    let parked = Arc::new(AtomicBool::new(false));
    let (asleep, reached) = (Arc::clone(&bell), Arc::clone(&parked));
    let ours = LibraryThread::spawn("background", move |presence| {
        // Time for a fork that does not wait to go wrong; one that does wait never depends on it.
        thread::sleep(Duration::from_millis(50));
        reached.store(true, Ordering::SeqCst);
        presence.outside(|| is_ready_within(std::os::fd::AsFd::as_fd(&*asleep), LIMIT));
    })
    .unwrap();
    let mut started = child(&HEAD, |_| i32::from(!parked.load(Ordering::SeqCst)));
    assert!(exit_of(&mut started).is_success(), "the fork did not wait");
    bell.ring();
    ours.join();
}
