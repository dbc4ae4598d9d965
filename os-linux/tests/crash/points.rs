//! Children and parents that are killed at every place.

use std::collections::BTreeMap;
use std::time::Duration;

use laneway_core::driver::{ExitCause, Frames};
use laneway_core::ids::RunId;
use laneway_core::lane;
use laneway_core::mailbox::Words;
use laneway_core::time::Instant;
use laneway_core::wire::control::ControlRequest;
use laneway_linux::sys::words::MappedWords;

use crate::child::HOLDS;
use crate::harness::in_time;
use crate::kind::{FAILS, Kind, UNKNOWN, digest};
use crate::level::{Level, QUICK, SLOW, endpoint};
use crate::seat::{Footprint, shared_page};
use crate::wire::{Phase, scratch};

/// All phases, by number.
const PHASES: [Phase; 10] = [
    Phase::Init,
    Phase::Idle,
    Phase::Staging,
    Phase::Prepare,
    Phase::Launch,
    Phase::Run,
    Phase::Finalise,
    Phase::Done,
    Phase::Control,
    Phase::Shutdown,
];

/// How late a death may be reported at most (L-25).
const PROMPT: Duration = Duration::from_millis(20);

/// How often a place is measured again before its time counts: the machine may be busy.
const ATTEMPTS: usize = 3;

/// Two runs, so that a successor is staged behind the first, with failures and controls; then nothing; then a control more.
pub(crate) fn story<W: Words>(level: &mut Level<W>) -> Vec<RunId> {
    let runs = vec![
        level.run(&[(0, SLOW), (1, SLOW), (0, QUICK)]),
        level.run(&[(0, SLOW), (0, FAILS), (1, QUICK), (0, UNKNOWN)]),
    ];
    let requests = [
        ControlRequest::Malloc { bytes: 8 },
        ControlRequest::Malloc { bytes: 0 },
        ControlRequest::Unregister { digest: digest(90) },
    ];
    let mut tickets: Vec<_> = requests.iter().map(|request| level.control(0, request, None)).collect();
    let mut ended = |level: &mut Level<W>| {
        tickets.retain(|ticket| level.driver.control_result(*ticket).is_none());
        tickets.is_empty()
    };
    level.drive("two runs and three controls end", |level| {
        ended(level) && runs.iter().all(|run| level.is_terminal(*run))
    });
    let ticket = level.control(0, &ControlRequest::CommittedDeviceMemory, None);
    let _ = level.answer(ticket);
    runs
}

/// A child that died at one place.
struct Death {
    phase: Phase,
    busy: u64,
    /// A dispatch was being taken back.
    taken_back: bool,
    took: Duration,
}

fn is_kill(cause: ExitCause, pid: i32) -> bool {
    cause == ExitCause::Signalled { pid, signal: 9, unexpected: true, memory_limit: None }
}

/// A stop while two runs are on their way, the first of them held at the device of child 0 (L-29, L-31).
fn cut_short<W: Words>(level: &mut Level<W>, page: MappedWords) -> Vec<RunId> {
    page.write(scratch::GATE, 0);
    page.write(scratch::LAUNCHES, 0);
    let runs = vec![level.run(&[(0, HOLDS), (0, QUICK)]), level.run(&[(0, QUICK), (1, QUICK)])];
    let kind = level.seats[0].kind;
    let two = kind.frames() == Frames::Two;
    level.drive("the first task is launched, the second staged", |level| {
        let lane = level.driver.lane(endpoint(0)).expect("it was opened");
        let staged = lane.staged().is_some_and(|flight| flight.phase == lane::Phase::Waiting);
        // A SUB child says nothing before its task has ended.
        level.seats[0].gone || kind == Kind::Sub || (page.read(scratch::LAUNCHES) > 0 && (staged || !two))
    });
    level.driver.stop();
    // In a one-frame child SHUTDOWN waits for the running task (L-33).
    page.write(scratch::GATE, u64::from(!two));
    level.drive("both runs end", |level| runs.iter().all(|run| level.is_terminal(*run)));
    runs
}

/// A run is cancelled while its first task waits, staged, behind one that the device of child 0 holds: the task is taken back
/// (E-9, L-38), and the place that it had serves the next run.
pub(crate) fn taken_back<W: Words>(level: &mut Level<W>, page: MappedWords) -> [RunId; 3] {
    page.write(scratch::GATE, 0);
    let runs = [level.run(&[(0, HOLDS), (1, QUICK)]), level.run(&[(0, QUICK), (0, QUICK)])];
    level.drive("a task is staged behind the one that is held", |level| {
        let lane = level.driver.lane(endpoint(0)).expect("it was opened");
        level.seats[0].gone || lane.staged().is_some_and(|flight| flight.phase == lane::Phase::Waiting)
    });
    level.driver.engine_mut().cancel(runs[1]).expect("an open run");
    level.drive("the cancelled run ends, although nothing before it does", |level| level.is_terminal(runs[1]));
    page.write(scratch::GATE, 1);
    level.drive("the held run ends", |level| level.is_terminal(runs[0]));
    [runs[0], runs[1], level.run(&[(0, QUICK), (0, QUICK)])]
}

/// How a level ends in which a child dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// Everything is done by then.
    Idle,
    /// Two runs are on their way.
    Busy,
    /// A staged task was taken back.
    TakenBack,
}

/// Lets child 0 of a level die at a place, if it comes there, and looks at everything afterwards.
fn die_at(kind: Kind, ending: Ending, place: u64, page: MappedWords, clean: &Footprint) -> Option<Death> {
    page.write(scratch::KILLED_AT, 0);
    let told_at = match Level::open(&[kind, kind], page, place, |words| words) {
        Err(born) => {
            assert!(matches!(born.cause, ExitCause::Signalled { signal: 9, .. }), "{:?}", born.cause);
            born.told_at
        }
        Ok(mut level) => {
            let pid = level.seats[0].pid();
            match ending {
                Ending::Idle => {
                    let runs = story(&mut level);
                    look_at_the_end(&mut level, &runs, kind, place);
                }
                Ending::Busy => drop(cut_short(&mut level, page)),
                Ending::TakenBack => {
                    let [held, cancelled, after] = taken_back(&mut level, page);
                    level.wait(after);
                    let died = level.seats[0].exit.is_some();
                    let (held, cancelled) = (level.outcome(held), level.outcome(cancelled));
                    assert!(died || held == "completed", "place {place}: {held}");
                    assert!(died || cancelled.contains("cancelled"), "place {place}: {cancelled}");
                }
            }
            level.driver.stop();
            level.drive("all children leave", |level| {
                level.driver.is_drained() && level.seats.iter().all(|seat| seat.gone) && level.told_at.is_some()
            });
            let told_at = level.told_at.expect("it is gone");
            let causes = level.close();
            assert!(causes[1].is_orderly(), "L-31: {:?}", causes[1]);
            assert!(is_kill(causes[0], pid) || causes[0].is_orderly(), "{:?}", causes[0]);
            told_at
        }
    };
    assert_eq!(Footprint::now(), *clean, "{kind:?}, place {place}: something is left");
    let killed_at = Instant::from_nanos(page.read(scratch::KILLED_AT));
    (killed_at.as_nanos() > 0).then(|| Death {
        phase: PHASES[page.read(scratch::PHASE) as usize],
        busy: page.read(scratch::BUSY),
        taken_back: page.read(scratch::TAKEN_BACK) != 0,
        took: told_at.since(killed_at),
    })
}

/// What is true after the story, whether child 0 lives or not.
fn look_at_the_end(level: &mut Level<MappedWords>, runs: &[RunId], kind: Kind, place: u64) {
    let pid = level.seats[0].pid();
    let died = level.seats[0].exit.is_some();
    for (run, own) in runs.iter().zip(["completed", "code 1"]) {
        let outcome = level.outcome(*run);
        let of_death = died && outcome.contains(&pid.to_string()) && outcome.contains("SIGKILL");
        assert!(outcome.contains(own) || of_death, "{kind:?}, place {place}: {outcome}");
        // T-20, T-22: a failure never arrives without its text.
        let whole = outcome.contains("said no") || outcome.contains("not registered");
        assert!(whole || !outcome.contains("code 1"), "{kind:?}, place {place}: {outcome}");
    }
    if died {
        look_at_the_dead(level, kind, pid);
    }
    // L-27, E-41: the other child goes on. The SUB children share one pool, so there the first may die of this run.
    let run = level.run(&[(1, QUICK)]);
    let outcome = level.wait(run);
    let shared = kind == Kind::Sub && !died && outcome.contains(&pid.to_string());
    assert!(outcome == "completed" || shared, "{kind:?}, place {place}: {outcome}");
}

/// T-19, T-26, E-41: what is asked of a dead child is refused at once, with the cause.
fn look_at_the_dead(level: &mut Level<MappedWords>, kind: Kind, pid: i32) {
    let ticket = level.control(0, &ControlRequest::Malloc { bytes: 8 }, None);
    level.round();
    let answer = level.driver.control_result(ticket).expect("a control of a dead child is answered in the same round");
    let text = answer.expect_err("nobody is there").to_string();
    assert!(text.contains(&pid.to_string()) && text.contains("SIGKILL"), "names pid and signal: {text}");
    if kind != Kind::Sub {
        let run = level.driver.engine_mut().begin_run().expect("a run");
        let text = level.submit(run, 0, QUICK).expect_err("nobody is there");
        assert!(text.contains(&pid.to_string()) && text.contains("SIGKILL"), "names pid and signal: {text}");
        level.driver.engine_mut().close_submission(run).expect("an open run");
        level.wait(run);
    }
}

/// What was seen of all deaths.
#[derive(Default)]
struct Tally {
    by_phase: BTreeMap<Phase, usize>,
    busy: [usize; 3],
    taken_back: usize,
    took: Vec<Duration>,
    again: usize,
}

impl Tally {
    fn print(&mut self, what: &str) {
        self.took.sort_unstable();
        let at = |percent: usize| self.took[(self.took.len() - 1) * percent / 100];
        println!("{what}: {} places, {:?}", self.took.len(), self.by_phase);
        let [none, one, two] = self.busy;
        println!("  task frames busy: none {none}, one {one}, two {two}; a dispatch taken back: {}", self.taken_back);
        println!(
            "  from the kill to the error: p50 {:?}, p99 {:?}, max {:?}; {} measured again",
            at(50),
            at(99),
            at(100),
            self.again
        );
    }
}

fn a_child_dies_everywhere(kind: Kind, phases: &[Phase]) {
    let (_page, page) = shared_page();
    let clean = Footprint::now();
    let mut tally = Tally::default();
    let endings = [Ending::Idle, Ending::Busy, Ending::TakenBack];
    let two = kind.frames() == Frames::Two;
    for &ending in if two { &endings[..] } else { &endings[..2] } {
        die_everywhere(kind, ending, page, &clean, &mut tally);
    }
    tally.print(&format!("{kind:?}"));
    for phase in phases {
        assert!(tally.by_phase.contains_key(phase), "no child died in {phase:?}");
    }
    assert!(tally.busy[0] > 0 && tally.busy[1] > 0);
    assert_eq!(tally.busy[2] > 0, two, "with two frames busy");
    assert_eq!(tally.taken_back > 0, two, "while a dispatch is taken back");
}

fn die_everywhere(kind: Kind, ending: Ending, page: MappedWords, clean: &Footprint, tally: &mut Tally) {
    let mut survived = 0;
    // How often a child naps differs from one time to the next, so the last places are not always reached.
    for place in 0.. {
        let Some(mut death) = die_at(kind, ending, place, page, clean) else {
            survived += 1;
            if survived == 3 {
                break;
            }
            continue;
        };
        for _ in 1..ATTEMPTS {
            if death.took <= PROMPT {
                break;
            }
            tally.again += 1;
            // Near the end of a level's life a place is not always reached.
            let again = (0..5).find_map(|_| die_at(kind, ending, place, page, clean));
            death.took = again.map_or(death.took, |again| again.took.min(death.took));
        }
        in_time(&format!("L-25: {kind:?}, place {place}, {:?}: the error", death.phase), death.took, PROMPT);
        *tally.by_phase.entry(death.phase).or_default() += 1;
        tally.busy[death.busy as usize] += 1;
        tally.taken_back += usize::from(death.taken_back);
        tally.took.push(death.took);
    }
}

/// L-25, L-27, T-19: two frames, preparing beside a running one.
pub(crate) fn a_chip_child_that_stages_dies_at_every_place() {
    a_child_dies_everywhere(Kind::Concurrent, &PHASES);
}

/// L-25, L-27, T-19: two frames, a successor is validated only.
pub(crate) fn a_chip_child_that_prepares_alone_dies_at_every_place() {
    a_child_dies_everywhere(Kind::Exclusive, &PHASES);
}

/// L-25, L-27, T-19: one frame, native.
pub(crate) fn a_chip_child_with_one_frame_dies_at_every_place() {
    a_child_dies_everywhere(Kind::Single, &PHASES);
}

/// L-25, L-27, T-19: one frame, one call for each task.
pub(crate) fn a_sub_child_dies_at_every_place() {
    let mut phases = PHASES.to_vec();
    // Its tasks end inside the launch.
    phases.retain(|phase| *phase != Phase::Run);
    a_child_dies_everywhere(Kind::Sub, &phases);
}
