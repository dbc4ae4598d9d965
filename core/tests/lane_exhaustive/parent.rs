//! The parent's side: what it does next, and what it holds against what the child did.

use laneway_core::ids::{Generation, RunId};
use laneway_core::lane::{Event, ExitCause, Job, Lane, Outcome};
use laneway_core::mailbox::LongText;
use laneway_core::time::Instant;
use laneway_core::wire::{CallConfig, Digest};

use crate::state::{Life, Offspring};
use crate::words::Probe;
use crate::world::World;

const NOW: Instant = Instant::from_nanos(1);

/// What the parent does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Op {
    Poll,
    Submit(u8),
    Activate(u8),
    Withdraw(u8),
    Control,
    Stop,
    Died,
    SubtreeGone,
}

/// What the parent side has seen of each dispatch.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct History {
    pub(crate) submitted: Vec<u8>,
    pub(crate) accepted: Vec<u8>,
    pub(crate) ended: Vec<u8>,
    pub(crate) control_asked: bool,
    pub(crate) control_ended: bool,
    pub(crate) withdrawn: bool,
    pub(crate) stopped: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Parent {
    pub(crate) lane: Lane<u8, u8>,
    pub(crate) history: History,
    pub(crate) op: Option<Op>,
    pub(crate) log: Vec<i64>,
}

impl Parent {
    /// What the parent may begin now.
    pub(crate) fn ops(&self, world: &World, child: Life) -> Vec<Op> {
        let (lane, history) = (&self.lane, &self.history);
        let mut ops = vec![Op::Poll];
        let open = lane.poison().is_none() && !history.stopped;
        let next = history.submitted.len();
        if open && let Some((slot, prepare_only)) = world.tasks.get(next) {
            let vacant = if *prepare_only { lane.staged().is_none() } else { lane.active().is_none() };
            let frame_free = history
                .submitted
                .iter()
                .all(|key| history.ended.contains(key) || world.tasks[usize::from(*key) - 1].0 != *slot);
            if vacant && frame_free && !lane.is_held_back(*prepare_only) {
                ops.push(Op::Submit(next as u8 + 1));
            }
        }
        if open
            && lane.active().is_none()
            && let Some(staged) = lane.staged()
            && !history.withdrawn
        {
            ops.push(Op::Activate(staged.key));
        }
        if open
            && world.withdraw
            && !history.withdrawn
            && let Some(staged) = lane.staged()
        {
            ops.push(Op::Withdraw(staged.key));
        }
        if open && world.control && !history.control_asked {
            ops.push(Op::Control);
        }
        if world.stop && !history.stopped && lane.poison().is_none() {
            ops.push(Op::Stop);
        }
        match child {
            Life::Left | Life::Killed => ops.push(Op::Died),
            Life::Reported => ops.push(Op::SubtreeGone),
            Life::Serving | Life::Gone => {}
        }
        ops
    }
}

pub(crate) fn perform(
    op: Op,
    world: &World,
    words: &Probe<'_>,
    lane: &mut Lane<u8, u8>,
    history: &mut History,
    life: &mut Life,
    child: &Offspring,
) {
    match op {
        Op::Poll => {
            take_events(words, lane, history, child);
            if lane.wants_shutdown() {
                lane.request_stop(words);
            }
        }
        Op::Submit(key) => {
            let (slot, prepare_only) = world.tasks[usize::from(key) - 1];
            let job = Job {
                key,
                run: RunId::new(slot.index() as u64 + 1).unwrap(),
                slot,
                generation: Generation::FIRST,
                digest: &Digest::ZERO,
                config: &CallConfig::ZERO,
                blob: &[0; 8],
                limit: None,
                prepare_only,
            };
            lane.submit(words, &job, NOW).expect("an open lane with a vacancy takes a task");
            history.submitted.push(key);
        }
        Op::Activate(_) => {
            let run = lane.staged().expect("something is staged").identity.run;
            lane.activate(words, run, NOW).expect("the active lane is free");
        }
        Op::Withdraw(key) => {
            lane.withdraw(words, key, NOW).expect("it is staged");
            history.withdrawn = true;
        }
        Op::Control => {
            lane.control(words, 1, &world.request(), None, NOW).expect("no control is outstanding");
            history.control_asked = true;
        }
        Op::Stop => {
            lane.stop();
            history.stopped = true;
        }
        Op::Died => {
            // What the child published before it ended is taken in first, as the driver does.
            take_events(words, lane, history, child);
            let cause = match life {
                Life::Killed => ExitCause::Signalled { pid: 1, signal: 9, unexpected: true, memory_limit: None },
                _ => ExitCause::Exited { pid: 1, status: 0 },
            };
            lane.child_exited(cause, NOW);
            *life = Life::Reported;
        }
        Op::SubtreeGone => {
            lane.subtree_gone();
            *life = Life::Gone;
        }
    }
}

/// Takes everything in that the lane reports, and holds it against what happened.
fn take_events(words: &Probe<'_>, lane: &mut Lane<u8, u8>, history: &mut History, child: &Offspring) {
    let mut text = LongText::new();
    while let Some(event) = lane.poll(words, NOW, &mut text) {
        match event {
            Event::Staged { .. } => {}
            Event::Accepted { key } => {
                assert!(!history.ended.contains(&key), "L-18: accepted after it ended");
                assert!(!history.accepted.contains(&key), "L-18: accepted twice");
                history.accepted.push(key);
            }
            Event::Completed { key, outcome } => {
                assert!(!history.ended.contains(&key), "L-2: dispatch {key} ended twice");
                let dispatch = u64::from(key);
                match outcome {
                    Outcome::Success => {
                        assert!(child.rig_now.finished.contains(&dispatch), "success of what did not run")
                    }
                    Outcome::TaskFailure { .. } | Outcome::Skipped if child.life == Life::Serving => {
                        assert!(!child.rig_now.holds(dispatch), "L-27: ended while the device has it");
                    }
                    Outcome::TaskFailure { .. } | Outcome::Skipped => {}
                    Outcome::EndpointFailure { .. } => {
                        assert_eq!(child.life, Life::Gone, "L-27: given back before the subtree was gone");
                    }
                }
                history.ended.push(key);
            }
            Event::Control { .. } => {
                assert!(!history.control_ended, "a control ends twice");
                history.control_ended = true;
            }
            Event::Poisoned { reason } => {
                assert!(child.life != Life::Serving, "a living child was poisoned: {reason}");
            }
        }
    }
}
