//! A successor beside a task that executes.

use laneway_core::ids::PipelineSlot::{One, Zero};
use laneway_core::wire::FrameState;
use laneway_core::wire::frame as at;
use laneway_sim::{Action, FaultPlan, Kernel, Point};

use super::Desk;
use super::desk::{FIRST, SECOND};
use crate::case::Case;
use crate::device::{VectorAdd, diagnostic};
use crate::expect::{Must, Verdict, Violation, equal, holds};

const KERNELS: &[Kernel] = &[Kernel::Add, Kernel::Wait];

pub(super) fn cases() -> Vec<Case> {
    let case = |name, rules, says, run| Case::two_frames(name, rules, says, run).kernels(KERNELS);
    vec![
        case(
            "beside/a_successor_is_prepared_natively_where_that_may_be",
            &["L-12", "L-13"],
            "Behind a task that executes a plain successor is prepared natively before it is staged: preparation 2.",
            prepared,
        )
        .concurrent(true),
        case(
            "beside/a_successor_is_validated_where_nothing_is_prepared_beside",
            &["L-12", "L-13"],
            "Where the runtime prepares one run at a time a successor is staged at once as validated only: preparation 1.",
            validated,
        )
        .concurrent(false),
        case(
            "beside/a_diagnostic_successor_is_validated_only",
            &["L-12"],
            "A diagnostic successor is never prepared beside a task that executes.",
            diagnostic_successor,
        )
        .concurrent(true),
        case(
            "beside/a_successor_of_a_diagnostic_task_is_validated_only",
            &["L-12"],
            "Nothing is prepared beside a diagnostic task that executes.",
            diagnostic_predecessor,
        )
        .concurrent(true),
        case(
            "beside/an_incompatible_prepare_is_deferred",
            &["L-16", "T-28"],
            "A successor whose preparation the runtime calls incompatible is staged as validated, and runs when its time comes.",
            deferred,
        )
        .concurrent(true)
        .faults(FaultPlan::none().with(Point::Prepare, 2, Action::Incompatible)),
        case(
            "beside/a_successor_launches_after_its_predecessor_was_finalized",
            &["L-14", "L-17"],
            "An activated successor is launched, and accepted, only after its predecessor has its terminal state.",
            after,
        ),
        case(
            "beside/a_successor_is_withdrawn_while_its_predecessor_runs",
            &["L-38", "L-11", "L-15"],
            "A withdrawn successor fails at once, without waiting for the task that executes, and that one ends as usual.",
            withdrawn,
        ),
        case(
            "beside/a_failed_prepare_of_a_successor_fails_it_alone",
            &["L-5", "L-15"],
            "A successor whose preparation fails ends in TASK_FAILED, whenever that is; the task that executes ends as usual.",
            failed,
        )
        .faults(FaultPlan::none().with(Point::Prepare, 2, Action::Error(-5))),
    ]
}

/// Publishes a successor, and waits until it is staged; its preparation.
fn successor(desk: &mut Desk<'_>, work: &VectorAdd, config: laneway_core::wire::CallConfig) -> Result<i32, Violation> {
    let mut sheet = desk.sheet(One, Kernel::Add, &work.tensors, &[])?;
    sheet.config = config;
    desk.publish(SECOND, &sheet, FrameState::PrepareReady);
    desk.reaches(SECOND, FrameState::FrameStaged)?;
    equal("the task that executes, when its successor is staged", FIRST.state(desk.words()), 9)?;
    Ok(SECOND.preparation(desk.words()))
}

/// Ends both, the successor after its activation.
fn both_end(desk: &mut Desk<'_>, work: &VectorAdd) -> Verdict {
    equal("the error of the first", desk.ends(FIRST)?.error, 0)?;
    work.is_untouched()?;
    SECOND.activate(desk.words()).map_err(|state| format!("state {state}")).must("activation")?;
    equal("the error of the second", desk.ends(SECOND)?.error, 0)?;
    work.is_done()
}

const PLAIN: laneway_core::wire::CallConfig = laneway_core::wire::CallConfig::ZERO;

fn prepared(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    desk.occupy(FIRST, &PLAIN)?;
    equal("the preparation", successor(desk, &work, PLAIN)?, 2)?;
    both_end(desk, &work)
}

fn validated(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    desk.occupy(FIRST, &PLAIN)?;
    equal("the preparation", successor(desk, &work, PLAIN)?, 1)?;
    both_end(desk, &work)
}

fn diagnostic_successor(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    desk.occupy(FIRST, &PLAIN)?;
    equal("the preparation", successor(desk, &work, diagnostic()?)?, 1)?;
    both_end(desk, &work)
}

fn diagnostic_predecessor(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    desk.occupy(FIRST, &diagnostic()?)?;
    equal("the preparation", successor(desk, &work, PLAIN)?, 1)?;
    both_end(desk, &work)
}

fn deferred(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    desk.occupy(FIRST, &PLAIN)?;
    equal("the preparation", successor(desk, &work, PLAIN)?, 1)?;
    both_end(desk, &work)
}

fn after(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    desk.occupy(FIRST, &PLAIN)?;
    successor(desk, &work, PLAIN)?;
    SECOND.activate(desk.words()).map_err(|state| format!("state {state}")).must("activation")?;
    equal("the error of the second", desk.ends(SECOND)?.error, 0)?;
    work.is_done()?;
    let end = desk.when(FIRST, at::STATE, 2)?;
    let (launch, accepted) = (desk.when(SECOND, at::STATE, 9)?, desk.when(SECOND, at::ACCEPTED, 1)?);
    holds("the end of the first before launch and acceptance of the second", end < launch && end < accepted, || {
        format!("words {end}, {launch}, {accepted}")
    })
}

fn withdrawn(desk: &mut Desk<'_>) -> Verdict {
    let (work, next) = (VectorAdd::new(), VectorAdd::new());
    desk.occupy(FIRST, &PLAIN)?;
    successor(desk, &work, PLAIN)?;
    SECOND.clear_dispatch(desk.words());
    SECOND.activate(desk.words()).map_err(|state| format!("state {state}")).must("activation")?;
    equal("the state of the second", desk.ends(SECOND)?.state, FrameState::TaskFailed.raw())?;
    equal("the error of the first", desk.ends(FIRST)?.error, 0)?;
    work.is_untouched()?;
    let (gone, end) = (desk.when(SECOND, at::STATE, 10)?, desk.when(FIRST, at::STATE, 2)?);
    holds("the withdrawal is answered before the first ends", gone < end, || format!("words {gone}, {end}"))?;
    let sheet = desk.sheet(One, Kernel::Add, &next.tensors, &[])?;
    desk.succeeds(SECOND, &sheet)?;
    next.is_done()
}

fn failed(desk: &mut Desk<'_>) -> Verdict {
    let (work, next) = (VectorAdd::new(), VectorAdd::new());
    desk.occupy(FIRST, &PLAIN)?;
    let sheet = desk.sheet(One, Kernel::Add, &work.tensors, &[])?;
    desk.publish(SECOND, &sheet, FrameState::PrepareReady);
    desk.until("the successor is staged or refused", |desk| [8, 10].contains(&SECOND.state(desk.words())))?;
    // Staged: it is prepared once it is activated.
    let _ = SECOND.activate(desk.words());
    let ending = desk.ends(SECOND)?;
    equal("state and error of the second", (ending.state, ending.error), (FrameState::TaskFailed.raw(), -5))?;
    equal("the error of the first", desk.ends(FIRST)?.error, 0)?;
    work.is_untouched()?;
    let sheet = desk.sheet(Zero, Kernel::Add, &next.tensors, &[])?;
    desk.succeeds(FIRST, &sheet)?;
    next.is_done()
}
