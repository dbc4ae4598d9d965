//! Controls that wait for their turn, and results that wait to be fetched (L-20).

use alloc::vec::Vec;

use super::error::{ControlError, ControlFault, DriverError};
use crate::ids::EndpointIndex;
use crate::lane::Label;
use crate::time::Instant;
use crate::wire::control::{ControlCommand, ControlRequest};

/// Names a control until its result is fetched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ControlTicket(u64);

/// A control from its request to the fetch of its result.
#[derive(Debug)]
struct Entry {
    ticket: ControlTicket,
    endpoint: EndpointIndex,
    label: Label,
    command: ControlCommand,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Queued { request: ControlRequest, since: Instant, deadline: Option<Instant> },
    Sent,
    Ended(Result<u64, ControlError>),
}

/// All controls of one driver, in the order in which they were asked for.
#[derive(Debug)]
pub(super) struct Controls {
    entries: Vec<Entry>,
    limit: usize,
    next: u64,
    queued: usize,
    /// Controls that are over, since the driver was built.
    ended: u64,
}

impl Controls {
    /// Room for `limit` controls, bought once.
    pub(super) fn new(limit: usize) -> Self {
        Self { entries: Vec::with_capacity(limit), limit, next: 1, queued: 0, ended: 0 }
    }

    pub(super) const fn ended(&self) -> u64 {
        self.ended
    }

    pub(super) fn push(
        &mut self,
        endpoint: EndpointIndex,
        label: Label,
        request: &ControlRequest,
        deadline: Option<Instant>,
        now: Instant,
    ) -> Result<ControlTicket, DriverError> {
        if self.entries.len() >= self.limit {
            return Err(DriverError::TooManyControls { limit: self.limit });
        }
        let ticket = ControlTicket(self.next);
        self.next += 1;
        self.queued += 1;
        let stage = Stage::Queued { request: *request, since: now, deadline };
        self.entries.push(Entry { ticket, endpoint, label, command: request.command(), stage });
        Ok(ticket)
    }

    /// How many controls wait for their turn.
    pub(super) const fn queued(&self) -> usize {
        self.queued
    }

    /// Ends what is overdue, and marks the first control as sent whose endpoint `is_free`. The caller sends it.
    pub(super) fn take_sendable(&mut self, now: Instant, is_free: impl Fn(EndpointIndex) -> bool) -> Option<Sendable> {
        for entry in &mut self.entries {
            let Stage::Queued { request, since, deadline } = entry.stage else { continue };
            if deadline.is_some_and(|deadline| deadline <= now) {
                let fault = ControlFault::NotSent { waited: now.since(since) };
                self.ended += 1;
                entry.stage = Stage::Ended(Err(ControlError { label: entry.label, command: entry.command, fault }));
                self.queued -= 1;
            } else if is_free(entry.endpoint) {
                entry.stage = Stage::Sent;
                self.queued -= 1;
                return Some(Sendable { ticket: entry.ticket, endpoint: entry.endpoint, request, deadline });
            }
        }
        None
    }

    /// The earliest deadline of a queued control.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.queued == 0 {
            return None;
        }
        self.entries
            .iter()
            .filter_map(|entry| match entry.stage {
                Stage::Queued { deadline, .. } => deadline,
                _ => None,
            })
            .min()
    }

    /// A sent control ended.
    pub(super) fn end(&mut self, ticket: ControlTicket, result: Result<u64, ControlFault>) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.ticket == ticket) {
            self.ended += 1;
            let (label, command) = (entry.label, entry.command);
            entry.stage = Stage::Ended(result.map_err(|fault| ControlError { label, command, fault }));
        }
    }

    /// Fetches a result, once.
    pub(super) fn take(&mut self, ticket: ControlTicket) -> Option<Result<u64, ControlError>> {
        let index =
            self.entries.iter().position(|entry| entry.ticket == ticket && matches!(entry.stage, Stage::Ended(_)))?;
        match self.entries.remove(index).stage {
            Stage::Ended(result) => Some(result),
            Stage::Queued { .. } | Stage::Sent => None,
        }
    }

    /// Whether every control has ended.
    pub(super) fn is_idle(&self) -> bool {
        self.entries.iter().all(|entry| matches!(entry.stage, Stage::Ended(_)))
    }
}

/// A control whose turn has come.
pub(super) struct Sendable {
    pub(super) ticket: ControlTicket,
    pub(super) endpoint: EndpointIndex,
    pub(super) request: ControlRequest,
    pub(super) deadline: Option<Instant>,
}
