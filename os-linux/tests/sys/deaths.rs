//! A parent that is killed takes its children along, whatever they are doing (L-32, T-25).
#![allow(unsafe_code)]

use std::hint::spin_loop;
use std::os::fd::AsFd;

use laneway_core::mailbox::Words;
use laneway_linux::child_entry::ChildSpec;
use laneway_linux::sys::eventfd::Bell;
use laneway_linux::sys::fork::{Fork, fork};
use laneway_linux::sys::lifeline::{AtHangUp, Lifeline, LifelinePipe};
use laneway_linux::sys::park::{Bed, Woke};
use laneway_linux::sys::pidfd::Pidfd;
use laneway_linux::sys::region::{Region, Sharing};
use laneway_linux::sys::words::MappedWords;
use rustix::process::Signal;

use crate::harness::{self, Channel, LIMIT, is_ready_within};
use crate::support::{BELOW, GONE_WITHIN, HEAD, child, exit_of, sleep_for_ever};

/// A parent with one child that does `what`. Once the child is at it the parent is killed; returns what the child sent
/// after that. Both hold the sending end of one pipe, so its end is the end of both.
fn kill_the_parent_of(at_hang_up: AtHangUp, what: impl FnOnce(Lifeline, &Channel) -> i32) -> Vec<u8> {
    let mut channel = Channel::new();
    let mut parent = child(&HEAD, |_| {
        let spec = ChildSpec { at_hang_up, ..BELOW };
        let _kept = child(&spec, |lifeline| what(lifeline, &channel));
        sleep_for_ever()
    });
    channel.close_sender();
    assert_eq!(channel.receive_text(), "ready");
    // It alone: its group is not what takes the child along.
    assert!(parent.process.signal(Signal::KILL));
    let (took, sent) = channel.wait_for_end(LIMIT / 4).expect("the child lives on");
    harness::in_time("the end of the child", took, GONE_WITHIN);
    assert!(exit_of(&mut parent).is_killed());
    sent
}

/// L-32
pub(crate) fn a_killed_parent_takes_a_child_that_sleeps() {
    for at_hang_up in [AtHangUp::Die, AtHangUp::Look] {
        let sent = kill_the_parent_of(at_hang_up, |lifeline, channel| {
            let region = Region::new("mailbox", 4096, Sharing::Given).unwrap();
            // SAFETY: the region outlives the words.
            let words = unsafe { MappedWords::new(&region) };
            let bell = Bell::new().unwrap();
            let mut bed = Bed::new(&bell, &lifeline, None).unwrap();
            let woke = bed.park(&words, 0, None, || {
                channel.send(b"ready");
                false
            });
            assert_eq!((woke, words.load(0)), (Woke::ParentGone, 0));
            channel.send(b"left in order");
            0
        });
        // One that would rather die is ended in its sleep.
        let expected: &[u8] = if at_hang_up == AtHangUp::Look { b"left in order" } else { b"" };
        assert_eq!(sent, expected);
    }
}

/// L-32
pub(crate) fn a_killed_parent_takes_a_child_that_spins_in_foreign_code() {
    let sent = kill_the_parent_of(AtHangUp::Die, |_, channel| {
        channel.send(b"ready");
        loop {
            spin_loop();
        }
    });
    assert_eq!(sent, b"");
}

/// L-32
pub(crate) fn a_killed_parent_takes_a_child_that_is_blocked_in_a_system_call() {
    let sent = kill_the_parent_of(AtHangUp::Die, |_, channel| {
        channel.send(b"ready");
        sleep_for_ever()
    });
    assert_eq!(sent, b"");
}

/// L-32: foreign code may do to signals what it likes.
pub(crate) fn a_killed_parent_takes_a_child_that_blocks_every_signal() {
    let sent = kill_the_parent_of(AtHangUp::Die, |_, channel| {
        for signal in 1..=libc::SIGRTMAX() {
            // SAFETY: ignoring a signal runs no code.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        channel.send(b"ready");
        sleep_for_ever()
    });
    assert_eq!(sent, b"");
}

/// L-32: a chip child closes its device.
pub(crate) fn a_child_that_looks_leaves_in_order_when_its_parent_is_killed() {
    let sent = kill_the_parent_of(AtHangUp::Look, |lifeline, channel| {
        channel.send(b"ready");
        while !lifeline.is_cut() {
            spin_loop();
        }
        channel.send(b"device closed");
        0
    });
    assert_eq!(sent, b"device closed");
}

/// L-32
pub(crate) fn a_child_that_looks_is_ended_inside_a_call_that_may_block() {
    let sent = kill_the_parent_of(AtHangUp::Look, |lifeline, channel| {
        lifeline.mortal(|| {
            channel.send(b"ready");
            sleep_for_ever()
        })
    });
    assert_eq!(sent, b"");
}

/// L-32, T-25: the parent dies between the fork and the child's first look at its lifeline, under a subreaper.
pub(crate) fn a_parent_that_died_before_the_first_look_is_noticed() {
    let (gate, mut answer) = (Channel::new(), Channel::new());
    // In a group of its own it would take the child along when it is reaped.
    let mut parent = child(&BELOW, |_| {
        let own = Pidfd::of_this_process().unwrap();
        let pipe = LifelinePipe::new().unwrap();
        // SAFETY: this process is a single thread, and the child ends below.
        match unsafe { fork() }.unwrap() {
            Fork::Parent(_) => {
                let _hold = pipe.into_parent();
                sleep_for_ever()
            }
            Fork::Child => {
                answer.send(b"born");
                assert_eq!(gate.receive_text(), "go");
                let mut lifeline = pipe.into_child();
                let gone = lifeline.arm(AtHangUp::Look).unwrap();
                let watched = is_ready_within(own.as_fd(), GONE_WITHIN);
                answer.send(format!("{gone} {watched} {}", lifeline.is_cut()).as_bytes());
                // SAFETY: ends the process.
                unsafe { libc::_exit(0) }
            }
        }
    });
    answer.close_sender();
    assert_eq!(answer.receive_text(), "born");
    assert!(parent.process.signal(Signal::KILL));
    assert!(exit_of(&mut parent).is_killed());
    gate.send(b"go");
    assert_eq!(answer.receive_text(), "true true true");
    answer.wait_for_end(LIMIT / 4).expect("the child ends");
}

/// L-32: a child closes the ends that were made for its siblings, so it does not keep their lines from being cut.
pub(crate) fn a_child_outlives_a_sibling_but_not_its_own_line() {
    let channel = Channel::new();
    let sleeper = || {
        let started = child(&HEAD, |_| {
            channel.send(b"ready");
            sleep_for_ever()
        });
        assert_eq!(channel.receive_text(), "ready");
        started
    };
    let (mut first, mut second) = (sleeper(), sleeper());
    drop(std::mem::replace(&mut first.lifeline, LifelinePipe::new().unwrap().into_parent()));
    assert!(exit_of(&mut first).is_killed());
    assert_eq!(second.process.poll(), None);
    drop(std::mem::replace(&mut second.lifeline, LifelinePipe::new().unwrap().into_parent()));
    assert!(exit_of(&mut second).is_killed());
}
