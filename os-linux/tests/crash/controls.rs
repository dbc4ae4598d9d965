//! Controls beside tasks, late controls, and controls of the dead.

use std::time::Duration;

use laneway_core::driver::ControlTicket;
use laneway_core::ids::RunId;
use laneway_core::mailbox::Words as _;
use laneway_core::wire::control::{ControlRequest, CopySpan};
use laneway_linux::sys::clock;
use laneway_linux::sys::words::MappedWords;
use rustix::process::{Pid, Signal, kill_process};

use crate::child::{HOLDS, SLOW_CONTROL};
use crate::kind::{Kind, digest};
use crate::level::{Level, QUICK, endpoint};
use crate::seat::{Footprint, shared_page};
use crate::wire::scratch;

/// For controls that are to be late.
const SHORT: Duration = Duration::from_millis(30);

type Pair = Level<MappedWords>;

/// Two children of a kind, all gates closed.
fn open(kind: Kind, page: MappedWords) -> Pair {
    for word in [scratch::GATE, scratch::CONTROL_GATE, scratch::LAUNCHES] {
        page.write(word, 0);
    }
    Level::open(&[kind, kind], page, u64::MAX, |words| words).unwrap_or_else(|born| panic!("{:?}", born.cause))
}

/// Begins a run whose task holds child 0, and drives until it is launched.
fn hold(level: &mut Pair, page: MappedWords) -> RunId {
    let run = level.driver.engine_mut().begin_run().expect("a run");
    level.submit(run, 0, HOLDS).expect("a task");
    // The acceptance rings, after the launch was counted.
    level.drive("the task is launched", |_| page.read(scratch::LAUNCHES) > 0);
    run
}

/// Fifty tasks for child 1, to their end.
fn keep_the_other_busy(level: &mut Pair, run: RunId, page: MappedWords) {
    let before = page.read(scratch::LAUNCHES);
    for _ in 0..50 {
        level.submit(run, 1, QUICK).expect("a task");
    }
    level.drive("the other child runs its tasks", |level| {
        page.read(scratch::LAUNCHES) == before + 50
            && level.driver.lane(endpoint(1)).is_some_and(|lane| lane.in_flight() == 0)
    });
}

fn end(level: &mut Pair, run: RunId, page: MappedWords) {
    level.driver.engine_mut().close_submission(run).expect("an open run");
    page.write(scratch::GATE, 1);
    assert_eq!(level.wait(run), "completed");
}

fn is_open(level: &mut Pair, ticket: ControlTicket) -> bool {
    level.driver.control_result(ticket).is_none()
}

fn all_leave_in_order(level: Pair) {
    let causes = level.close();
    assert!(causes.iter().all(|cause| cause.is_orderly()), "L-31: {causes:?}");
}

/// L-20, L-21, L-23
pub(crate) fn ordinary_controls_run_beside_a_task_and_registry_controls_wait() {
    let (_region, page) = shared_page();
    let clean = Footprint::now();
    for kind in [Kind::Concurrent, Kind::Exclusive] {
        let mut level = open(kind, page);
        let run = hold(&mut level, page);
        let span = CopySpan::Addresses { dst: 64, src: 128, nbytes: 8 };
        for (request, answer) in [
            (ControlRequest::Malloc { bytes: 8 }, Ok(16)),
            (ControlRequest::Malloc { bytes: 0 }, Err("zero bytes")),
            (ControlRequest::CopyTo(span), Ok(0)),
            (ControlRequest::CopyFrom(span), Ok(0)),
            (ControlRequest::CommittedDeviceMemory, Ok(77)),
            (ControlRequest::Free { address: 16 }, Ok(0)),
        ] {
            let ticket = level.control(0, &request, None);
            match (level.answer(ticket), answer) {
                (Ok(found), Ok(value)) => assert_eq!(found, value, "{request:?}"),
                (Err(text), Err(part)) => assert!(text.contains(part), "{request:?}: {text}"),
                (found, _) => panic!("{request:?}: {found:?}"),
            }
            assert!(!level.is_terminal(run), "{request:?} waited for the task");
        }
        // The device panics if a run is there when the registry changes.
        let ticket = level.control(0, &ControlRequest::Unregister { digest: digest(90) }, None);
        keep_the_other_busy(&mut level, run, page);
        assert!(is_open(&mut level, ticket), "L-21: the registry changed beside a task");
        end(&mut level, run, page);
        assert_eq!(level.answer(ticket), Ok(0));
        all_leave_in_order(level);
    }
    assert_eq!(Footprint::now(), clean);
}

/// L-21
pub(crate) fn in_a_one_frame_child_every_control_waits_for_the_task() {
    let (_region, page) = shared_page();
    let mut level = open(Kind::Single, page);
    let run = hold(&mut level, page);
    let ticket = level.control(0, &ControlRequest::Malloc { bytes: 8 }, None);
    keep_the_other_busy(&mut level, run, page);
    assert!(is_open(&mut level, ticket));
    end(&mut level, run, page);
    assert_eq!(level.answer(ticket), Ok(16));
    all_leave_in_order(level);
}

/// L-22, L-27: past its time the outcome of a control is unknown, whether it was being served or was deferred.
pub(crate) fn a_late_control_poisons_its_endpoint_and_no_other() {
    let (_region, page) = shared_page();
    let clean = Footprint::now();
    for deferred in [false, true] {
        let mut level = open(Kind::Concurrent, page);
        let run = deferred.then(|| hold(&mut level, page));
        let request = match deferred {
            false => ControlRequest::Malloc { bytes: SLOW_CONTROL },
            true => ControlRequest::Unregister { digest: digest(90) },
        };
        let ticket = level.control(0, &request, Some(SHORT));
        let text = level.answer(ticket).expect_err("nobody answers");
        assert!(text.contains("worker 0") && text.contains("got no answer within"), "{text}");
        // Later ones fail at once, with that reason.
        for _ in 0..3 {
            let ticket = level.control(0, &ControlRequest::Malloc { bytes: 8 }, None);
            level.round();
            let later = level.driver.control_result(ticket).expect("an answer in the same round");
            assert!(later.expect_err("it is poisoned").to_string().contains("got no answer within"));
        }
        page.write(scratch::CONTROL_GATE, 1);
        page.write(scratch::GATE, 1);
        if let Some(run) = run {
            level.driver.engine_mut().close_submission(run).expect("an open run");
            let outcome = level.wait(run);
            assert!(outcome == "completed" || outcome.contains("got no answer within"), "{outcome}");
        }
        let other = level.run(&[(1, QUICK)]);
        assert_eq!(level.wait(other), "completed");
        all_leave_in_order(level);
    }
    assert_eq!(Footprint::now(), clean);
}

/// L-24, T-10: by measurement.
pub(crate) fn a_slow_control_delays_nothing_on_another_child() {
    const RUNS: usize = 200;
    let (_region, page) = shared_page();
    let mut level = open(Kind::Concurrent, page);
    let median = |level: &mut Pair| {
        let mut took: Vec<_> = (0..RUNS)
            .map(|_| {
                let start = clock::now();
                let run = level.run(&[(1, QUICK)]);
                assert_eq!(level.wait(run), "completed");
                level.driver.engine_mut().release(run).expect("a run that has ended");
                clock::now().since(start)
            })
            .collect();
        took.sort_unstable();
        took[RUNS / 2]
    };
    let before = median(&mut level);
    let ticket = level.control(0, &ControlRequest::Malloc { bytes: SLOW_CONTROL }, None);
    let meanwhile = median(&mut level);
    assert!(is_open(&mut level, ticket), "the control was to be slow");
    println!("a run on child 1: {before:?}; while child 0 is inside a control: {meanwhile:?}");
    crate::harness::in_time(
        &format!("a run that took {before:?} before"),
        meanwhile,
        3 * before + Duration::from_millis(1),
    );
    page.write(scratch::CONTROL_GATE, 1);
    assert_eq!(level.answer(ticket), Ok(2 * SLOW_CONTROL));
    all_leave_in_order(level);
}

/// L-25, L-37, T-19: the one that was outstanding, and each that comes later.
pub(crate) fn a_control_of_a_dead_child_fails_at_once_with_the_cause() {
    let (_region, page) = shared_page();
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let mut level = open(Kind::Concurrent, page);
        let pid = level.seats[0].pid();
        let ticket = level.control(0, &ControlRequest::Malloc { bytes: SLOW_CONTROL }, None);
        level.round();
        let killed = clock::now();
        kill_process(Pid::from_raw(pid).expect("a pid"), Signal::KILL).expect("it lives");
        let text = level.answer(ticket).expect_err("nobody is there");
        best = best.min(clock::now().since(killed));
        let names = |text: &str| text.contains(&pid.to_string()) && text.contains("SIGKILL");
        assert!(names(&text), "{text}");
        for _ in 0..3 {
            let ticket = level.control(0, &ControlRequest::Malloc { bytes: 8 }, None);
            level.round();
            let later = level.driver.control_result(ticket).expect("an answer in the same round");
            assert!(names(&later.expect_err("nobody is there").to_string()));
        }
        level.close();
    }
    println!("from the kill to the failure of the control: {best:?}");
    crate::harness::in_time("L-25: the failure of the control", best, Duration::from_millis(20));
}
