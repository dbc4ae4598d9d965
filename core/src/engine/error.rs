//! What the engine refuses, and what it asks its caller to wait for.

use alloc::string::String;
use core::fmt;

use crate::ids::{EndpointIndex, RunId, SubId, WorkerId};
use crate::model::ModelError;
use crate::wire::WireError;

use super::RunPhase;

/// A pool of the engine that can be full.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Resource {
    /// The heap ring with this index, in bytes.
    Ring(usize),
    /// Slab records of the heap ring with this index.
    Slabs(usize),
    /// Live tasks.
    TaskWindow,
    /// Edges and lifetime references.
    Edges,
    /// Written argument ranges.
    MapEntries,
    /// Members of live groups.
    GroupMembers,
    /// Bytes of encoded arguments.
    Arguments,
    /// Different call configs.
    Configs,
}

impl Resource {
    /// The configuration field that enlarges it.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Ring(_) => "heap_ring_bytes (rings[i].bytes of the engine)",
            Self::Slabs(_) => "slabs",
            Self::TaskWindow => "task_window",
            Self::Edges => "edges",
            Self::MapEntries => "map_entries",
            Self::GroupMembers => "group_members",
            Self::Arguments => "args_bytes",
            Self::Configs => "configs",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring(index) => write!(f, "heap ring {index} (bytes)"),
            Self::Slabs(index) => write!(f, "slab records of heap ring {index}"),
            Self::TaskWindow => f.write_str("task window"),
            Self::Edges => f.write_str("edge pool"),
            Self::MapEntries => f.write_str("dependency map entries"),
            Self::GroupMembers => f.write_str("group member table"),
            Self::Arguments => f.write_str("argument arena (bytes)"),
            Self::Configs => f.write_str("call config table"),
        }
    }
}

/// A tensor argument of a submission: the member of a group (0 otherwise) and the position in its list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Argument {
    /// Which argument list.
    pub member: usize,
    /// Which tensor of that list.
    pub tensor: usize,
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tensor argument {} of member {}", self.tensor, self.member)
    }
}

/// Why the engine did not do what it was asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A capacity is out of range.
    #[error("engine setting {setting} = {value} is outside {least}..={most}")]
    Setting {
        /// The field of [`Config`](super::Config).
        setting: &'static str,
        /// Its value.
        value: u64,
        /// The smallest legal one.
        least: u64,
        /// The largest legal one.
        most: u64,
    },
    /// A heap ring is misaligned, wraps around the address space or overlaps another.
    #[error(
        "heap ring {ring} at {base:#x}, {bytes} bytes: not aligned to 1,024, past the address space, or over another ring"
    )]
    RingPlace {
        /// Which ring.
        ring: usize,
        /// Its address.
        base: u64,
        /// Its size.
        bytes: u64,
    },
    /// The admission depth is not 1 or 2.
    #[error("admission depth {depth} is outside 1..=2")]
    AdmissionDepth {
        /// What was asked for.
        depth: usize,
    },
    /// Two workers share an id or an endpoint (E-39).
    #[error("workers {first} and {second} of the list share an id or an endpoint")]
    DuplicateWorker {
        /// Position of the first owner.
        first: usize,
        /// Position of the second owner.
        second: usize,
    },
    /// More workers than an engine can drive.
    #[error("{workers} workers, at most {limit}")]
    TooManyWorkers {
        /// How many were given.
        workers: usize,
        /// The limit.
        limit: usize,
    },
    /// Every lease is out; try again when [`Signals::lease_free`](super::Signals) says so (E-1).
    #[error("no pipeline slot is free: {depth} runs are open, the oldest is run {oldest}")]
    NoLease {
        /// The run whose end frees a lease.
        oldest: RunId,
        /// The admission depth.
        depth: usize,
    },
    /// No lease can ever be free again: stuck children hold them all (L-35).
    #[error("no pipeline slot can ever be free again: every one is held by a run with a stuck child")]
    Stuck,
    /// Another run is being built (E-1).
    #[error("run {run} is still being built; one run is built at a time")]
    BuildingAlready {
        /// The run that is being built.
        run: RunId,
    },
    /// Every run record is held (E-9).
    #[error(
        "all {limit} run records are held by open runs or by handles of finished ones; drop handles or enlarge runs"
    )]
    RunRecords {
        /// How many there are.
        limit: u32,
    },
    /// The pool of leases or the number space of runs is at its end.
    #[error("run ids or lease generations are used up")]
    NumbersExhausted,
    /// The run is unknown: never begun, or released.
    #[error("run {run} is unknown: never begun, or its last handle was dropped")]
    UnknownRun {
        /// The id that was given.
        run: RunId,
    },
    /// The run is not being built.
    #[error("run {run} is not being built (it is {phase:?})")]
    NotBuilding {
        /// The run.
        run: RunId,
        /// Where it stands.
        phase: RunPhase,
    },
    /// The run's submission failed or the run was cancelled; nothing more goes into it (E-7).
    #[error("run {run} takes no more work: {reason}")]
    RunAborted {
        /// The run.
        run: RunId,
        /// Its first error.
        reason: String,
    },
    /// The engine was stopped (E-36).
    #[error("worker closed")]
    Stopped,
    /// A pool is full. Drive progress and try again when a signal says that something was released (E-13).
    #[error(
        "{resource} is full: {needed} needed of {size}{}; enlarge {}",
        if *may_free { "" } else { ", and no task is left whose end would make room: end a scope" }, .resource.setting()
    )]
    Blocked {
        /// Which pool.
        resource: Resource,
        /// How much was asked for.
        needed: u64,
        /// How much there is in all.
        size: u64,
        /// `false` when no unfinished task is left whose end could release anything: waiting is then pointless until
        /// a scope ends.
        may_free: bool,
    },
    /// A request that could not succeed on an empty pool either (E-25).
    #[error("{needed} needed, but {resource} holds {size} in all; enlarge {}", .resource.setting())]
    TooLarge {
        /// Which pool.
        resource: Resource,
        /// How much was asked for.
        needed: u64,
        /// How much there is in all.
        size: u64,
    },
    /// One scope too many (E-28).
    #[error("scopes nest at most {limit} deep, the automatic outer one included")]
    ScopeTooDeep {
        /// The limit.
        limit: usize,
    },
    /// A scope end without a begin (E-28).
    #[error("scope end without a scope begin")]
    ScopeUnderflow,
    /// Zero bytes (E-27).
    #[error("an allocation of zero bytes")]
    EmptyAllocation,
    /// A submission without an argument list.
    #[error("a task needs at least one argument list")]
    NoMembers,
    /// Targets and argument lists do not match one to one.
    #[error("{targets} target workers for {members} argument lists")]
    MemberCount {
        /// Worker ids given.
        targets: usize,
        /// Argument lists given.
        members: usize,
    },
    /// No NEXT_LEVEL worker has this id.
    #[error("no NEXT_LEVEL worker has id {worker}: name one that was added, by the id that adding it returned")]
    UnknownWorker {
        /// The id.
        worker: WorkerId,
    },
    /// Two members of a group name the same worker.
    #[error("group members {first} and {second} both name worker {worker}")]
    DuplicateTarget {
        /// The id.
        worker: WorkerId,
        /// First member.
        first: usize,
        /// Second member.
        second: usize,
    },
    /// A SUB group larger than the pool.
    #[error("a SUB group of {members}, but this worker has {pool} SUB child{}: each member needs its own", if *pool == 1 { "" } else { "ren" })]
    SubGroupTooLarge {
        /// Members.
        members: usize,
        /// SUB workers of this worker, dead ones included.
        pool: usize,
    },
    /// The target is dead (E-7, E-41).
    #[error("worker {worker} is dead: {reason}")]
    TargetDead {
        /// The worker.
        worker: WorkerId,
        /// Why it died.
        reason: String,
    },
    /// Too few live SUB workers are left (E-41).
    #[error("{needed} SUB child{} needed, {live} live; sub {last} died last: {reason}", if *needed == 1 { " is" } else { "ren are" })]
    SubDead {
        /// How many the task needs.
        needed: usize,
        /// How many live.
        live: usize,
        /// The SUB worker that died last.
        last: SubId,
        /// Why it died.
        reason: String,
    },
    /// The argument builder refused something earlier.
    #[error("argument list of member {member}: {error}")]
    Arguments {
        /// Which list.
        member: usize,
        /// The builder's first error.
        error: ModelError,
    },
    /// A value of the submission is malformed.
    #[error("{what}: {error}")]
    Invalid {
        /// Which value.
        what: &'static str,
        /// What is wrong with it.
        error: WireError,
    },
    /// A host tensor outside everything that children share (E-38).
    #[error(
        "{argument}: {bytes} bytes at {address:#x} are not shared with the children; use a tensor or an alloc of this \
         worker, or register the mapping with share_range before init"
    )]
    NotShared {
        /// Which argument.
        argument: Argument,
        /// First byte.
        address: u64,
        /// Length.
        bytes: u64,
    },
    /// A tensor in a heap ring whose slab is gone or belongs to another run (E-27).
    #[error(
        "{argument}: {address:#x} lies in heap ring {ring} but in no live slab of run {run}: its scope or its run has ended"
    )]
    DeadSlab {
        /// Which argument.
        argument: Argument,
        /// First byte.
        address: u64,
        /// Which ring.
        ring: usize,
        /// The run that submits.
        run: RunId,
    },
    /// A write to a range that is only readable in a child (E-38).
    #[error("{argument}: {address:#x} lies in a snapshot range, which can only be INPUT")]
    SnapshotWrite {
        /// Which argument.
        argument: Argument,
        /// First byte.
        address: u64,
    },
    /// A device tensor on a SUB task.
    #[error("{argument} is device memory, which a SUB child cannot reach")]
    DeviceOnSub {
        /// Which argument.
        argument: Argument,
    },
    /// Two arguments of one task name overlapping bytes and one of them is written.
    #[error(
        "{first} and tensor argument {second} overlap and at least one of them is written: name the bytes once, as inout if the \
         task reads and writes them"
    )]
    Aliased {
        /// The first of the two.
        first: Argument,
        /// Position of the second one in the same list.
        second: usize,
    },
    /// An output without an address that names no bytes.
    #[error("{argument}: an output to be allocated has zero bytes")]
    EmptyOutput {
        /// Which argument.
        argument: Argument,
    },
    /// A tensor without an address that is not a plain output.
    #[error("{argument} has no address; only an OUTPUT is allocated by the submit")]
    NoAddress {
        /// Which argument.
        argument: Argument,
    },
    /// A registered range is empty, wraps around, overlaps a ring or another range, or there are too many.
    #[error("range at {base:#x}, {bytes} bytes: {reason}")]
    Range {
        /// First byte.
        base: u64,
        /// Length.
        bytes: u64,
        /// What is wrong.
        reason: &'static str,
    },
    /// A registered range that tasks still use.
    #[error("range at {base:#x}, {bytes} bytes, is named by a task that has not ended")]
    RangeInUse {
        /// First byte.
        base: u64,
        /// Length.
        bytes: u64,
    },
    /// No endpoint has this index.
    #[error("no worker is reached by endpoint {endpoint}")]
    UnknownEndpoint {
        /// The index.
        endpoint: EndpointIndex,
    },
}

impl EngineError {
    /// Whether the same call can succeed later without any change by the caller.
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        matches!(self, Self::Blocked { .. } | Self::NoLease { .. })
    }
}
