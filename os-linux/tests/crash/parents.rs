//! A parent that is killed at every store into a mailbox.
#![allow(unsafe_code)]

use std::time::Duration;

use laneway_core::mailbox::Words as _;
use laneway_core::time::Instant;
use laneway_linux::child_entry::{ChildSpec, start};
use laneway_linux::sys::clock;
use laneway_linux::sys::group::Group;
use laneway_linux::sys::lifeline::AtHangUp;
use laneway_linux::sys::words::MappedWords;
use rustix::process::{WaitOptions, getpid, set_child_subreaper};

use crate::harness::{Channel, LIMIT, in_time, is_ready_within};
use crate::kind::Kind;
use crate::level::Level;
use crate::points::{story, taken_back};
use crate::seat::{HANGS, shared_page};
use crate::tripwire::Tripwire;
use crate::wire::{Wire, scratch};

/// How soon a tree is gone after its parent was killed (L-32).
const GONE_WITHIN: Duration = Duration::from_millis(100);

/// What a parent does before it closes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plot {
    /// Two runs with failures and controls.
    Ordinary,
    /// A staged task is taken back (L-38).
    TakesBack,
}

/// A parent is killed at one of its accesses to the mailbox of its first child; how long its last child outlived it, `None`
/// if it came to its end.
fn kill_at(kind: Kind, plot: Plot, place: u64, page: MappedWords) -> Option<Duration> {
    page.write(scratch::KILLED_AT, 0);
    let mut channel = Channel::new();
    let spec = ChildSpec {
        group: Group::Head,
        at_hang_up: AtHangUp::Die,
        keep_descriptors: &[],
        keep_mappings: &[],
        close_foreign_descriptors: false,
    };
    // SAFETY: a case has one thread.
    let mut parent = unsafe {
        start(&spec, |_| {
            let wires = std::cell::Cell::new(place);
            let wrap = |words| Tripwire(Wire::new(words, page, wires.replace(u64::MAX)));
            let Ok(mut level) = Level::open(&[kind, kind], page, u64::MAX, wrap) else { return 1 };
            match plot {
                Plot::Ordinary => drop(story(&mut level)),
                Plot::TakesBack => {
                    let [.., last] = taken_back(&mut level, page);
                    level.wait(last);
                }
            }
            let causes = level.close();
            i32::from(!causes.iter().all(|cause| cause.is_orderly()))
        })
    }
    .expect("a parent");
    channel.close_sender();
    // Everybody below holds the sending end.
    assert!(channel.wait_for_end(HANGS).is_some(), "{kind:?}, {plot:?}, place {place}: somebody outlives its parent");
    let ended = clock::now();
    let pidfd = parent.process.pidfd().expect("a pidfd");
    assert!(is_ready_within(pidfd, LIMIT / 2), "the parent lives on");
    let exit = parent.process.poll().expect("it has ended");
    // This process adopts what the parent left.
    while !matches!(rustix::process::wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD)) {}
    let killed_at = Instant::from_nanos(page.read(scratch::KILLED_AT));
    if killed_at.as_nanos() == 0 {
        assert!(exit.is_success(), "{kind:?}, {plot:?}, place {place}: {exit}");
        return None;
    }
    assert!(exit.is_killed(), "{exit}");
    Some(ended.since(killed_at))
}

/// L-32, T-25: whatever the parent was about, none of its children is there 100 ms later.
pub(crate) fn a_parent_dies_at_every_place_and_nobody_outlives_it() {
    set_child_subreaper(Some(getpid())).expect("the case adopts what its parents leave");
    let (_page, page) = shared_page();
    let mut took = Vec::new();
    // What a successor is prepared for makes no difference to its parent.
    for (kind, plot) in [
        (Kind::Concurrent, Plot::Ordinary),
        (Kind::Concurrent, Plot::TakesBack),
        (Kind::Single, Plot::Ordinary),
        (Kind::Sub, Plot::Ordinary),
    ] {
        let before = took.len();
        for place in 0.. {
            let Some(mut lasted) = kill_at(kind, plot, place, page) else { break };
            for _ in 0..2 {
                if lasted > GONE_WITHIN {
                    lasted = lasted.min(kill_at(kind, plot, place, page).unwrap_or(lasted));
                }
            }
            in_time(
                &format!("L-32: {kind:?}, {plot:?}, place {place}: the end of the last child"),
                lasted,
                GONE_WITHIN,
            );
            took.push(lasted);
        }
        println!("a parent of {kind:?}, {plot:?}: {} places", took.len() - before);
        assert!(took.len() - before > 40, "the parent wrote next to nothing");
    }
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() - 1) * percent / 100];
    println!("{} places; survivors gone: p50 {:?}, p99 {:?}, max {:?}", took.len(), at(50), at(99), at(100));
}
