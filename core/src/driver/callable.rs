//! How messages call a callable.

use core::fmt;

use super::observe::Observer;
use crate::engine::{Engine, Ticket};
use crate::wire::Digest;
use crate::wire::text::fit;

/// Bytes of a name that a message has room for; the digest tells longer ones apart.
const NAME_BYTES: usize = 80;

/// What a task runs: its name, if somebody knows one, and enough of its digest to find it.
pub(super) struct Callable<'a> {
    name: Option<&'a str>,
    digest: &'a Digest,
}

impl<'a> Callable<'a> {
    /// What `ticket` runs, as long as it is not over.
    pub(super) fn of(engine: &'a Engine, observer: &'a impl Observer, ticket: Ticket) -> Option<Self> {
        let digest = engine.payload(ticket)?.digest;
        Some(Self { name: observer.name_of(digest), digest })
    }
}

impl fmt::Display for Callable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = self.digest.short();
        match self.name {
            Some(name) => {
                let (head, mark) = fit(name, NAME_BYTES);
                write!(f, "{head}{mark} ({digest})")
            }
            None => write!(f, "callable {digest}"),
        }
    }
}
