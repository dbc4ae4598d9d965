//! The error of this crate.

mod callable;
mod child;
mod errno;
mod wording;

use std::fmt;
use std::time::Duration;

use laneway_core::chip::ChipError;
use laneway_core::driver::{ControlError, DriverError};
use laneway_core::engine::{EngineError, FailureKind};
use laneway_core::ids::RunId;
use laneway_core::lane::{ExitCause, Label};
use laneway_core::model::ModelError;
use laneway_core::wire::{Dtype, Namespace, TensorFault, WireError};

pub use callable::CallableError;
pub use child::{CpuOverlap, Leftover, Place, StartCause};
pub use errno::Errno;

use crate::callable::{CallableName, Role};
use wording::{Listed, code_of, way_out};

/// What can go wrong between this library and its user, its children and the operating system.
///
/// Its `Debug` form is the sentence of its `Display` form: it is what `main() -> Result<(), Error>` and `unwrap` print.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed for a reason that no other variant words better.
    #[error("{what}: {call} failed: {errno}{}{remedy}", if remedy.is_empty() { "" } else { "; " })]
    System {
        /// The call, as its manual page is named.
        call: &'static str,
        /// What was being done, for whom.
        what: String,
        /// The kernel's answer.
        errno: Errno,
        /// What to change; empty where nothing general can be said.
        remedy: &'static str,
    },
    /// Another process cannot be looked at.
    #[error("process {pid} cannot be looked at: {why}; it must run, and belong to this user unless root asks")]
    Observe {
        /// Its id.
        pid: i32,
        /// The kernel's answer.
        why: String,
    },
    /// The workers of another process are of a version that this one does not know.
    #[error(
        "process {pid} keeps its status in form {found}, and this build knows form {known}: look with the laneway that it was \
         built with"
    )]
    ObserveVersion {
        /// Its id.
        pid: i32,
        /// The form of its status boards.
        found: u64,
        /// The form that is known here.
        known: u64,
    },
    /// A region of shared memory is larger than a limit of this process allows.
    #[error("{what} needs {needed} bytes, but {setting} allows {limit} bytes: raise it or configure a smaller size")]
    MemoryLimit {
        /// The region.
        what: String,
        /// Its size in bytes.
        needed: u64,
        /// The limit that is in the way.
        setting: &'static str,
        /// Its value in bytes.
        limit: u64,
    },
    /// A range that does not lie inside its region.
    #[error("bytes {start}..{end} do not lie inside {what}, which has {len} bytes")]
    OutOfRegion {
        /// The region.
        what: String,
        /// First byte asked for.
        start: usize,
        /// One past the last byte asked for.
        end: usize,
        /// Size of the region in bytes.
        len: usize,
    },
    /// Not enough descriptors can be opened (P-32).
    #[error(
        "{needed} descriptors are needed, but {open} are open and RLIMIT_NOFILE is {limit}: raise the limit (ulimit -n) or \
         configure fewer children"
    )]
    Descriptors {
        /// How many this worker is going to open.
        needed: u64,
        /// How many this process has open.
        open: u64,
        /// The soft limit.
        limit: u64,
    },
    /// The kernel is too old (P-32).
    #[error("Linux {found} is too old: version {} or newer is needed", crate::sys::limits::OLDEST_KERNEL)]
    Kernel {
        /// The release that the running kernel names.
        found: String,
    },
    /// A fork of a process in which other threads may hold locks (P-2).
    #[error(
        "this process has {count} other thread{}: a fork would copy whatever locks they hold; initialise before starting \
         threads; or use allow_foreign_threads(true) if they are known to hold none that a child needs, or \
         child_mode(ChildMode::Thread), which does not fork", if *count == 1 { "" } else { "s" }
    )]
    ForeignThreads {
        /// Threads that are neither the caller nor this library's.
        count: usize,
    },
    /// A fork of a process that runs children of another worker as threads (P-2, P-27).
    #[error(
        "this process runs {count} child{} of workers as threads, and nobody knows what locks their code holds, so none can be \
         forked: start the workers that fork first, or give this one ChildMode::Thread too", if *count == 1 { "" } else { "ren" }
    )]
    ThreadChildren {
        /// Children that are threads here.
        count: usize,
    },
    /// A fork of a process that holds a device (P-2, C-17).
    #[error(
        "this process holds {count} device{}, whose connection a fork would copy into children that cannot use it: close it \
         first, or start the workers that fork before it is opened", if *count == 1 { "" } else { "s" }
    )]
    HoldsDevice {
        /// Level-2 workers that are open here.
        count: usize,
    },
    /// CPUs for a child that the worker does not have (P-21).
    #[error("CPUs were set for {label}, and this worker has no such child")]
    CpusOfNobody {
        /// Whom they were set for.
        label: Label,
    },
    /// Children that were given the same CPUs although each was to have its own (P-21).
    #[error(
        "{} and {} were both given CPUs {:?}: give each its own, or do not ask for exclusive_cpus", .overlap.one, .overlap.other,
        .overlap.cpus
    )]
    CpusShared {
        /// The first two that share some.
        overlap: CpuOverlap,
    },
    /// Memory of chips that was not freed before the worker closed; it is gone now (C-16).
    #[error("the worker is closed, and memory that was never freed went with its chips: {}", Listed(.chips))]
    DeviceMemoryLeft {
        /// Which chip, and how much.
        chips: Vec<(Label, Leftover)>,
    },
    /// CPUs that this process may not use (P-21).
    #[error("CPUs {asked:?} cannot be used: this process may run on {allowed:?}")]
    Cpus {
        /// What was asked for.
        asked: Vec<usize>,
        /// What the affinity mask allows.
        allowed: Vec<usize>,
    },
    /// A call that the worker's state does not allow (P-7).
    #[error("{call} is not possible while the worker is {state}{}", way_out(state))]
    WrongState {
        /// The call.
        call: &'static str,
        /// The state: NEW, INITIALIZING, READY, CLOSING, FAILED or CLOSED.
        state: &'static str,
    },
    /// A setting out of range.
    #[error("{setting} = {value} is out of range: {least} to {most} are legal")]
    Setting {
        /// The builder's method.
        setting: &'static str,
        /// What was asked for.
        value: u64,
        /// The least that is legal.
        least: u64,
        /// The most that is legal.
        most: u64,
    },
    /// Something that is kept only where the worker was told to.
    #[error("{what} is not recorded: build the worker with {setting}")]
    NotRecorded {
        /// What was asked for.
        what: &'static str,
        /// The builder's method that has it recorded.
        setting: &'static str,
    },
    /// A worker without anybody to run its tasks.
    #[error("the worker has no children: add at least one chip, or ask for SUB children with subs(n)")]
    NoChildren,
    /// A callable that can reach the children by a fork alone, after the fork.
    #[error(
        "{name} cannot be registered while the worker is {state}: the children exist already; register it before init"
    )]
    RegisteredTooLate {
        /// What was to be registered.
        name: String,
        /// The worker's state.
        state: &'static str,
    },
    /// A child did not become ready; nothing of the tree is left (P-5).
    #[error("level {level}, {label} ({kind}, {place}) did not become ready: {cause}")]
    ChildStart {
        /// The level of the worker whose child it is.
        level: u32,
        /// What kind of child it is.
        kind: &'static str,
        /// Which child.
        label: Label,
        /// Where it was started.
        place: Place,
        /// What it did instead.
        cause: StartCause,
    },
    /// `init` was cancelled by its canceller or a close; nothing of the tree is left.
    #[error("init was cancelled, by its canceller or by a close in another thread; nothing is left of it")]
    InitCancelled,
    /// A handle that was captured by what a child runs: the worker is its parent's.
    #[error("this worker belongs to the parent of this child: a child cannot use it")]
    Inherited,
    /// A call that would wait for itself.
    #[error(
        "{call} inside a callback or a subscriber of the same worker would wait for itself: call it after that has returned"
    )]
    InsideCallback {
        /// The call.
        call: &'static str,
    },
    /// No new runs while the worker closes.
    #[error("the worker is being closed and takes no new runs")]
    Closing,
    /// A run ended with an error.
    #[error("level {level}, run {run}: {message}")]
    RunFailed {
        /// The worker's level.
        level: u32,
        /// The run.
        run: RunId,
        /// What kind of failure came first.
        kind: FailureKind,
        /// The text of the child or endpoint that failed.
        message: String,
    },
    /// The callback that built a run returned an error that is not one of this crate.
    #[error("level {level}, run {run}: the callback failed: {message}")]
    Callback {
        /// The worker's level.
        level: u32,
        /// The run.
        run: RunId,
        /// The error's text.
        message: String,
    },
    /// The callback that built a run panicked.
    #[error("level {level}, run {run}: the callback panicked: {message}")]
    CallbackPanicked {
        /// The worker's level.
        level: u32,
        /// The run.
        run: RunId,
        /// The panic's text.
        message: String,
    },
    /// A wait with a time limit; the run goes on.
    #[error("run {run} has not ended after {after:?}; it goes on")]
    WaitTimedOut {
        /// The run.
        run: RunId,
        /// The limit.
        after: Duration,
    },
    /// `close` found runs that did not end; nothing was torn down.
    #[error(
        "runs are still open {after:?} after close was called; nothing was torn down: call close again, or close_now; at \
         work {}", if running.is_empty() { "is nobody: a callback has not returned" } else { running }
    )]
    CloseTimedOut {
        /// The drain budget.
        after: Duration,
        /// The children that have a task, and which.
        running: String,
    },
    /// Children that not even SIGKILL ended in time (P-12, P-25).
    #[error(
        "children could not be ended, and their memory is kept until they are gone (see the state in /proc/<pid>/status): {}",
        Listed(.children)
    )]
    Survivors {
        /// Who, and where.
        children: Vec<(Label, Place)>,
    },
    /// Children that did not leave in order while the worker closed (P-15).
    #[error("children did not leave in order: {}", Listed(.children))]
    AbnormalExits {
        /// Which child, and how it ended.
        children: Vec<(Label, ExitCause)>,
    },
    /// A callable could not be registered, unregistered or used.
    #[error(transparent)]
    Callable(#[from] CallableError),
    /// A callable for another kind of child.
    #[error("{callable} is {found}; what the target can run is {wanted}")]
    CallableRole {
        /// The callable.
        callable: CallableName,
        /// What it is.
        found: Role,
        /// What the target runs.
        wanted: Role,
    },
    /// A callable that the target's kind of child cannot resolve.
    #[error("{callable} is {}, but the target runs {}", code_of(*.found), code_of(*.wanted))]
    CallableNamespace {
        /// The callable.
        callable: CallableName,
        /// Where it is registered.
        found: Namespace,
        /// What the target resolves.
        wanted: Namespace,
    },
    /// The buffer region has no room for a tensor.
    #[error(
        "no room for {asked} bytes: the longest free span of the buffer region ({region} bytes) has {largest_free}; drop \
         tensors or enlarge buffer_bytes"
    )]
    BuffersFull {
        /// Bytes asked for.
        asked: u64,
        /// The longest span that is free.
        largest_free: u64,
        /// Size of the region.
        region: u64,
    },
    /// A shape that no tensor can have.
    #[error("shape {shape:?} is not legal: 1 to 5 dimensions, none of them 0, and a size that fits 64 bits")]
    Shape {
        /// The shape.
        shape: Vec<u32>,
    },
    /// Memory that an unfinished task names (P-19).
    #[error("bytes {start:#x}..{end:#x} are named by a task that has not ended: wait for its run first")]
    InUse {
        /// First byte.
        start: u64,
        /// One past the last byte.
        end: u64,
    },
    /// A view with the wrong element type.
    #[error("its elements are {found}, and {asked} was asked for")]
    ElementType {
        /// What was asked for.
        asked: Dtype,
        /// What the tensor holds.
        found: Dtype,
    },
    /// Device memory cannot be read by the host.
    #[error("the tensor at {address:#x} lies in device memory: copy it to the host first")]
    NotHostMemory {
        /// Its address.
        address: u64,
    },
    /// A tensor whose first element is not aligned for its type.
    #[error("the element at {address:#x} is not aligned to {align} bytes")]
    Misaligned {
        /// Its address.
        address: u64,
        /// What its type needs.
        align: usize,
    },
    /// An element past the end.
    #[error("there is no element {index}: the tensor has {len}")]
    ElementIndex {
        /// Asked for.
        index: usize,
        /// Elements there are.
        len: usize,
    },
    /// A copy between different numbers of elements.
    #[error("{given} elements given for a tensor of {len}")]
    ElementCount {
        /// Elements of the slice.
        given: usize,
        /// Elements of the tensor.
        len: usize,
    },
    /// An argument that a task does not have.
    #[error("there is no {what} {index}: the task has {count}")]
    NoSuchArgument {
        /// `tensor` or `scalar`.
        what: &'static str,
        /// Asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// A tensor argument that cannot be looked at as it was asked for.
    #[error("tensor argument {index}: {fault}")]
    Argument {
        /// Which argument.
        index: usize,
        /// [`Error::ElementType`], [`Error::NotHostMemory`] or [`Error::Misaligned`].
        fault: Box<Error>,
    },
    /// A tensor argument outside the memory of the tree.
    #[error("tensor argument {index} names bytes {start:#x}..{end:#x}, which are not memory that this tree shares")]
    NotShared {
        /// Which argument.
        index: usize,
        /// First byte.
        start: u64,
        /// One past the last byte.
        end: u64,
    },
    /// The engine refused a call.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A view, an argument list or a descriptor that is not legal.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Bytes that are not legal.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A device runtime refused or failed.
    #[error(transparent)]
    Chip(#[from] ChipError),
    /// A control was not accepted.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A child did not do what a control asked for.
    #[error(transparent)]
    Control(Box<ControlError>),
}

impl From<ControlError> for Error {
    fn from(error: ControlError) -> Self {
        Self::Control(Box::new(error))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<TensorFault> for Error {
    fn from(fault: TensorFault) -> Self {
        Self::Wire(fault.into())
    }
}

impl Error {
    /// A failed system call with nothing general to advise.
    pub(crate) fn system(call: &'static str, what: impl Into<String>, errno: rustix::io::Errno) -> Self {
        Self::System { call, what: what.into(), errno: errno.into(), remedy: "" }
    }

    /// A failed system call and what to do about it.
    pub(crate) fn advised(
        call: &'static str,
        what: impl Into<String>,
        errno: rustix::io::Errno,
        remedy: &'static str,
    ) -> Self {
        Self::System { call, what: what.into(), errno: errno.into(), remedy }
    }
}
