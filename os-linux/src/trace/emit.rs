//! Telling the subscriber of the process what happened in the tree.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

use laneway_core::wire::control::ControlCommand;
use tracing::Level;

use super::log::TraceLog;
use super::reader::Reader;
use super::record::{Ending, Kind, Leaving, Record, Side, Source};

/// The target of all events.
const TARGET: &str = "laneway";

/// Whether a subscriber wants anything of it.
#[inline]
pub(super) fn is_wanted() -> bool {
    tracing::enabled!(target: TARGET, Level::WARN)
}

/// Who tells the subscriber of this process.
#[derive(Debug)]
pub(super) struct Teller {
    reader: Mutex<Reader>,
    /// Somebody came for whom there may be something to tell, since the one who tells began to read.
    asked: AtomicBool,
}

impl Teller {
    pub(super) fn new(log: Arc<TraceLog>) -> Self {
        Self { reader: Mutex::new(Reader::new(log)), asked: AtomicBool::new(false) }
    }

    /// Tells what is new. Whoever comes while another thread does leaves it to that one, which then reads once more: a subscriber
    /// may come back here, so nobody waits.
    #[cold]
    #[inline(never)]
    pub(super) fn tell(&self) {
        self.asked.store(true, Ordering::SeqCst);
        while self.asked.load(Ordering::SeqCst) {
            let mut reader = match self.reader.try_lock() {
                Ok(reader) => reader,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            self.asked.store(false, Ordering::SeqCst);
            let mut told = Vec::new();
            reader.read(|record| told.push(record));
            // Each writer's clock is the same one, and what one writer wrote stays in order.
            told.sort_by_key(|told| told.record.time);
            for told in told {
                event(&reader.sources()[told.source as usize], &told.record);
            }
        }
    }
}

/// One event: when it happened, in which process, and its facts.
macro_rules! emit {
    ($level:ident, $source:expr, $record:expr, $name:literal $(, $($field:tt)*)?) => {
        tracing::event!(
            target: TARGET,
            Level::$level,
            time = $record.time,
            pid = $source.pid,
            level = $source.level,
            $($($field)*,)?
            $name
        )
    };
}

fn event(source: &Source, record: &Record) {
    let Some(kind) = record.kind() else { return };
    let (run, dispatch) = (record.run, record.dispatch);
    // A child's own records do not repeat which one it is.
    let child = if source.side() == Side::Child { source.endpoint } else { record.endpoint };
    let outcome = Ending::of(record.detail);
    let callable = record.digest;
    match kind {
        Kind::Submitted => {
            let (members, nanos) = (record.extra, record.value);
            emit!(DEBUG, source, record, "submit", run, members, nanos, callable = %format_args!("{callable:016x}"));
        }
        Kind::Dispatched => {
            let staged = record.detail == 1;
            let callable = format_args!("{callable:016x}");
            emit!(DEBUG, source, record, "dispatch", run, dispatch, child, staged, callable = %callable);
        }
        Kind::Staged => emit!(TRACE, source, record, "staged", run, dispatch, child),
        Kind::Activated => emit!(TRACE, source, record, "activated", run, dispatch, child),
        Kind::Accepted => emit!(TRACE, source, record, "accepted", run, dispatch, child),
        Kind::Completed if record.detail == Ending::Success as u8 => {
            emit!(DEBUG, source, record, "completed", run, dispatch, child);
        }
        Kind::Completed => emit!(WARN, source, record, "not completed", run, dispatch, child, outcome),
        Kind::ControlSent => emit!(DEBUG, source, record, "control sent", child, command = %command(record)),
        Kind::ControlEnded => emit!(DEBUG, source, record, "control ended", child, success = record.detail == 1),
        Kind::RunBegun => emit!(INFO, source, record, "run begun", run),
        Kind::RunExecuting => emit!(INFO, source, record, "run executing", run),
        Kind::RunClosed => emit!(INFO, source, record, "run closed", run, failed = record.detail == 1),
        Kind::RunEnded => emit!(INFO, source, record, "run ended", run, failed = record.detail == 1),
        Kind::ChildStarted => emit!(INFO, source, record, "child started", child, process = record.value),
        Kind::ChildReady => emit!(INFO, source, record, "child ready", child),
        Kind::ChildExited => {
            let [exited, signal, thread] =
                [Leaving::Exited, Leaving::Signalled, Leaving::Thread].map(|how| record.detail == how as u8);
            if record.value == 0 && (exited || thread) {
                return emit!(INFO, source, record, "child ended", child);
            }
            emit!(WARN, source, record, "child ended", child, signal, status = record.value);
        }
        Kind::ChildPoisoned => emit!(WARN, source, record, "child unusable", child),
        Kind::TaskBegun => emit!(TRACE, source, record, "task begun", run, dispatch, child),
        Kind::Prepared => emit!(TRACE, source, record, "prepared", run, dispatch, child),
        Kind::LaunchBegun => emit!(TRACE, source, record, "launch begun", run, dispatch, child),
        Kind::Launched => emit!(TRACE, source, record, "launched", run, dispatch, child),
        Kind::LaunchAccepted => emit!(TRACE, source, record, "launch accepted", run, dispatch, child),
        Kind::ExecutionEnded => emit!(TRACE, source, record, "execution ended", run, dispatch, child, outcome),
        Kind::FinaliseBegun => emit!(TRACE, source, record, "finalise begun", run, dispatch, child),
        Kind::TaskEnded => emit!(TRACE, source, record, "task ended", run, dispatch, child, outcome),
        Kind::ControlBegun => emit!(TRACE, source, record, "control begun", child, command = %command(record)),
        Kind::ControlServed => emit!(TRACE, source, record, "control served", child, success = record.detail == 1),
        Kind::Serving => emit!(DEBUG, source, record, "serving", child),
        Kind::Name => {}
    }
}

/// The command of a control, as its number says.
fn command(record: &Record) -> String {
    ControlCommand::from_raw(record.value).map_or_else(|_| record.value.to_string(), |command| format!("{command:?}"))
}
