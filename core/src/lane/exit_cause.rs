//! How a child ended.

use core::fmt;

/// What the owner of a pid saw when it reaped it (P-16), or that there was nothing to reap (L-25).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ExitCause {
    /// The process exited by itself.
    Exited {
        /// Process id.
        pid: i32,
        /// Exit status, 0–255.
        status: i32,
    },
    /// A signal ended the process.
    Signalled {
        /// Process id.
        pid: i32,
        /// Signal number.
        signal: i32,
        /// Whether nobody in this tree sent that signal: an unexpected SIGKILL is most likely the kernel's out-of-memory
        /// killer (P-33).
        unexpected: bool,
        /// Bytes of memory that the child could use at most, where that is known and explains such a SIGKILL.
        memory_limit: Option<u64>,
    },
    /// The process is gone but somebody else reaped it: status and signal are lost.
    Vanished {
        /// Process id.
        pid: i32,
    },
    /// The process went on living without what ties it to its parent, and was killed for that: something that ran in it executed
    /// another program in its place, or closed descriptors that it had not opened.
    LetGo {
        /// Process id.
        pid: i32,
    },
    /// The child was a thread of this process and returned (P-27).
    ThreadEnded {
        /// What it returned, as a process would exit with.
        status: i32,
    },
}

impl ExitCause {
    /// Whether the child left in order.
    #[must_use]
    pub const fn is_orderly(self) -> bool {
        matches!(self, Self::Exited { status: 0, .. } | Self::ThreadEnded { status: 0 })
    }
}

/// Exit status of a child that saw its parent break the protocol, or a frame change under it (L-1).
pub const EXIT_PROTOCOL: u8 = 81;

/// Exit status of a child that lost control of its device (C-9).
pub const EXIT_DEVICE: u8 = 82;

/// Exit status of a nested worker whose own children did not all leave in order (P-15).
pub const EXIT_UNCLEAN: u8 = 83;

/// Exit status of a child in which something closed the descriptors that it hears its parent by.
pub const EXIT_CUT_OFF: u8 = 84;

const SIGKILL: i32 = 9;

impl fmt::Display for ExitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exited { pid, status } => {
                write!(f, "process {pid} exited with status {status}{}", remark(status))
            }
            Self::Signalled { pid, signal, unexpected, memory_limit } => {
                write!(f, "process {pid} was killed by signal {signal}")?;
                if let Some(name) = signal_name(signal) {
                    write!(f, " ({name})")?;
                }
                if unexpected && signal == SIGKILL {
                    f.write_str(", which nobody in this tree sent: likely out of memory")?;
                    if let Some(bytes) = memory_limit {
                        write!(f, " (its control group, or the machine, may use {bytes} bytes)")?;
                    }
                    f.write_str("; see the kernel log")?;
                }
                Ok(())
            }
            Self::Vanished { pid } => {
                write!(f, "process {pid} is gone and was reaped by somebody else, so its exit status is not known")
            }
            Self::LetGo { pid } => write!(
                f,
                "process {pid} executed another program in its place, or closed descriptors that it had not opened, and was \
                 killed: its parent could not hear of it any more"
            ),
            Self::ThreadEnded { status } => {
                write!(f, "the thread that served this mailbox ended with status {status}{}", remark(status))
            }
        }
    }
}

/// What the statuses of this project's children mean.
fn remark(status: i32) -> &'static str {
    match u8::try_from(status) {
        Ok(EXIT_PROTOCOL) => " (it saw the mailbox protocol broken)",
        Ok(EXIT_DEVICE) => " (it lost control of its device)",
        Ok(EXIT_UNCLEAN) => " (children below it did not leave in order)",
        Ok(EXIT_CUT_OFF) => " (something that ran in it closed descriptors that it had not opened)",
        _ => "",
    }
}

/// Names of the signals that end processes, with the numbers that x86-64 and Arm Linux share.
const fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        SIGKILL => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        29 => "SIGIO",
        31 => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    /// P-33, L-25
    #[test]
    fn each_cause_says_pid_and_what_happened() {
        assert_eq!(format!("{}", ExitCause::Exited { pid: 7, status: 3 }), "process 7 exited with status 3");
        let killed = ExitCause::Signalled { pid: 7, signal: 9, unexpected: false, memory_limit: None };
        assert_eq!(format!("{killed}"), "process 7 was killed by signal 9 (SIGKILL)");
        let oom = ExitCause::Signalled { pid: 7, signal: 9, unexpected: true, memory_limit: Some(4096) };
        let oom = format!("{oom}");
        assert!(oom.contains("likely out of memory") && oom.contains("4096 bytes"), "{oom}");
        assert!(format!("{}", ExitCause::Vanished { pid: 7 }).contains("process 7 is gone"));
        assert!(format!("{}", ExitCause::LetGo { pid: 7 }).contains("process 7 executed another program"));
    }
}
