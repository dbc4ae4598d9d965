//! The engine as one would first write it: lists, and everything looked at every time. Nothing here is fast; each
//! rule stands as the book says it.
#![allow(unreachable_pub, reason = "shared by test binaries")]

use laneway_core::engine::Memory;
use laneway_core::ids::RunId;
use laneway_core::model::Footprint;
use laneway_core::wire::{ChipTensor, TensorTag};

/// Where a task goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    Next(Vec<u16>),
    Sub(usize),
    /// An allocation.
    Slab,
}

/// One tensor argument of one member.
#[derive(Clone, Debug)]
pub struct Argument {
    pub tensor: ChipTensor,
    pub tag: TensorTag,
    pub memory: Memory,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
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
    /// Names bytes of its slab.
    lifetime: bool,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub run: RunId,
    pub place: Place,
    pub arguments: Vec<Argument>,
    pub state: State,
    pub error: Option<String>,
    references: Vec<Reference>,
    /// Its scope has not ended.
    in_scope: bool,
    /// Failed because it reads what a failed task was to write.
    poisoned: bool,
    /// Failed with its whole run: waits for nothing any more.
    cut_off: bool,
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
pub struct Model {
    pub tasks: Vec<Task>,
    entries: Vec<Entry>,
    strict_war: bool,
}

/// The rows that a tensor touches, as address ranges.
pub fn rows(tensor: &ChipTensor) -> Vec<(u64, u64)> {
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
pub fn share_a_byte(a: &ChipTensor, b: &ChipTensor) -> bool {
    let (a, b) = (rows(a), rows(b));
    a.iter().any(|(start, end)| b.iter().any(|(other, other_end)| start < other_end && other < end))
}

pub const fn writes(tag: TensorTag) -> bool {
    matches!(tag, TensorTag::Output | TensorTag::InOut | TensorTag::OutputExisting)
}

const fn reads(tag: TensorTag) -> bool {
    matches!(tag, TensorTag::Input | TensorTag::InOut)
}

impl Model {
    pub fn new(strict_war: bool) -> Self {
        Self { tasks: Vec::new(), entries: Vec::new(), strict_war }
    }

    /// Ended, and nothing that it waited for is still on its way.
    fn is_settled(&self, task: usize) -> bool {
        let record = &self.tasks[task];
        match record.state {
            State::Completed => true,
            State::Failed => {
                record.cut_off
                    || record.references.iter().all(|reference| !reference.waits || self.is_settled(reference.to))
            }
            State::Unstarted | State::Running => false,
        }
    }

    /// Adds a task; it is poisoned if it reads what a failed task was to write.
    pub fn submit(&mut self, run: RunId, place: Place, arguments: Vec<Argument>, slab: Option<(u64, u64)>) -> usize {
        let index = self.tasks.len();
        let mut references: Vec<Reference> = Vec::new();
        let mut refer = |to: usize, waits: bool, reads: bool, lifetime: bool| match references
            .iter_mut()
            .find(|reference| reference.to == to)
        {
            Some(reference) => {
                reference.waits |= waits;
                reference.reads |= reads;
                reference.lifetime |= lifetime;
            }
            None => references.push(Reference { to, waits, reads, lifetime }),
        };
        for argument in &arguments {
            let range = argument.tensor.byte_range();
            for (owner, task) in self.tasks.iter().enumerate() {
                let inside = task.slab.is_some_and(|(start, end)| start <= range.start && range.end <= end);
                if !task.consumed && inside && argument.memory == Memory::Host {
                    refer(owner, false, false, true);
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
                    refer(entry.task, waits, !entry.overwritten, false);
                } else if self.strict_war && writes(argument.tag) {
                    refer(entry.task, waits, false, false);
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
            poisoned: failed.is_some(),
            error: failed,
            references,
            in_scope: true,
            cut_off: false,
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
        self.consume();
        index
    }

    /// Whether nothing that a task waits for is still on its way.
    pub fn is_ready(&self, task: usize) -> bool {
        self.tasks[task].references.iter().all(|reference| !reference.waits || self.is_settled(reference.to))
    }

    /// Whether a task comes behind one that was poisoned. Where an overlap cannot be decided exactly that one may still run
    /// ([`revive`](Self::revive)), and the task then waits for it.
    pub fn is_behind_poisoned(&self, task: usize) -> bool {
        let behind =
            |reference: &Reference| (reference.reads || !reference.lifetime) && self.tasks[reference.to].poisoned;
        self.tasks[task].references.iter().any(behind)
    }

    /// Earlier tasks that share, to the byte, what `task` reads with what they write, and have not ended. With
    /// `strict_war` also those that share what `task` writes.
    pub fn overtaken(&self, task: usize) -> Option<usize> {
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
    pub fn end(&mut self, task: usize, error: Option<&str>) {
        self.tasks[task].state = if error.is_some() { State::Failed } else { State::Completed };
        self.tasks[task].error = error.map(str::to_owned);
        self.spread();
        self.consume();
    }

    /// Unstarted tasks that `lost` names fail with `error`; with `cut_off` they wait for nothing any more.
    pub fn fail_unstarted(&mut self, error: &str, cut_off: bool, lost: impl Fn(&Task) -> bool) {
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
                self.tasks[index].poisoned = true;
            }
        }
    }

    /// A task that this reference poisoned because it may overlap with a failed one runs after all. What came behind it in
    /// the belief that it had ended may wait for it.
    pub fn revive(&mut self, task: usize) {
        let record = &mut self.tasks[task];
        if record.state != State::Failed || record.cut_off {
            return;
        }
        record.state = State::Unstarted;
        record.poisoned = false;
        let later = self.tasks.iter_mut().skip(task + 1).flat_map(|later| &mut later.references);
        for reference in later.filter(|reference| reference.to == task) {
            reference.waits |= reference.reads || !reference.lifetime;
        }
    }

    /// Ends a scope. If it is an inner one, failed tasks stay; they are returned, for the outer scope.
    pub fn end_scope(&mut self, tasks: &[usize], inner: bool) -> Vec<usize> {
        let stays = |task: &usize| inner && self.tasks[*task].state == State::Failed;
        let (kept, gone): (Vec<_>, Vec<_>) = tasks.iter().copied().partition(stays);
        for task in gone {
            self.tasks[task].in_scope = false;
        }
        self.consume();
        kept
    }

    /// What a full pool lets the open scopes of a run do: let go of tasks that completed and own no slab.
    pub fn let_go_of_completed(&mut self, run: RunId) {
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
    pub fn alive(&self, run: RunId) -> usize {
        self.tasks.iter().filter(|task| task.run == run && !task.consumed).count()
    }
}
