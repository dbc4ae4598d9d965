//! What can go wrong, with what to do about it.

use std::fmt;
use std::io;

/// Why nothing is shown.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// No such process.
    Missing(i32),
    /// It ended while it was looked at.
    Ended(i32),
    /// The number is that of a thread.
    Thread { thread: i32, process: i32 },
    /// It may not be looked at.
    Forbidden { pid: i32, uid: u32, why: String },
    /// It has no worker.
    NoWorker { pid: i32, program: String },
    /// Anything else about it.
    Other(String),
    /// What was seen cannot be written.
    Output(io::Error),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(pid) => write!(
                f,
                "there is no process {pid}: it has ended, or runs where this process cannot see it (another container)"
            ),
            Self::Ended(pid) => write!(f, "process {pid} has ended"),
            Self::Thread { thread, process } => {
                write!(f, "{thread} is a thread of process {process}; ask about {process}")
            }
            Self::Forbidden { pid, uid, why } => write!(
                f,
                "process {pid} may not be looked at: {why}; run this as its user (uid {uid}) or as root. A process that changed its \
                 user or keeps itself from being dumped shows itself to root alone. kernel.yama.ptrace_scope does not matter: \
                 nothing is attached"
            ),
            Self::NoWorker { pid, program } => write!(
                f,
                "process {pid} ({program}) has no laneway worker: one is seen from the end of its init to its close, in the \
                 process that called init; SUB and chip children have none"
            ),
            Self::Other(sentence) => f.write_str(sentence),
            Self::Output(error) => write!(f, "the output cannot be written: {error}"),
        }
    }
}

impl From<serde_json::Error> for Trouble {
    fn from(error: serde_json::Error) -> Self {
        Self::Other(error.to_string())
    }
}
