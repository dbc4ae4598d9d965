//! The hand-shake of sleeping and waking (design: waiting).
#![allow(unsafe_code)]

use std::time::Duration;

use std::os::fd::AsRawFd;

use laneway_core::mailbox::Words;
use laneway_linux::child_entry::ChildSpec;
use laneway_linux::sys::epoll::{Events, Poller, Token, Watch};
use laneway_linux::sys::eventfd::Bell;
use laneway_linux::sys::park::{Bed, Woke};
use laneway_linux::sys::region::{Region, Sharing};
use laneway_linux::sys::spin::{PauseCost, SpinWindow};
use laneway_linux::sys::words::MappedWords;

use crate::harness::LIMIT;
use crate::support::{HEAD, child, exit_of};

const ROUNDS: u64 = 100_000;

// Every word on a cache line of its own.
const REQUEST: usize = 0;
const CHILD_PARKED: usize = 128;
const REPLY: usize = 256;
const PARENT_PARKED: usize = 384;

/// The windows that both sides go through, out of step with each other: most turns sleep, some find the other awake.
fn windows(cost: PauseCost) -> [SpinWindow; 7] {
    [0, 300, 0, 2_000, 700, 0, 20_000].map(|nanos| SpinWindow::new(Duration::from_nanos(nanos), cost))
}

/// Publish, fence, look; take the announcement back, then ring.
fn publish(words: &MappedWords, at: usize, value: u64, parked: usize, bell: &Bell) {
    words.write(at, value);
    words.fence();
    if words.load_relaxed(parked) == 1 && words.compare_exchange(parked, 1, 0).is_ok() {
        bell.ring();
    }
}

/// T-6 in its smallest form: one lost wake hangs either side, and a sleep that lasts half a minute is one.
pub(crate) fn a_hundred_thousand_wakes_and_none_is_lost() {
    let region = Region::new("mailbox", 4096, Sharing::Given).unwrap();
    // SAFETY: the region outlives the words.
    let words = unsafe { MappedWords::new(&region) };
    let (to_child, to_parent) = (Bell::new().unwrap(), Bell::new().unwrap());
    let windows = windows(PauseCost::measured());
    let spec = ChildSpec {
        keep_descriptors: &[to_child.as_raw_fd(), to_parent.as_raw_fd()],
        keep_mappings: &[region.start()],
        ..HEAD
    };
    let mut started = child(&spec, |lifeline| {
        let mut bed = Bed::new(&to_child, &lifeline, None).unwrap();
        for round in 1..=ROUNDS {
            let asked = || words.read(REQUEST) == round;
            while !windows[(round % 7) as usize].until(asked) {
                let woke = bed.park(&words, CHILD_PARKED, Some(LIMIT / 4), asked);
                assert_ne!(woke, Woke::TimedOut, "a wake of round {round} was lost in the child");
            }
            publish(&words, REPLY, round, PARENT_PARKED, &to_parent);
        }
        0
    });
    let poller = Poller::new().unwrap();
    poller.add(&to_parent, Token(0), Watch::Edge).unwrap();
    let mut events = Events::new();
    let mut sleeps = 0;
    for round in 1..=ROUNDS {
        publish(&words, REQUEST, round, CHILD_PARKED, &to_child);
        let answered = || words.read(REPLY) == round;
        while !windows[(round % 5) as usize].until(answered) {
            words.store_relaxed(PARENT_PARKED, 1);
            words.fence();
            if !answered() {
                poller.wait(&mut events, Some(LIMIT / 4)).unwrap();
                assert!(!events.is_empty(), "a wake of round {round} was lost in the parent");
                sleeps += 1;
            }
            words.store_relaxed(PARENT_PARKED, 0);
        }
    }
    assert!(exit_of(&mut started).is_success());
    assert!(sleeps > ROUNDS / 100, "only {sleeps} sleeps: this run showed nothing");
}
