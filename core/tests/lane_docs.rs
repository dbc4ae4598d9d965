//! The transition lists of the book are those that the two halves of a mailbox obey.

use std::fmt::Write as _;
use std::path::PathBuf;

use laneway_core::lane::{Act, Frames, Phase, Sight};
use laneway_core::serve::{Deed, News, Stage, news};
use laneway_core::wire::FrameState;

fn name(state: FrameState) -> &'static str {
    match state {
        FrameState::Idle => "IDLE",
        FrameState::TaskReady => "TASK_READY",
        FrameState::TaskDone => "TASK_DONE",
        FrameState::Shutdown => "SHUTDOWN",
        FrameState::ControlRequest => "CONTROL_REQUEST",
        FrameState::ControlDone => "CONTROL_DONE",
        FrameState::InitReady => "INIT_READY",
        FrameState::InitFailed => "INIT_FAILED",
        FrameState::FrameStaged => "FRAME_STAGED",
        FrameState::TaskLaunched => "TASK_LAUNCHED",
        FrameState::TaskFailed => "TASK_FAILED",
        FrameState::Activate => "ACTIVATE",
        FrameState::PrepareReady => "PREPARE_READY",
    }
}

/// What the parent does in a frame, and what each state word means to it, phase by phase.
fn parent(frames: Frames) -> String {
    let mut list = String::new();
    for act in Act::ALL.into_iter().filter(|act| act.exists_with(frames)) {
        let from = act.legal_in().map_or_else(|| "Free".into(), |phase| format!("{phase:?}"));
        let to = act.leads_to();
        let _ = writeln!(list, "{from:<9} --{act:?}, stores {}--> {to:?}", name(to.state()));
    }
    for phase in Phase::ALL {
        for state in FrameState::ALL {
            let to = match phase.sees(frames, state) {
                Some(Sight::Moved(to)) => format!("{to:?}"),
                Some(Sight::Done) => "Free, done".into(),
                Some(Sight::Failed) => "Free, failed".into(),
                Some(Sight::Same) | None => continue,
            };
            let phase = format!("{phase:?}");
            let _ = writeln!(list, "{phase:<9} --sees {}--> {to}", name(state));
        }
    }
    list
}

/// What each state word means to the child, and what it does, stage by stage.
fn child(frames: Frames) -> String {
    let mut list = String::new();
    for stage in Stage::ALL {
        for state in FrameState::ALL {
            let Some(to) = news(frames, stage, state).and_then(News::leads_to) else { continue };
            let stage = format!("{stage:?}");
            let _ = writeln!(list, "{stage:<9} --sees {}--> {to:?}", name(state));
        }
        if frames == Frames::One && matches!(stage, Stage::Waiting | Stage::Activated) {
            continue;
        }
        for deed in Deed::ALL {
            let Some(to) = deed.leads_to(stage) else { continue };
            let stores = deed.state(frames).map_or_else(String::new, |state| format!(", stores {}", name(state)));
            let stage = format!("{stage:?}");
            let _ = writeln!(list, "{stage:<9} --{deed:?}{stores}--> {to:?}");
        }
    }
    list
}

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/src/protocol/lanes.md")
}

/// The machines are declared once; the book cannot go stale. `LANEWAY_BLESS=1` writes the lists anew.
#[test]
fn the_transition_lists_of_the_book_are_those_of_the_machines() {
    let before = std::fs::read_to_string(page()).unwrap();
    let mut after = before.clone();
    let lists = [
        ("parent-one", parent(Frames::One)),
        ("child-one", child(Frames::One)),
        ("parent-two", parent(Frames::Two)),
        ("child-two", child(Frames::Two)),
    ];
    for (mark, list) in lists {
        let (open, close) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
        let start = after.find(&open).unwrap() + open.len();
        let end = after.find(&close).unwrap();
        after.replace_range(start..end, &format!("```text\n{list}```\n"));
    }
    if std::env::var_os("LANEWAY_BLESS").is_some() {
        std::fs::write(page(), &after).unwrap();
    } else {
        assert_eq!(before, after, "the lists in the book are old; LANEWAY_BLESS=1 writes them anew");
    }
}

/// A sight that leads nowhere, or a phase that nothing leads to, would be a mistake in a table.
#[test]
fn every_phase_and_every_stage_can_be_reached_and_left() {
    for phase in Phase::ALL {
        let entered = Act::ALL.iter().any(|act| act.leads_to() == phase)
            || Phase::ALL.iter().any(|from| {
                FrameState::ALL.iter().any(|state| from.sees(Frames::Two, *state) == Some(Sight::Moved(phase)))
            });
        let left = FrameState::ALL.iter().any(|state| {
            matches!(phase.sees(Frames::Two, *state), Some(Sight::Done | Sight::Failed | Sight::Moved(_)))
        });
        assert!(entered && left, "{phase:?}");
        assert_eq!(phase.sees(Frames::Two, phase.state()), Some(Sight::Same), "{phase:?} lasts");
    }
    for stage in Stage::ALL {
        let entered = stage == Stage::Empty
            || Stage::ALL.iter().any(|from| Deed::ALL.iter().any(|deed| deed.leads_to(*from) == Some(stage)));
        let told = Stage::ALL.iter().any(|from| {
            FrameState::ALL.iter().any(|state| news(Frames::Two, *from, *state).and_then(News::leads_to) == Some(stage))
        });
        assert!(entered || told, "{stage:?}");
    }
}
