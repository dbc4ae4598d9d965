//! What starts, what ends, and that nothing that could start is left.

use laneway_core::engine::{Action, Outcome, Report, Ticket};

use super::engine_support::worker;
use super::program::{NEXT, SUBS};
use super::reference::{Place, State};
use super::sim::{Held, Sim};

impl Sim {
    fn name(&self, ticket: Ticket) -> (usize, bool) {
        let payload = self.engine.payload(ticket).expect("running");
        let task = u64::from_le_bytes(payload.digest.0[..8].try_into().expect("8 bytes")) as usize;
        assert_eq!(payload.run, self.model.tasks[task].run);
        (task, payload.digest.0[8] == 1)
    }

    pub(crate) fn pump(&mut self) {
        let mut signalled = self.engine.take_signals().work;
        while let Some(action) = self.engine.next_action() {
            assert!(signalled, "{action:?} without a signal before it (E-35)");
            signalled = true;
            match action {
                Action::Dispatch { ticket, endpoint, prepare_only } => {
                    self.dispatched(ticket, endpoint.0, prepare_only);
                }
                Action::Activate { run, endpoint, ticket } => {
                    assert_eq!(self.runs[self.fifo()[0]].id, run);
                    let held = self.held.iter_mut().find(|held| held.ticket == ticket).expect("staged before");
                    assert!(held.staged && !held.withdrawn && held.endpoint == endpoint.0);
                    held.staged = false;
                }
                Action::Withdraw { endpoint, ticket } => {
                    let held = self.held.iter_mut().find(|held| held.ticket == ticket).expect("staged before");
                    assert!(held.staged && held.endpoint == endpoint.0);
                    held.withdrawn = true;
                    let run = self.model.tasks[held.task].run;
                    assert!(self.runs[self.index_of(run)].aborted);
                }
            }
        }
        self.settle();
        self.nothing_placeable_is_left();
    }

    fn dispatched(&mut self, ticket: Ticket, endpoint: u16, staged: bool) {
        let (task, diagnostic) = self.name(ticket);
        let run = self.index_of(self.model.tasks[task].run);
        let fifo = self.fifo();
        assert!(!self.dead.contains(&endpoint));
        assert!(!self.held.iter().any(|held| held.endpoint == endpoint && held.staged == staged), "the lane is free");
        if let Some(earlier) = self.model.overtaken(task) {
            panic!("task {task} starts before task {earlier} has ended");
        }
        if self.model.tasks[task].state == State::Unstarted {
            assert!(self.model.is_ready(task), "task {task} starts before its producers have ended");
            self.model.tasks[task].state = State::Running;
            let members = match &self.model.tasks[task].place {
                Place::Next(targets) => targets.len(),
                Place::Sub(count) => *count,
                Place::Slab => panic!("an allocation is never dispatched"),
            };
            self.left.insert(task, (members, None));
        }
        assert_eq!(self.model.tasks[task].state, State::Running);
        match &self.model.tasks[task].place {
            Place::Next(targets) => assert_eq!(targets[ticket.member().index()], endpoint),
            Place::Sub(_) => assert!(endpoint >= NEXT),
            Place::Slab => {}
        }
        if staged {
            assert_eq!(fifo.get(1), Some(&run), "E-33: only the second run");
            assert!(self.runs[run].closed && !self.runs[run].aborted && !diagnostic && endpoint != 1);
            let others =
                self.held.iter().any(|held| held.staged && self.model.tasks[held.task].run == self.runs[run].id);
            assert!(!others, "E-33: one per run");
        } else {
            assert_eq!(fifo.first(), Some(&run), "E-3: only the head");
        }
        self.held.push(Held { ticket, task, endpoint, staged, withdrawn: false });
    }

    /// E-35: whatever could start has started.
    fn nothing_placeable_is_left(&self) {
        let Some(&head) = self.fifo().first() else { return };
        let idle = |endpoint: u16| {
            !self.dead.contains(&endpoint) && !self.held.iter().any(|held| held.endpoint == endpoint && !held.staged)
        };
        let blocked = self.engine.blocked_group();
        let reserved = |endpoint: u16| {
            blocked.is_some_and(|group| group.members().any(|member| member.worker == worker(endpoint.into())))
        };
        if let Some(group) = blocked {
            assert!(group.members().any(|member| member.busy), "a group with idle targets is launched");
        }
        let ready: Vec<usize> = (0..self.model.tasks.len())
            .filter(|task| {
                self.model.tasks[*task].run == self.runs[head].id
                    && self.model.tasks[*task].state == State::Unstarted
                    && self.model.is_ready(*task)
            })
            .collect();
        let idle_subs = (NEXT..NEXT + SUBS).filter(|endpoint| idle(*endpoint)).count();
        let mut largest = 0;
        for task in ready {
            match &self.model.tasks[task].place {
                Place::Next(targets) if targets.len() == 1 => {
                    let free = idle(targets[0]) && !reserved(targets[0]);
                    assert!(!free, "task {task} is ready, and worker {} is idle", targets[0]);
                }
                Place::Next(_) => assert!(blocked.is_some(), "group {task} is ready and none is blocked"),
                Place::Sub(count) => largest = largest.max(*count),
                Place::Slab => {}
            }
        }
        assert!(largest == 0 || idle_subs < largest, "SUB work is ready and {idle_subs} SUB workers are idle");
    }

    pub(crate) fn end(&mut self, which: usize, failure: bool) {
        if self.held.is_empty() {
            return;
        }
        let held = self.held.swap_remove(which % self.held.len());
        let task = held.task;
        let run = self.index_of(self.model.tasks[task].run);
        let outcome = if self.dead.contains(&held.endpoint) {
            Outcome::EndpointFailure("endpoint gone")
        } else if held.withdrawn {
            Outcome::Skipped
        } else if failure || held.staged {
            // A staged task cannot succeed before it is activated.
            Outcome::TaskFailure("task failed")
        } else {
            Outcome::Success
        };
        assert_eq!(self.engine.completed(held.ticket, outcome), Report::Counted);
        self.last = Some(held.ticket);
        let (left, error) = self.left.get_mut(&task).expect("running");
        if outcome != Outcome::Success {
            error.get_or_insert_with(|| "failed".to_owned());
        }
        *left -= 1;
        if *left == 0 {
            let (_, error) = self.left.remove(&task).expect("running");
            self.runs[run].failed |= error.is_some();
            self.model.end(task, error.as_deref());
        }
    }
}
