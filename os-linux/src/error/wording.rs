//! Pieces of the sentences that errors print.

use std::fmt;

use laneway_core::wire::Namespace;

/// What a call that came at the wrong time can be preceded by.
pub(super) fn way_out(state: &str) -> &'static str {
    match state {
        "NEW" => ": call init first",
        "CLOSED" => ": build a new one",
        "ATTACHED" => {
            ": it belongs to the worker that it was added to, whose init starts it; an orchestration that captured a clone of it \
             may use it"
        }
        _ => "",
    }
}

/// What is found in a namespace, in words.
pub(super) const fn code_of(namespace: Namespace) -> &'static str {
    match namespace {
        Namespace::LocalPython => "host code, for SUB children, nested workers and children of a user's own kind",
        Namespace::LocalChip => "chip callables",
        Namespace::RemoteTaskDispatcher => "tasks of other hosts",
    }
}

/// Pairs as a sentence lists them.
pub(super) struct Listed<'a, A, B>(pub(super) &'a [(A, B)]);

impl<A: fmt::Display, B: fmt::Display> fmt::Display for Listed<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (who, what)) in self.0.iter().enumerate() {
            write!(f, "{}{who}: {what}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}
