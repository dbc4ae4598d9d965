//! What a board and the mailboxes tell. Whoever writes them may be hostile or dying: every word is read once, bounded and judged
//! alone, and the words of one answer need not be of one moment.

use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use laneway_core::ids::{DispatchId, RunId, SubId, WorkerId};
use laneway_core::lane::{Label, Phase};
use laneway_core::mailbox::extension::Status;
use laneway_core::time::Instant;
use laneway_core::wire::extension::{self, ChildActivity};
use laneway_core::wire::frame::{self, FRAME_BYTES};
use laneway_core::wire::{Digest, FrameState};

use super::Sight;
use super::layout::{self, Header, Place, Record, Standing};
use crate::health::{ChildHealth, Doing, Health};
use crate::worker::WorkerState;

/// What one worker is doing. `mailbox` finds the mailbox of a child by its position and by its parent's descriptor.
pub(crate) fn look<M: Sight>(
    board: &impl Sight,
    count: usize,
    now: Instant,
    mut mailbox: impl FnMut(usize, u64) -> Option<M>,
) -> Health {
    let header: Header = layout::read(board, Place::HEADER);
    let state = WorkerState::ALL.get(header.state as usize).copied().unwrap_or(WorkerState::Failed);
    let children: Vec<_> = (0..count)
        .map(|i| {
            let record: Record = layout::read(board, Place::record(i));
            let standing = Standing::read(board, Place::record(i));
            let mut child = child(&record, standing, header.started, now, mailbox(i, record.mailbox).as_ref());
            if let Doing::Busy { callable: Some(digest), name, .. } = &mut child.doing {
                *name = self::name(board, count, digest);
            }
            child
        })
        .collect();
    Health {
        pid: header.pid as i32,
        level: header.level as u32,
        state: state.name(),
        ready: state == WorkerState::Ready && children.iter().all(ChildHealth::serves),
        committed_bytes: 0,
        cpu_overlaps: Vec::new(),
        age: age(header.started, now),
        window: Duration::from_nanos(header.window),
        wake: Duration::from_nanos(header.wake),
        spinning: Duration::from_nanos(header.spun),
        children,
    }
}

/// What a callable is called, if the board of so many children says so.
pub(super) fn name(board: &impl Sight, children: usize, digest: &Digest) -> Option<String> {
    let names = (board.whole(Place::NAMED) as usize).min(layout::NAMES);
    let holds = |at: &usize| layout::read::<[u8; 32]>(board, *at) == digest.0;
    let at = (0..names).map(|slot| Place::name(children, slot)).find(holds)?;
    fence(Ordering::Acquire);
    let name: [u8; layout::NAME_BYTES] = layout::read(board, at + Place::NAME);
    fence(Ordering::Acquire);
    holds(&at).then(|| layout::string(&name))
}

fn age(since: u64, now: Instant) -> Duration {
    now.since(Instant::from_nanos(since))
}

fn label(word: u64) -> Label {
    let low = word as u32;
    match word >> 32 {
        0 => WorkerId::new(low as i32).map_or(Label::Sub(SubId(low)), Label::Worker),
        _ => Label::Sub(SubId(low)),
    }
}

fn child(record: &Record, standing: Standing, started: u64, now: Instant, mailbox: Option<&impl Sight>) -> ChildHealth {
    let said = mailbox
        .filter(|mailbox| mailbox.whole(extension::CHILD) == extension::CHILD_MAGIC)
        .map(|mailbox| Status::read(|at| mailbox.whole(at)));
    let doing = match (standing, mailbox) {
        (Standing::Ended(cause), _) => Doing::Dead { cause },
        (Standing::Poisoned, _) => Doing::Poisoned { reason: layout::string(&record.reason) },
        (Standing::Serving, None) => Doing::Unknown,
        (Standing::Serving, Some(mailbox)) => task(record, said, now, mailbox),
    };
    let nothing =
        Status { activity: ChildActivity::Unknown, dispatch: 0, since: record.sent, tasks: 0, busy: 0, spun: 0 };
    let said = said.unwrap_or(nothing);
    ChildHealth {
        label: label(record.label),
        kind: layout::string(&record.kind),
        pid: record.pid as i32,
        doing,
        activity: said.activity,
        last_progress: age(said.since.max(started), now),
        tasks: said.tasks,
        busy: Duration::from_nanos(said.busy),
        spinning: Duration::from_nanos(said.spun),
        age: age(started, now),
    }
}

/// The task that a child is at: of two, the one that was sent first.
fn task(record: &Record, said: Option<Status>, now: Instant, mailbox: &impl Sight) -> Doing {
    let occupied = (0..record.frames.min(2) as usize).filter_map(|i| {
        let at = FRAME_BYTES * (1 + i);
        let phase = phase(FrameState::from_raw(mailbox.half(at + frame::STATE))?)?;
        let dispatch = DispatchId::new(mailbox.whole(at + DISPATCH))?;
        Some((dispatch, at, phase))
    });
    let occupied: Vec<_> = occupied.collect();
    let Some(&(dispatch, at, phase)) = occupied.iter().min_by_key(|(dispatch, ..)| *dispatch) else {
        return Doing::Idle;
    };
    let Some(run) = RunId::new(mailbox.whole(at + RUN)) else { return Doing::Idle };
    let mut digest = [0; 32];
    for (i, word) in digest.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&mailbox.whole(at + frame::DIGEST + 8 * i).to_le_bytes());
    }
    // Not of the next task, half of it maybe.
    let same = mailbox.whole(at + DISPATCH) == dispatch.get();
    let runs = said.filter(|said| said.activity == ChildActivity::Task && said.dispatch == dispatch.get());
    let begun = runs.filter(|_| occupied.len() > 1).map(|said| said.since);
    Doing::Busy {
        run,
        dispatch,
        callable: same.then_some(Digest(digest)),
        name: None,
        phase,
        running: runs.is_some(),
        age: age(begun.unwrap_or(record.sent), now),
    }
}

const RUN: usize = frame::TRAILER + 8;
const DISPATCH: usize = frame::TRAILER + 32;

/// Where the dispatch in a frame stands; none if the frame is free.
const fn phase(state: FrameState) -> Option<Phase> {
    match state {
        FrameState::TaskReady => Some(Phase::Published),
        FrameState::FrameStaged => Some(Phase::Staged),
        FrameState::PrepareReady => Some(Phase::Preparing),
        FrameState::Activate => Some(Phase::Activated),
        FrameState::TaskLaunched => Some(Phase::Launched),
        _ => None,
    }
}
