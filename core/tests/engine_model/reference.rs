//! The engine as one would first write it: lists, and everything looked at every time. Nothing here is fast; each
//! rule stands as the book says it.

use laneway_core::engine::{Dependence, Memory};
use laneway_core::ids::RunId;
use laneway_core::model::Footprint;
use laneway_core::wire::{ChipTensor, TensorTag};

/// Where a task goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Next(Vec<u16>),
    Sub(usize),
    /// An allocation.
    Slab,
}

/// One tensor argument of one member.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub tensor: ChipTensor,
    pub tag: TensorTag,
    pub memory: Memory,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Unstarted,
    Running,
    Completed,
    Failed,
}

/// How a task refers to an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Reference {
    to: usize,
    /// Waits for it.
    waits: bool,
    /// Reads what it wrote.
    reads: bool,
    /// Only comes after it.
    ordered: bool,
    /// Names bytes of its slab.
    lifetime: bool,
}

impl Reference {
    /// What it is above all.
    fn dependence(&self) -> Dependence {
        match (self.reads, self.ordered) {
            (true, _) => Dependence::Data,
            (false, true) => Dependence::Order,
            (false, false) => Dependence::Lifetime,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub run: RunId,
    pub place: Place,
    pub arguments: Vec<Argument>,
    pub state: State,
    pub error: Option<String>,
    references: Vec<Reference>,
    /// Its scope has not ended.
    in_scope: bool,
    /// Failed with its whole run: waits for nothing any more.
    cut_off: bool,
    settled: bool,
    /// Addresses of its slab.
    pub slab: Option<(u64, u64)>,
    pub consumed: bool,
}

/// What a task wrote, until something takes its place.
#[derive(Clone, Debug)]
struct Entry {
    task: usize,
    memory: Memory,
    shape: Footprint,
    overwritten: bool,
    reader: bool,
}

/// The reference.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub tasks: Vec<Task>,
    entries: Vec<Entry>,
    strict_war: bool,
}

/// The rows that a tensor touches, as address ranges.
pub(crate) fn rows(tensor: &ChipTensor) -> Vec<(u64, u64)> {
    let element = u64::from(tensor.dtype().element_bytes());
    let mut starts = vec![tensor.byte_range().start];
    for (size, stride) in tensor.shape().iter().zip(tensor.strides()) {
        starts = starts
            .iter()
            .flat_map(|at| (0..u64::from(*size)).map(move |index| at + index * u64::from(*stride) * element))
            .collect();
    }
    starts.sort_unstable();
    let mut rows: Vec<(u64, u64)> = Vec::new();
    for start in starts {
        match rows.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(start + element),
            _ => rows.push((start, start + element)),
        }
    }
    rows
}

/// Whether two tensors share a byte, exactly.
pub(crate) fn share_a_byte(a: &ChipTensor, b: &ChipTensor) -> bool {
    let (a, b) = (rows(a), rows(b));
    a.iter().any(|(start, end)| b.iter().any(|(other, other_end)| start < other_end && other < end))
}

pub(crate) const fn writes(tag: TensorTag) -> bool {
    matches!(tag, TensorTag::Output | TensorTag::InOut | TensorTag::OutputExisting)
}

const fn reads(tag: TensorTag) -> bool {
    matches!(tag, TensorTag::Input | TensorTag::InOut)
}

impl Model {
    pub(crate) fn new(strict_war: bool) -> Self {
        Self { tasks: Vec::new(), entries: Vec::new(), strict_war }
    }

    /// Ended, and nothing that it waited for is still on its way.
    fn is_settled(&self, task: usize) -> bool {
        self.tasks[task].settled
    }

    /// Says of every task whether it is settled; one that is remains so.
    fn settle(&mut self) {
        // Producers come before their consumers, so one pass in order is enough.
        for index in 0..self.tasks.len() {
            let record = &self.tasks[index];
            let settled = match record.state {
                State::Completed => true,
                State::Failed => {
                    record.cut_off
                        || record.references.iter().all(|reference| !reference.waits || self.is_settled(reference.to))
                }
                State::Unstarted | State::Running => false,
            };
            self.tasks[index].settled = settled;
        }
    }

    /// Adds a task; it is poisoned if it reads what a failed task was to write. [`follow`](Self::follow) must come next.
    pub(crate) fn submit(
        &mut self,
        run: RunId,
        place: Place,
        arguments: Vec<Argument>,
        slab: Option<(u64, u64)>,
    ) -> usize {
        let index = self.tasks.len();
        let mut references: Vec<Reference> = Vec::new();
        let mut refer = |to: usize, waits: bool, dependence: Dependence| {
            let position = references.iter().position(|reference| reference.to == to).unwrap_or_else(|| {
                references.push(Reference { to, waits: false, reads: false, ordered: false, lifetime: false });
                references.len() - 1
            });
            let reference = &mut references[position];
            reference.waits |= waits;
            match dependence {
                Dependence::Data => reference.reads = true,
                Dependence::Order => reference.ordered = true,
                Dependence::Lifetime => reference.lifetime = true,
            }
        };
        for argument in &arguments {
            let range = argument.tensor.byte_range();
            for (owner, task) in self.tasks.iter().enumerate() {
                let inside = task.slab.is_some_and(|(start, end)| start <= range.start && range.end <= end);
                if !task.consumed && inside && argument.memory == Memory::Host {
                    refer(owner, false, Dependence::Lifetime);
                }
            }
            let shape = Footprint::of(&argument.tensor);
            for entry in &self.entries {
                if self.tasks[entry.task].run != run || entry.memory != argument.memory || !entry.shape.overlaps(&shape)
                {
                    continue;
                }
                let waits = !self.is_settled(entry.task);
                if reads(argument.tag) && !entry.reader {
                    refer(entry.task, waits, if entry.overwritten { Dependence::Order } else { Dependence::Data });
                } else if self.strict_war && writes(argument.tag) {
                    refer(entry.task, waits, Dependence::Order);
                }
            }
        }
        let failed = references
            .iter()
            .find(|reference| reference.reads && self.tasks[reference.to].state == State::Failed)
            .map(|reference| self.tasks[reference.to].error.clone().expect("failed"));
        let state = match (&place, &failed) {
            (Place::Slab, _) => State::Completed,
            (_, Some(_)) => State::Failed,
            (_, None) => State::Unstarted,
        };
        self.tasks.push(Task {
            run,
            place,
            arguments: arguments.clone(),
            state,
            error: failed,
            references,
            in_scope: true,
            cut_off: false,
            settled: false,
            slab,
            consumed: false,
        });
        let mut added = Vec::new();
        for argument in &arguments {
            let shape = Footprint::of(&argument.tensor);
            if self.strict_war && argument.tag == TensorTag::Input {
                added.push(Entry { task: index, memory: argument.memory, shape, overwritten: false, reader: true });
            }
            if !writes(argument.tag) {
                continue;
            }
            let mut kept = Vec::new();
            for mut entry in std::mem::take(&mut self.entries) {
                let same = self.tasks[entry.task].run == run && entry.memory == argument.memory;
                if same && entry.shape.overlaps(&shape) && shape.covers(&entry.shape) {
                    // An update has waited for it, so it stands for it; a pure overwrite only if it has ended.
                    if argument.tag == TensorTag::InOut || self.strict_war || self.is_settled(entry.task) {
                        continue;
                    }
                    entry.overwritten |= self.tasks[entry.task].state == State::Failed;
                }
                kept.push(entry);
            }
            self.entries = kept;
            added.push(Entry { task: index, memory: argument.memory, shape, overwritten: false, reader: false });
        }
        self.entries.append(&mut added);
        index
    }

    /// Compares the edges of the task that was added last, and whether it is poisoned, with what the engine says, and has from
    /// here on those that the engine has. The engine may know better than this reference that two views share no byte, or that
    /// one covers the other; with `exact`, where no view covers another in a way that only one of them sees, it has no edge more,
    /// and lacks none to a task with which there is a byte in common. Without, it has one more only to a task whose bytes lie among
    /// those of this one.
    pub(crate) fn follow(&mut self, edges: &[(usize, Dependence)], failed: bool, exact: bool) {
        let index = self.tasks.len() - 1;
        let mut references = std::mem::take(&mut self.tasks[index].references);
        for (to, dependence) in edges {
            if !references.iter().any(|reference| reference.to == *to) {
                assert!(
                    !exact && self.lie_together(*to, index),
                    "task {index} has an edge to {to}, and nothing in common"
                );
                references.push(self.adopt(index, *to, *dependence));
            }
            let reference = references.iter_mut().find(|reference| reference.to == *to).expect("just added");
            assert!(
                !exact || *dependence == reference.dependence(),
                "{dependence:?} of {index} on {to}: {reference:?}"
            );
            match dependence {
                Dependence::Data => assert!(reference.reads, "task {index} reads nothing of {to}"),
                Dependence::Order => {
                    assert!(reference.reads || reference.ordered, "task {index} has not to come after {to}");
                    (reference.reads, reference.ordered) = (false, true);
                }
                Dependence::Lifetime => {
                    assert!(reference.lifetime, "task {index} names nothing of the slab of {to}");
                    (reference.reads, reference.ordered, reference.waits) = (false, false, false);
                }
            }
        }
        let (listed, missing): (Vec<_>, Vec<_>) =
            references.into_iter().partition(|reference| edges.iter().any(|(to, _)| *to == reference.to));
        if failed {
            assert_eq!(
                self.tasks[index].state,
                State::Failed,
                "task {index} is poisoned and reads nothing that failed"
            );
        } else {
            let poisoned = |reference: &Reference| reference.reads && self.tasks[reference.to].state == State::Failed;
            assert!(!listed.iter().any(poisoned), "task {index} reads what failed and is not poisoned");
            // A task that failed at once has let go of those for which it has not to wait.
            for reference in missing.iter().filter(|_| exact) {
                assert!(!reference.lifetime && !self.meet(reference.to, index), "task {index} lacks {reference:?}");
            }
        }
        let task = &mut self.tasks[index];
        task.references = listed;
        if !failed && task.state == State::Failed {
            task.state = State::Unstarted;
            task.error = None;
        }
        self.consume();
    }

    /// A reference that only the engine saw.
    fn adopt(&mut self, index: usize, to: usize, dependence: Dependence) -> Reference {
        let reads = dependence == Dependence::Data;
        if reads && self.tasks[to].state == State::Failed && self.tasks[index].state != State::Failed {
            self.tasks[index].error = self.tasks[to].error.clone();
            self.tasks[index].state = State::Failed;
        }
        let waits = !self.is_settled(to);
        Reference { to, waits, reads, ordered: dependence == Dependence::Order, lifetime: false }
    }

    /// Whether two tasks of a run name ranges of the same memory that overlap, of which one is written.
    fn lie_together(&self, first: usize, second: usize) -> bool {
        let (first, second) = (&self.tasks[first], &self.tasks[second]);
        let overlap = |a: &Argument, b: &Argument| {
            let (one, other) = (a.tensor.byte_range(), b.tensor.byte_range());
            (writes(a.tag) || writes(b.tag)) && a.memory == b.memory && one.start < other.end && other.start < one.end
        };
        first.run == second.run && first.arguments.iter().any(|a| second.arguments.iter().any(|b| overlap(a, b)))
    }

    /// Whether two tasks name a byte, exactly, that the first of them writes or the second does.
    fn meet(&self, first: usize, second: usize) -> bool {
        let second = &self.tasks[second].arguments;
        self.tasks[first].arguments.iter().any(|a| {
            second
                .iter()
                .any(|b| (writes(a.tag) || writes(b.tag)) && a.memory == b.memory && share_a_byte(&a.tensor, &b.tensor))
        })
    }

    /// Whether nothing that a task waits for is still on its way.
    pub(crate) fn is_ready(&self, task: usize) -> bool {
        self.tasks[task].references.iter().all(|reference| !reference.waits || self.is_settled(reference.to))
    }

    /// Earlier tasks that share, to the byte, what `task` reads with what they write, and have not ended. With
    /// `strict_war` also those that share what `task` writes.
    pub(crate) fn overtaken(&self, task: usize) -> Option<usize> {
        let late = &self.tasks[task];
        (0..task).find(|earlier| {
            let early = &self.tasks[*earlier];
            let unended = matches!(early.state, State::Unstarted | State::Running);
            unended
                && early.run == late.run
                && early.arguments.iter().any(|a| {
                    late.arguments.iter().any(|b| {
                        let data = writes(a.tag) && reads(b.tag);
                        let order = self.strict_war && writes(b.tag) && a.tag != TensorTag::NoDep;
                        (data || order) && a.memory == b.memory && share_a_byte(&a.tensor, &b.tensor)
                    })
                })
        })
    }

    /// A task ended; what reads from a failed one fails with it.
    pub(crate) fn end(&mut self, task: usize, error: Option<&str>) {
        self.tasks[task].state = if error.is_some() { State::Failed } else { State::Completed };
        self.tasks[task].error = error.map(str::to_owned);
        self.spread();
        self.consume();
    }

    /// Unstarted tasks that `lost` names fail with `error`; with `cut_off` they wait for nothing any more.
    pub(crate) fn fail_unstarted(&mut self, error: &str, cut_off: bool, lost: impl Fn(&Task) -> bool) {
        for task in &mut self.tasks {
            if task.state == State::Unstarted && lost(task) {
                task.state = State::Failed;
                task.error = Some(error.to_owned());
                task.cut_off = cut_off;
            }
        }
        self.spread();
        self.consume();
    }

    fn spread(&mut self) {
        // Producers come before their consumers, so one pass in order is enough.
        for index in 0..self.tasks.len() {
            if self.tasks[index].state != State::Unstarted {
                continue;
            }
            let failed = self.tasks[index]
                .references
                .iter()
                .find(|reference| reference.reads && self.tasks[reference.to].state == State::Failed);
            if let Some(reference) = failed {
                self.tasks[index].error = self.tasks[reference.to].error.clone();
                self.tasks[index].state = State::Failed;
            }
        }
    }

    /// Ends a scope. If it is an inner one, failed tasks stay; they are returned, for the outer scope.
    pub(crate) fn end_scope(&mut self, tasks: &[usize], inner: bool) -> Vec<usize> {
        let stays = |task: &usize| inner && self.tasks[*task].state == State::Failed;
        let (kept, gone): (Vec<_>, Vec<_>) = tasks.iter().copied().partition(stays);
        for task in gone {
            self.tasks[task].in_scope = false;
        }
        self.consume();
        kept
    }

    /// What a full pool lets the open scopes of a run do: let go of tasks that completed and own no slab.
    pub(crate) fn let_go_of_completed(&mut self, run: RunId) {
        for task in &mut self.tasks {
            if task.run == run && task.state == State::Completed && task.slab.is_none() {
                task.in_scope = false;
            }
        }
        self.consume();
    }

    /// Consumes what has ended and is not held by its scope, by a consumer that has not ended, or by a task that names
    /// its slab and is not consumed.
    fn consume(&mut self) {
        self.settle();
        loop {
            let held = |index: usize| {
                self.tasks.iter().enumerate().any(|(user, task)| {
                    !task.consumed
                        && task
                            .references
                            .iter()
                            .any(|reference| reference.to == index && (reference.lifetime || !(self.is_settled(user))))
                })
            };
            let next = (0..self.tasks.len()).find(|index| {
                let task = &self.tasks[*index];
                !task.consumed && !task.in_scope && self.is_settled(*index) && !held(*index)
            });
            let Some(index) = next else { return };
            self.tasks[index].consumed = true;
            self.entries.retain(|entry| entry.task != index);
        }
    }

    /// Tasks of a run that are not consumed.
    pub(crate) fn alive(&self, run: RunId) -> usize {
        self.tasks.iter().filter(|task| task.run == run && !task.consumed).count()
    }
}
