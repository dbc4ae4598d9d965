//! Stop, whenever it comes, and what children leave with.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use laneway_core::driver::ExitCause;
use laneway_core::mailbox::Words as _;
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::frame::{FRAME_BYTES, FRAMES};
use laneway_linux::sys::clock;

use crate::child::EXITS;
use crate::kind::{FAILS, Kind, digest};
use crate::level::{Level, QUICK, SLOW};
use crate::seat::{Footprint, HANGS, shared_page, sleep};

/// After how many rounds of the driver a stop comes, at most: the two runs are over by then.
const ROUNDS: usize = 25;

/// How often it is asked for.
const TIMES: usize = 20;

/// L-29, L-30, L-31, L-33, L-37, T-17, T-18: nothing is lost and every child leaves with 0, whenever the stop comes.
pub(crate) fn a_stop_in_every_state_again_and_again_from_another_thread_loses_nothing() {
    let (_region, page) = shared_page();
    let clean = Footprint::now();
    let mut seen = 0;
    for kind in [Kind::Concurrent, Kind::Exclusive, Kind::Single, Kind::Sub] {
        let mut states = BTreeSet::new();
        for rounds in 0..ROUNDS {
            let opened = Level::open(&[kind, kind], page, u64::MAX, |words| words);
            let mut level = opened.unwrap_or_else(|born| panic!("{:?}", born.cause));
            let runs =
                [level.run(&[(0, SLOW), (1, SLOW), (0, QUICK)]), level.run(&[(0, SLOW), (0, FAILS), (1, QUICK)])];
            let requests = [ControlRequest::Malloc { bytes: 8 }, ControlRequest::Unregister { digest: digest(90) }];
            let mut tickets: Vec<_> = requests.iter().map(|request| level.control(0, request, None)).collect();
            let soon = || clock::now().saturating_add(Duration::from_millis(1));
            for _ in 0..rounds {
                if !level.round().0 {
                    sleep(&level.bell, level.seats.iter(), soon());
                }
            }
            let words = level.seats[0].words;
            states.insert((0..FRAMES).map(|frame| words.load(frame * FRAME_BYTES)).collect::<Vec<_>>());
            let level = Mutex::new(level);
            std::thread::scope(|scope| {
                let stops = scope.spawn(|| {
                    for _ in 0..TIMES {
                        level.lock().expect("nobody panics").driver.stop();
                        std::thread::yield_now();
                    }
                });
                let limit = clock::now().saturating_add(HANGS);
                loop {
                    let mut level = level.lock().expect("nobody panics");
                    let (progressed, _) = level.round();
                    if level.seats.iter().all(|seat| seat.gone) && level.driver.is_drained() && !progressed {
                        break;
                    }
                    assert!(clock::now() < limit, "{kind:?}, stop after {rounds} rounds: it never ends");
                    if !progressed {
                        sleep(&level.bell, level.seats.iter(), soon());
                    }
                }
                stops.join().expect("no panic");
            });
            let mut level = level.into_inner().expect("nobody panics");
            level.round();
            for run in runs {
                assert!(level.is_terminal(run), "{kind:?}, stop after {rounds} rounds: run {run} never ended");
            }
            tickets.retain(|ticket| level.driver.control_result(*ticket).is_none());
            assert!(tickets.is_empty(), "{kind:?}, stop after {rounds} rounds: a control never ended");
            for (index, seat) in level.seats.iter().enumerate() {
                let cause = ExitCause::Exited { pid: seat.pid(), status: 0 };
                assert_eq!(seat.exit, Some(cause), "{kind:?}, stop after {rounds} rounds: child {index}");
            }
            drop(level);
            assert_eq!(Footprint::now(), clean, "{kind:?}, stop after {rounds} rounds");
        }
        println!("{kind:?}: {ROUNDS} stops, {TIMES} times each, in {} states of the mailbox", states.len());
        seen += states.len();
    }
    assert!(seen > 12, "the stops came in {seen} states only");
}

/// L-25, L-31: an exit status that is not 0 is told in the error of the run, in that of a control, and at the end.
pub(crate) fn an_exit_status_is_reported_as_it_was() {
    let (_region, page) = shared_page();
    for kind in [Kind::Concurrent, Kind::Single, Kind::Sub] {
        let opened = Level::open(&[kind], page, u64::MAX, |words| words);
        let mut level = opened.unwrap_or_else(|born| panic!("{:?}", born.cause));
        let pid = level.seats[0].pid();
        let run = level.run(&[(0, EXITS)]);
        let expected = format!("process {pid} exited with status 23");
        let outcome = level.wait(run);
        assert!(outcome.contains(&expected), "{outcome}");
        let ticket = level.control(0, &ControlRequest::Malloc { bytes: 8 }, None);
        let text = level.answer(ticket).expect_err("nobody is there");
        assert!(text.contains(&expected), "{text}");
        assert_eq!(level.close(), [ExitCause::Exited { pid, status: 23 }]);
    }
}
