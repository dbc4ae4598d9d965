//! Commands to a chip beside its tasks: whom they hold up, and what ends them.

use std::time::{Duration, Instant};

use laneway_linux::{Error, WorkerId};
use laneway_sim::{Action, FaultPlan, Kernel, Point};

use super::Grove;
use super::grove::{Chips, children};
use super::signal::until;
use crate::case::Case;
use crate::expect::{Must, Verdict, Violation, equal, holds, mentions, refused};

const ADD: &[Kernel] = &[Kernel::Add];

/// Far longer than anything that must not wait for a control.
const LONG: Duration = Duration::from_secs(3600);

pub(super) fn cases() -> Vec<Case> {
    let once = |action| FaultPlan::none().with(Point::Malloc, 1, action);
    let cases = vec![
        Case::tree(
            "controls/a_control_that_takes_long_holds_up_no_other_chip",
            &["L-24", "T-10"],
            "While a malloc of one chip is outstanding the tasks and controls of another go on.",
            beside,
        )
        .kernels(ADD)
        .faults(once(Action::Hang))
        .processes(),
        Case::tree(
            "controls/a_control_follows_the_life_of_its_child",
            &["L-22", "L-26", "T-19"],
            "A malloc whose chip dies fails at once with the cause, and so does every later one; it has no time limit of its own.",
            dies,
        )
        .kernels(ADD)
        .faults(once(Action::Kill))
        .processes(),
        Case::tree(
            "controls/a_control_that_is_outstanding_when_its_worker_closes_fails",
            &["L-37", "P-13"],
            "close_now ends a malloc that the device never answers, with that reason.",
            closing,
        )
        .kernels(ADD)
        .faults(once(Action::Hang))
        .processes(),
        Case::tree(
            "controls/a_control_that_fails_leaves_its_chip_usable",
            &["L-23"],
            "A malloc that the device refuses fails with its code; the next one and the next task succeed.",
            fails,
        )
        .kernels(ADD)
        .faults(once(Action::Error(-1))),
    ];
    cases.into_iter().map(Case::with_memory).collect()
}

/// A malloc in a thread of its own, while `meanwhile` runs; how it ended.
fn malloc_beside(
    chips: &Chips,
    chip: WorkerId,
    meanwhile: impl FnOnce() -> Verdict,
) -> Result<Result<(), Error>, Violation> {
    std::thread::scope(|scope| {
        let asking = scope.spawn(move || chips.worker.malloc(chip, 64).map(drop));
        let verdict = until("the malloc is on its way", || {
            chips
                .worker
                .health()
                .children
                .first()
                .is_some_and(|child| child.activity == laneway_linux::ChildActivity::Control)
        });
        verdict.and_then(|()| meanwhile())?;
        asking.join().ok().must("the thread that asks")
    })
}

fn beside(grove: &mut Grove<'_>) -> Verdict {
    let short = Duration::from_millis(100);
    let builder = grove.builder().drain_budget(short).reap_budget(short);
    let chips = grove.faulty_and_another(builder)?;
    let ended = malloc_beside(&chips, chips.ids[0], || {
        for _ in 0..5 {
            chips.adds(1)?;
        }
        let there = chips.worker.malloc(chips.ids[1], 64).must("a malloc of the other chip")?;
        chips.worker.free(chips.ids[1], there).must("its free")?;
        // The device of the first never answers: only the end of its worker ends this.
        match chips.worker.close_now() {
            Ok(()) | Err(Error::AbnormalExits { .. }) => Ok(()),
            closed => closed.must("close_now"),
        }
    })?;
    refused("the malloc that was never answered", ended, "an error", |_| true).map(drop)
}

fn dies(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.one_faulty(1)?;
    let start = Instant::now();
    for attempt in 1..=3 {
        let error =
            refused("a malloc of a chip that dies", chips.worker.malloc(chips.ids[0], 64), "an error", |_| true)?;
        mentions(format_args!("the error of attempt {attempt}"), &error.to_string(), &["worker 0", "SIGKILL"])?;
    }
    holds("it fails at once", start.elapsed() < LONG / 360, || format!("after {:?}", start.elapsed()))?;
    chips.adds(1)?;
    chips.close(true)
}

fn closing(grove: &mut Grove<'_>) -> Verdict {
    let short = Duration::from_millis(100);
    let builder = grove.builder().drain_budget(short).reap_budget(short);
    let chips = grove.one_faulty_of(builder)?;
    let ended = malloc_beside(&chips, chips.ids[0], || match chips.worker.close_now() {
        Ok(()) | Err(Error::AbnormalExits { .. }) => Ok(()),
        closed => closed.must("close_now"),
    })?;
    let error = refused("the malloc that was never answered", ended, "an error", |_| true)?;
    mentions("the error", &error.to_string(), &["closed"])?;
    equal("children after close_now", children(), Vec::<i32>::new())
}

fn fails(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.one_faulty(0)?;
    let error =
        refused("a malloc that the device refuses", chips.worker.malloc(chips.ids[0], 64), "an error", |error| {
            matches!(error, Error::Control(_))
        })?;
    mentions("the error", &error.to_string(), &["worker 0", "Malloc", "code"])?;
    let there = chips.worker.malloc(chips.ids[0], 64).must("the next malloc")?;
    chips.adds(0)?;
    chips.worker.free(chips.ids[0], there).must("its free")?;
    chips.close(false)
}
