//! What an engine is built with: its capacities, its heap rings, its workers.

use crate::ids::{EndpointIndex, SubId, WorkerId};

use super::EngineError;

/// Heap rings of one engine; the ring of an allocation is chosen by the depth of its scope (E-25).
pub const RINGS: usize = 4;

/// Every slab starts on a multiple of this many bytes.
pub const SLAB_ALIGN: u64 = 1024;

/// Frames on a run's scope stack, the automatic outer one included (E-28).
pub const SCOPE_DEPTH: usize = 64;

/// Most workers that one engine drives.
pub const MAX_WORKERS: usize = u16::MAX as usize;

/// Where one heap ring lies. `bytes` = 0 means that the ring does not exist and every request for it is too large.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RingSpec {
    /// Address of the first byte, a multiple of [`SLAB_ALIGN`].
    pub base: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// Capacities of an engine. Everything is allocated in [`Engine::new`](super::Engine::new) and never grows: a pool
/// that is full pushes back ([`EngineError::Blocked`]) or fails with an error that names the field to enlarge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Tasks that are alive (not CONSUMED) at once, allocations included.
    pub task_window: u32,
    /// Producer → consumer edges and lifetime references that exist at once.
    pub edges: u32,
    /// Written (with `strict_war` also read) argument ranges of live tasks.
    pub map_entries: u32,
    /// Members of all live groups together.
    pub group_members: u32,
    /// Run records, finished runs whose handle still lives included.
    pub runs: u32,
    /// Bytes of encoded arguments of live tasks. A task takes 64 + 128·T + 8·S bytes, rounded up to 64, per member;
    /// one without arguments takes none.
    pub args_bytes: usize,
    /// Different call configs that live tasks use at once, the all-zero one included.
    pub configs: u32,
    /// Different error messages of live tasks, unreleased runs and dead endpoints.
    pub error_texts: u32,
    /// Slabs per heap ring that are live or wait for an older one to be freed.
    pub slabs: u32,
    /// Registered address ranges: buffers, shared mappings, memory of outer workers.
    pub ranges: u32,
    /// The heap rings.
    pub rings: [RingSpec; RINGS],
    /// Order a pure overwrite after earlier writers and readers of the same bytes (E-19). Off by default.
    pub strict_war: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            task_window: 4096,
            edges: 32_768,
            map_entries: 32_768,
            group_members: 4096,
            runs: 1024,
            args_bytes: 16 << 20,
            configs: 64,
            error_texts: 256,
            slabs: 8192,
            ranges: 4096,
            rings: [RingSpec::default(); RINGS],
            strict_war: false,
        }
    }
}

impl Config {
    /// Refuses capacities that could not run a single task, and rings that are misaligned or overlap.
    pub(super) fn validate(&self) -> Result<(), EngineError> {
        let limits: [(&'static str, u64, u64, u64); 10] = [
            ("task_window", self.task_window.into(), 1, 1 << 24),
            ("edges", self.edges.into(), 1, 1 << 28),
            ("map_entries", self.map_entries.into(), 1, 1 << 28),
            ("group_members", self.group_members.into(), 1, 1 << 24),
            ("runs", self.runs.into(), 1, 1 << 24),
            ("args_bytes", self.args_bytes as u64, 64, 1 << 36),
            ("configs", self.configs.into(), 1, 1 << 15),
            ("error_texts", self.error_texts.into(), 1, 1 << 15),
            ("slabs", self.slabs.into(), 1, 1 << 28),
            ("ranges", self.ranges.into(), 0, 1 << 24),
        ];
        for (setting, value, least, most) in limits {
            if value < least || value > most {
                return Err(EngineError::Setting { setting, value, least, most });
            }
        }
        for (index, ring) in self.rings.iter().enumerate() {
            let end = ring.base.checked_add(ring.bytes);
            if !ring.base.is_multiple_of(SLAB_ALIGN) || end.is_none() {
                return Err(EngineError::RingPlace { ring: index, base: ring.base, bytes: ring.bytes });
            }
            let clash = self.rings[..index]
                .iter()
                .any(|other| other.base < ring.base + ring.bytes && ring.base < other.base + other.bytes);
            if clash {
                return Err(EngineError::RingPlace { ring: index, base: ring.base, bytes: ring.bytes });
            }
        }
        Ok(())
    }
}

/// What a worker is to the scheduler (E-39).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkerClass {
    /// A chip, a nested worker or a remote: work names it by id and goes nowhere else (E-30).
    NextLevel(WorkerId),
    /// A host-function child: work goes to any idle one (E-32).
    Sub(SubId),
}

/// One worker and the endpoint that reaches it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerSpec {
    /// What the worker is and its id.
    pub class: WorkerClass,
    /// The endpoint that actions name.
    pub endpoint: EndpointIndex,
    /// Whether a task of the prepared run can be staged here while another run executes (E-33).
    pub staging: bool,
}

/// What a registered address range is (E-38).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeKind {
    /// A buffer of the worker's own buffer region.
    Buffer,
    /// A shared mapping of the user's, registered before the forks.
    Shared,
    /// Inherited copy-on-write: children may read it, nobody may write it.
    Snapshot,
    /// A ring or a region of a worker above this one.
    Outer,
}

/// An address range that arguments may name (E-38).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Address of the first byte.
    pub base: u64,
    /// Size in bytes, not 0.
    pub bytes: u64,
    /// What it is.
    pub kind: RangeKind,
}
