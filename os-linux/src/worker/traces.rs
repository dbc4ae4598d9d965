//! What a worker's start sets up for looking into it, and where the trace goes.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

use laneway_core::ids::EndpointIndex;
use laneway_core::lane::Label;

use super::Worker;
use super::plan::Outline;
use crate::Error;
use crate::config::Config;
use crate::live::Live;
use crate::registry::Registry;
use crate::sys::panics;
use crate::trace::{Kind, Record, TraceLog, Tracer, Tracing, Writer};

thread_local! {
    /// The address of the worker of which this thread is telling the subscriber; 0 if none.
    static TELLING: Cell<usize> = const { Cell::new(0) };
}

/// The two ends of the log, where there is one.
pub(super) struct Traces {
    /// What this worker and its children write with.
    pub(super) tracing: Option<Tracing>,
    /// The driving half's own.
    pub(super) writer: Option<Writer>,
    /// What reads it, in the process that made it.
    pub(super) tracer: Option<Tracer>,
}

impl Traces {
    /// Uses the log of the worker above, or maps the one that was asked for. Before the forks.
    pub(super) fn of(
        config: &Config,
        above: Option<Arc<TraceLog>>,
        outlines: &[Outline],
        registry: &Registry,
        is_root: bool,
    ) -> Result<Self, Error> {
        let own = if above.is_none() { config.trace.log()? } else { None };
        let tracer = own.clone().map(|log| Tracer::new(log, config.trace.path.clone(), is_root));
        let next_level = outlines.iter().filter(|outline| matches!(outline.label, Label::Worker(_))).count();
        let tracing = above.or(own).map(|log| Tracing::new(log, config.level, next_level));
        let writer = tracing.as_ref().map(|tracing: &Tracing| tracing.parent(registry.names()));
        Ok(Self { tracing, writer, tracer })
    }

    /// A child was started.
    pub(super) fn child_started(&mut self, endpoint: EndpointIndex, pid: Option<i32>) {
        if let Some(writer) = &mut self.writer {
            let value = pid.unwrap_or_default().unsigned_abs().into();
            writer.put(Record { endpoint: endpoint.0, value, ..Record::new(Kind::ChildStarted) });
        }
    }
}

impl Worker {
    /// Writes the trace of what has happened so far to the file that `trace_to` named; close does it too. A task that is under
    /// way ends at the last event.
    ///
    /// # Errors
    /// [`Error::NotRecorded`] without `trace_to`; [`Error::System`] if the file cannot be written; [`Error::WrongState`] before
    /// init and after close.
    pub fn write_trace(&self) -> Result<(), Error> {
        self.live("write_trace")?
            .write_trace()
            .unwrap_or(Err(Error::NotRecorded { what: "a trace", setting: "trace_to" }))
    }
}

impl Live {
    /// Tells the subscriber of this process what is new. Not under the lock. A subscriber that panics has had its say: the thread that
    /// drives, or notices deaths, or closes, goes on.
    #[inline]
    pub(crate) fn tell_subscriber(&self) {
        if let Some(tracer) = &self.tracer {
            let before = TELLING.replace(ptr::from_ref(self).addr());
            let _ = panics::catch(|| tracer.tell_subscriber());
            TELLING.set(before);
        }
    }

    /// Refuses a call that waits for progress from a subscriber that the calling thread is telling: that thread may be the one that
    /// makes it.
    #[inline]
    pub(crate) fn refuse_subscribers(&self, call: &'static str) -> Result<(), Error> {
        if self.is_telling() { Err(Error::InsideCallback { call }) } else { Ok(()) }
    }

    /// Whether the calling thread is telling the subscriber what happened in this worker.
    #[inline]
    pub(crate) fn is_telling(&self) -> bool {
        self.tracer.is_some() && TELLING.get() == ptr::from_ref(self).addr()
    }

    /// A thread that drives is going to sleep in the kernel.
    pub(crate) fn about_to_sleep(&self) {
        self.counters.sleeps.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.tell_subscriber();
    }

    /// At the end of a close: the last that is to be told, and the file.
    pub(super) fn finish_trace(&self) -> Result<(), Error> {
        self.tell_subscriber();
        self.write_trace().unwrap_or(Ok(()))
    }

    /// Writes the file, if there is to be one in this process.
    fn write_trace(&self) -> Option<Result<(), Error>> {
        let tracer = self.tracer.as_ref()?;
        let path = tracer.path()?;
        let prefix = crate::trace::prefix;
        let names = self.lock().registry.names().map(|(digest, name)| (prefix(digest), name.to_owned())).collect();
        Some(tracer.write(path, names))
    }

    /// The span that a callback is called in, where this process may use its subscriber (P-30).
    #[cfg(feature = "tracing")]
    pub(crate) fn run_span(&self, run: laneway_core::ids::RunId) -> Option<impl Drop + use<>> {
        let level = self.config.level;
        (self.outer.is_none()).then(|| {
            tracing::info_span!(target: "laneway", "run", level, run = run.get(), pid = std::process::id()).entered()
        })
    }

    /// Nothing without the feature.
    #[cfg(not(feature = "tracing"))]
    pub(crate) fn run_span(&self, _: laneway_core::ids::RunId) {}
}
