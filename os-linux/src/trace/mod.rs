//! What happens in a tree, written down as it happens: one log in shared memory, read by whoever wants to know.
//!
//! | part | what it does |
//! | --- | --- |
//! | `record` | the format: fixed-size records in chunks |
//! | `log` | the shared region: chunks are claimed by an atomic counter, records become valid by one store |
//! | `writer`, `runner` | the driving half and the serving half write, without lock, allocation or text |
//! | `reader` | reads each record once, while the log is being written |
//! | `timeline`, `chrome` | pairs records into spans and writes them for the Perfetto UI |
//! | `emit` | tells the parent's `tracing` subscriber |

mod chrome;
#[cfg(feature = "tracing")]
mod emit;
mod log;
mod reader;
mod record;
mod runner;
mod timeline;
mod writer;

use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use laneway_core::lane::Label;
use laneway_core::wire::Digest;

pub(crate) use log::TraceLog;
use record::Source;
pub(crate) use record::{Ending, Kind, Leaving, Record, prefix};
pub(crate) use runner::{Phases, Traced};
pub(crate) use writer::Writer;

/// What a worker is told about tracing before it starts.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Whether there is a log.
    pub(crate) on: bool,
    /// Where the trace goes when the worker closes.
    pub(crate) path: Option<PathBuf>,
    /// Bytes of the log.
    pub(crate) bytes: u64,
    /// Whether graphs of runs are kept.
    pub(crate) graphs: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self { on: false, path: None, bytes: 64 << 20, graphs: false }
    }
}

impl Setting {
    /// The log that was asked for. One that ends in a file keeps what came first; else what was read makes room.
    pub(crate) fn log(&self) -> Result<Option<Arc<TraceLog>>, crate::Error> {
        self.on.then(|| TraceLog::new(self.bytes, self.path.is_none()).map(Arc::new)).transpose()
    }
}

/// What the halves of a worker's mailboxes write with.
#[derive(Clone, Debug)]
pub(crate) struct Tracing {
    log: Arc<TraceLog>,
    /// The worker that drives.
    parent: Source,
    /// How many NEXT_LEVEL workers come before the SUB children.
    next_level: u16,
}

impl Tracing {
    /// Of a worker in this process.
    pub(crate) fn new(log: Arc<TraceLog>, level: u32, next_level: usize) -> Self {
        static WORKERS: AtomicU32 = AtomicU32::new(0);
        let (pid, worker) = (std::process::id().cast_signed(), WORKERS.fetch_add(1, Ordering::Relaxed));
        Self { log, parent: Source::parent(pid, worker, level), next_level: next_level as u16 }
    }

    /// The log, for whoever is below.
    pub(crate) fn log(&self) -> &Arc<TraceLog> {
        &self.log
    }

    /// For the driving half: what callables are called comes first.
    pub(crate) fn parent<'a>(&self, names: impl Iterator<Item = (&'a Digest, &'a str)>) -> Writer {
        let mut writer = self.log.writer(self.parent);
        names.for_each(|(digest, name)| writer.put(Record::name(prefix(digest), name)));
        writer
    }

    /// For the serving half of a child, in its own process or thread.
    pub(crate) fn child(&self, label: Label, name: &str) -> Writer {
        let endpoint = match label {
            Label::Worker(id) => id.get() as u16,
            Label::Sub(id) => self.next_level + id.0 as u16,
        };
        let pid = std::process::id().cast_signed();
        self.log.writer(Source::child(pid, &self.parent, endpoint, name))
    }
}

/// The reading side in the process that asked for the log.
#[derive(Debug)]
pub(crate) struct Tracer {
    log: Arc<TraceLog>,
    path: Option<PathBuf>,
    /// For the subscriber of this process, in the root of the tree: what a fork copied of one must not be used (P-30).
    #[cfg(feature = "tracing")]
    subscriber: Option<emit::Teller>,
}

impl Tracer {
    #[cfg_attr(not(feature = "tracing"), expect(unused_variables, reason = "for the feature that is left out"))]
    pub(crate) fn new(log: Arc<TraceLog>, path: Option<PathBuf>, is_root: bool) -> Self {
        Self {
            #[cfg(feature = "tracing")]
            subscriber: is_root.then(|| emit::Teller::new(log.clone())),
            log,
            path,
        }
    }

    /// Tells the subscriber what is new, if one is interested. Must not be called under the worker's lock.
    #[inline]
    pub(crate) fn tell_subscriber(&self) {
        #[cfg(feature = "tracing")]
        if let Some(teller) = &self.subscriber
            && emit::is_wanted()
        {
            teller.tell();
        }
    }

    /// Where the trace goes.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Writes all that is in the log so far.
    pub(crate) fn write(&self, path: &Path, names: Names) -> Result<(), crate::Error> {
        chrome::write(&self.log, path, names)
    }
}

/// What callables are called, by the prefix of their digest.
pub(crate) type Names = HashMap<u64, String>;
