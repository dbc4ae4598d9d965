//! Submits and allocations: what is refused, what is taken in, and what a failure leaves.

use laneway_core::engine::{EngineError, Memory, Submission, Target, Ticket, Usage};
use laneway_core::ids::RunId;
use laneway_core::model::{TaskArgs, overlap};
use laneway_core::wire::{AddressSpace, CallConfig, ChipTensor, Digest, TensorTag};

use super::engine_support::{RING, RING_BYTES, worker};
use super::program::Family;
use super::reference::{Argument, Place, writes};
use super::sim::Sim;

impl Sim {
    /// A new slab may not touch one that is alive.
    fn check_slab(&self, start: u64, end: u64) {
        for (index, task) in self.model.tasks.iter().enumerate() {
            if let Some((other, other_end)) = task.slab
                && !task.consumed
            {
                assert!(end <= other || other_end <= start, "slab {start:#x}..{end:#x} over that of task {index}");
            }
        }
        let ring = (start - RING) / 0x10_0000;
        assert!(ring < 4 && end <= RING + ring * 0x10_0000 + RING_BYTES);
    }

    pub(crate) fn alloc(&mut self, bytes: u64) {
        let Some(run) = self.building else { return };
        let id = self.runs[run].id;
        let before = self.engine.usage();
        match self.engine.alloc(id, bytes) {
            Ok(start) => {
                self.follow_sweep(run, 1);
                assert!(!self.runs[run].aborted);
                let end = start + bytes.next_multiple_of(1024);
                self.check_slab(start, end);
                self.add(run, Place::Slab, Vec::new(), Some((start, end)));
            }
            Err(error) => {
                self.follow_sweep(run, 0);
                self.allowed(run, &error);
                self.left_nothing(&before, &error);
            }
        }
    }

    /// The engine met a full pool and let go of tasks that completed. `added` tasks are new in it.
    fn follow_sweep(&mut self, run: usize, added: usize) {
        if core::mem::replace(&mut self.sweeps, self.engine.sweeps()) != self.engine.sweeps() {
            self.model.let_go_of_completed(self.runs[run].id);
            self.compare_counts(added);
        }
    }

    pub(crate) fn compare_counts(&self, added: usize) {
        let alive = self.model.tasks.iter().filter(|task| !task.consumed).count();
        assert_eq!(self.engine.usage().tasks as usize, alive + added, "live tasks");
    }

    /// E-11: a call that failed leaves nothing. If it met a full pool first it may have let go of tasks that completed.
    fn left_nothing(&self, before: &Usage, error: &EngineError) {
        let after = self.engine.usage();
        let pools = |usage: &Usage| {
            let Usage { tasks, edges, map_entries, group_members, args_bytes, configs, slabs, .. } = *usage;
            [tasks, edges, map_entries, group_members, configs, slabs]
                .map(u64::from)
                .into_iter()
                .chain([args_bytes as u64])
        };
        assert!(
            pools(&after).zip(pools(before)).all(|(after, before)| after <= before),
            "{error}: {before:?}, {after:?}"
        );
        let kept = |usage: &Usage| (usage.unfinished, usage.runs, usage.error_texts);
        assert_eq!(kept(&after), kept(before), "{error}");
    }

    /// Whether an error is one that a correct submit may meet.
    fn allowed(&self, run: usize, error: &EngineError) {
        match error {
            EngineError::RunAborted { .. } => assert!(self.runs[run].aborted),
            EngineError::Blocked { .. } | EngineError::TooLarge { .. } => {}
            // The scope of the slab has ended, and a task that named it may be gone: the reference lets none go for a full pool
            // before the engine does.
            EngineError::DeadSlab { .. } => {}
            other => panic!("refused: {other}"),
        }
    }

    /// Whether a correct engine refuses the submission for its own sake.
    fn is_refused(&self, id: RunId, place: &Place, members: &[Vec<(ChipTensor, TensorTag)>]) -> bool {
        let unreachable = match place {
            Place::Next(targets) => targets.iter().any(|target| self.dead.contains(target)),
            Place::Sub(count) => *count > self.live_subs(),
            Place::Slab => false,
        };
        let device = matches!(place, Place::Sub(_))
            && members.iter().flatten().any(|(tensor, _)| tensor.address_space() == AddressSpace::Device);
        let homeless = members.iter().flatten().any(|(tensor, _)| {
            let range = tensor.byte_range();
            range.start >= RING
                && tensor.address_space() == AddressSpace::Host
                && !self.model.tasks.iter().any(|task| {
                    !task.consumed
                        && task.run == id
                        && task.slab.is_some_and(|(start, end)| start <= range.start && range.end <= end)
                })
        });
        let aliased = members.iter().any(|list| {
            list.iter().enumerate().any(|(index, (a, tag))| {
                list[..index].iter().any(|(b, other)| {
                    (writes(*tag) || writes(*other)) && a.addr() != 0 && b.addr() != 0 && overlap::overlaps(a, b)
                })
            })
        });
        unreachable || device || homeless || aliased
    }

    pub(crate) fn submit(&mut self, place: Place, diagnostic: bool, members: &[Vec<(ChipTensor, TensorTag)>]) {
        let Some(run) = self.building else { return };
        let id = self.runs[run].id;
        let refused = self.is_refused(id, &place, members);
        let lists: Vec<TaskArgs> = members
            .iter()
            .map(|list| {
                let mut args = TaskArgs::new();
                for (tensor, tag) in list {
                    args.push(*tensor, *tag);
                }
                args
            })
            .collect();
        let lists: Vec<&TaskArgs> = lists.iter().collect();
        let targets: Vec<_> = match &place {
            Place::Next(targets) => targets.iter().map(|target| worker((*target).into())).collect(),
            _ => Vec::new(),
        };
        let target = match &place {
            Place::Next(_) if targets.len() == 1 => Target::NextLevel(targets[0]),
            Place::Next(_) => Target::NextLevelGroup(&targets),
            Place::Sub(1) => Target::Sub,
            _ => Target::SubGroup,
        };
        let mut diagnostic_config = CallConfig { enable_pmu: 1, ..CallConfig::ZERO };
        diagnostic_config.set_output_prefix(b"/tmp/x").expect("short");
        let mut digest = Digest([0; 32]);
        digest.0[..8].copy_from_slice(&(self.model.tasks.len() as u64).to_le_bytes());
        digest.0[8] = diagnostic.into();
        let submission = Submission {
            target,
            digest: &digest,
            config: diagnostic.then_some(&diagnostic_config),
            members: &lists,
            deadline: None,
        };
        let before = self.engine.usage();
        let mut outputs = Vec::new();
        let submitted = self.engine.submit(id, &submission, &mut |output| outputs.push(output));
        if let Err(error) = &submitted {
            self.left_nothing(&before, error);
            assert!(outputs.is_empty());
            self.follow_sweep(run, 0);
            if !refused {
                self.allowed(run, error);
            }
            return;
        }
        self.follow_sweep(run, 1);
        assert!(!self.runs[run].aborted);
        assert!(!refused, "accepted what must be refused");
        let mut arguments = Vec::new();
        let mut outputs = outputs.into_iter();
        let mut slab: Option<(u64, u64)> = None;
        for (member, list) in members.iter().enumerate() {
            for (tensor, tag) in list {
                let tensor = if tensor.addr() == 0 {
                    let output = outputs.next().expect("one for each output without an address");
                    assert_eq!(output.member.index(), member);
                    assert!(output.address.is_multiple_of(1024));
                    let end = (output.address + tensor.buffer_bytes()).next_multiple_of(1024);
                    let expected = slab.map_or(output.address, |(_, end)| end);
                    assert_eq!(output.address, expected, "one block, carved in order");
                    slab = Some((slab.map_or(output.address, |(start, _)| start), end));
                    tensor.with_address(output.address).expect("inside the ring")
                } else {
                    *tensor
                };
                let memory = match (&place, tensor.address_space()) {
                    (Place::Next(targets), AddressSpace::Device) => Memory::Device(worker(targets[member].into())),
                    _ => Memory::Host,
                };
                arguments.push(Argument { tensor, tag: *tag, memory });
            }
        }
        assert_eq!(outputs.next(), None);
        if let Some((start, end)) = slab {
            self.check_slab(start, end);
        }
        self.add(run, place, arguments, slab);
        self.runs[run].used = true;
    }

    /// The engine has taken a task in, and so does the reference.
    fn add(&mut self, run: usize, place: Place, arguments: Vec<Argument>, slab: Option<(u64, u64)>) {
        let ticket = self.engine.newest().expect("just submitted");
        let task = self.model.submit(self.runs[run].id, place, arguments, slab);
        self.runs[run].scopes.last_mut().expect("open").push(task);
        self.tickets.push(ticket);
        let number = |ticket: Ticket| self.tickets.iter().position(|other| *other == ticket).expect("submitted before");
        let edges: Vec<_> = self.engine.producers(ticket).map(|(to, dependence)| (number(to), dependence)).collect();
        self.model.follow(&edges, self.engine.has_failed(ticket), self.family != Family::Wild);
    }
}
