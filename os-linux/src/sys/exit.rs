//! How a process ended.

use std::fmt;

use rustix::process::{Signal, WaitIdStatus};

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Exit {
    /// It left by itself with this code.
    Code(i32),
    /// A signal ended it.
    Signal {
        /// Number of the signal.
        number: i32,
        /// Whether it left a core file.
        core_dumped: bool,
    },
    /// It is gone, and somebody else took its status: the host ignores SIGCHLD or reaps all children (P-23).
    Unknown,
}

impl Exit {
    /// Whether it left by itself with code 0.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Code(0))
    }

    /// Whether SIGKILL ended it: where nobody here sent it, likely for want of memory (P-33).
    #[must_use]
    pub const fn is_killed(self) -> bool {
        matches!(self, Self::Signal { number: libc::SIGKILL, .. })
    }

    pub(super) fn of(status: &WaitIdStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(number)) => Self::Signal { number, core_dumped: status.dumped() },
            (None, None) => Self::Unknown,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal { number, core_dumped } => {
                write!(f, "signal {number}")?;
                if let Some(name) = name(number) {
                    write!(f, " ({name})")?;
                }
                f.write_str(if core_dumped { ", core dumped" } else { "" })
            }
            Self::Unknown => f.write_str("unknown exit status (another part of this process reaped it)"),
        }
    }
}

/// The name of the signals that end processes.
fn name(number: i32) -> Option<&'static str> {
    Some(match Signal::from_named_raw(number)? {
        Signal::HUP => "SIGHUP",
        Signal::INT => "SIGINT",
        Signal::QUIT => "SIGQUIT",
        Signal::ILL => "SIGILL",
        Signal::TRAP => "SIGTRAP",
        Signal::ABORT => "SIGABRT",
        Signal::BUS => "SIGBUS",
        Signal::FPE => "SIGFPE",
        Signal::KILL => "SIGKILL",
        Signal::USR1 => "SIGUSR1",
        Signal::SEGV => "SIGSEGV",
        Signal::USR2 => "SIGUSR2",
        Signal::PIPE => "SIGPIPE",
        Signal::ALARM => "SIGALRM",
        Signal::TERM => "SIGTERM",
        Signal::XCPU => "SIGXCPU",
        Signal::XFSZ => "SIGXFSZ",
        Signal::IO => "SIGIO",
        Signal::SYS => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_reads_as_a_person_would_say_it() {
        assert_eq!(Exit::Code(3).to_string(), "exit status 3");
        assert_eq!(Exit::Signal { number: 9, core_dumped: false }.to_string(), "signal 9 (SIGKILL)");
        assert_eq!(Exit::Signal { number: 11, core_dumped: true }.to_string(), "signal 11 (SIGSEGV), core dumped");
        assert_eq!(Exit::Signal { number: 60, core_dumped: false }.to_string(), "signal 60");
    }
}
