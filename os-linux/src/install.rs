//! Registering and unregistering while children run: all children in scope are asked in parallel, and what went wrong in one
//! is undone in the others (R-5 … R-9).

use std::fmt::Write;

use laneway_core::driver::ControlTicket;
use laneway_core::driver::{ControlError, ControlFault};
use laneway_core::ids::EndpointIndex;
use laneway_core::lane::Label;
use laneway_core::wire::control::{ControlRequest, Staged};
use laneway_core::wire::{CallableKind, Digest};

use crate::callable::{CallableHandle, CallableName, Role};
use crate::error::{CallableError, Error};
use crate::late::{Late, Payload};
use crate::live::{Guard, Inner, Live};
use crate::memory::Staging;
use crate::registry::{Begun, Left, Newcomer, check_chip_blob, chip_name};
use crate::sys::clock;

/// Which roles one child serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) role: Role,
    /// A nested worker with chips somewhere below it: chip callables are passed on.
    pub(crate) chips_below: bool,
}

impl Scope {
    fn serves(self, role: Role) -> bool {
        self.role == role || (role == Role::Chip && self.chips_below)
    }
}

/// What one child answered.
pub(crate) type Answer = (EndpointIndex, Label, Result<u64, ControlError>);

impl Live {
    /// Registers a chip callable in every child that runs such.
    pub(crate) fn register_chip(&self, digest: Digest, blob: &[u8]) -> Result<CallableHandle, Error> {
        let (name, function) = (chip_name(blob), None);
        let newcomer = Newcomer { digest, role: Role::Chip, kind: CallableKind::ChipCallable, name, function };
        self.register(&newcomer, blob)
    }

    /// Registers a host callable in every child that runs such.
    pub(crate) fn register_late(&self, late: &Late) -> Result<CallableHandle, Error> {
        if let Some(address) = late.address().filter(|address| !self.images.hold(*address)) {
            let function = format!("{} ({address:#x})", late.identity());
            return Err(CallableError::NotInImage { function }.into());
        }
        let digest = late.digest()?;
        let (name, function) = (late.name.as_str(), Some(late.identity()));
        let newcomer = Newcomer { digest, role: late.role(), kind: CallableKind::Native, name, function };
        self.register(&newcomer, &Payload::encode(late))
    }

    /// Passes a registration of the worker above on to the chips below, all or nothing.
    pub(crate) fn register_from_above(&self, digest: Digest, blob: &[u8]) -> Result<(), Error> {
        check_chip_blob(&digest, blob)?;
        let (name, function) = (chip_name(blob), None);
        let newcomer = Newcomer { digest, role: Role::Chip, kind: CallableKind::ChipCallable, name, function };
        let handle = self.register(&newcomer, blob)?;
        // Nobody holds this handle; what keeps the callable is the registration above.
        let mut inner = self.lock();
        inner.registry.installed_from_above(digest);
        let left = inner.registry.leave(&handle)?;
        debug_assert_eq!(left, Left::Lowered, "the registration above keeps it");
        Ok(())
    }

    /// Passes an unregistration of the worker above on.
    pub(crate) fn unregister_from_above(&self, digest: &Digest) -> Result<(), Error> {
        let left = self.lock().registry.leave_from_above(digest);
        self.remove(left, *digest, Role::Chip)
    }

    /// Ends a handle. The last one of a callable waits until no task that calls it is left, then takes it out of the children
    ///
    pub(crate) fn unregister(&self, handle: &CallableHandle) -> Result<(), Error> {
        self.refuse_subscribers("unregister")?;
        let left = self.lock().registry.leave(handle)?;
        self.remove(left, handle.digest, handle.role)
    }

    fn register(&self, newcomer: &Newcomer<'_>, payload: &[u8]) -> Result<CallableHandle, Error> {
        self.refuse_subscribers("register")?;
        let (digest, role) = (newcomer.digest, newcomer.role);
        if !self.scopes.iter().any(|scope| scope.serves(role)) {
            let callable = CallableName { name: newcomer.name.into(), digest };
            return Err(CallableError::CallableKindUnsupported { callable, role }.into());
        }
        let mut inner = self.lock();
        loop {
            if inner.closing {
                return Err(Error::Closing);
            }
            match inner.registry.begin(newcomer)? {
                Begun::Known(handle) => return Ok(handle),
                Begun::New => {
                    self.board.named(&digest, newcomer.name);
                    inner.driver.observer_mut().named(digest, newcomer.name);
                    break;
                }
                Begun::Busy => {
                    let seen = inner.changes;
                    (inner, _) = self.drive(inner, None, |inner| (inner.changes != seen).then_some(()));
                }
            }
        }
        drop(inner);
        // Given back when this returns, whatever happens.
        let staging = match Staging::new(&self.space, payload) {
            Ok(staging) => staging,
            Err(error) => {
                self.settle(self.lock(), |inner| inner.forget(&digest));
                return Err(error);
            }
        };
        let (staged, bytes) = (Staged::Region(staging.offset()), staging.len());
        let request = match role {
            Role::Chip => ControlRequest::Register { staged, bytes, digest },
            Role::Function | Role::Orchestration | Role::Custom => ControlRequest::PyRegister { staged, bytes, digest },
        };
        let scope = self.in_scope(role);
        let (inner, answers) = self.ask(self.lock(), &scope, &request);
        if answers.iter().all(|(.., answer)| answer.is_ok()) {
            return Ok(self.settle(inner, |inner| inner.registry.installed(digest)));
        }
        self.undo(inner, digest, role, answers)
    }

    /// Some children could not install a callable: those that did forget it again.
    fn undo(
        &self,
        inner: Guard<'_>,
        digest: Digest,
        role: Role,
        answers: Vec<Answer>,
    ) -> Result<CallableHandle, Error> {
        let (good, bad): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(.., answer)| answer.is_ok());
        let good: Vec<_> = good.into_iter().map(|(endpoint, ..)| endpoint).collect();
        let (inner, undone) = self.ask(inner, &good, &removal(role, digest));
        let (failures, callable) = (texts(&bad), inner.registry.callable(digest));
        let closing =
            bad.iter().all(|(.., answer)| matches!(answer, Err(ControlError { fault: ControlFault::Stopped, .. })));
        let uncertain: Vec<_> = undone.into_iter().filter(is_uncertain).collect();
        if uncertain.is_empty() {
            self.settle(inner, |inner| inner.forget(&digest));
            return Err(if closing {
                Error::Closing
            } else {
                CallableError::RegisterPartialFailure { callable, failures }.into()
            });
        }
        let what = sentence(&texts(&uncertain));
        self.settle(inner, |inner| inner.registry.doubt(&digest, what.clone()));
        Err(CallableError::RegisterCleanupUncertain { callable, what }.into())
    }

    /// After a handle ended.
    fn remove(&self, left: Left, digest: Digest, role: Role) -> Result<(), Error> {
        if left == Left::Lowered {
            return Ok(());
        }
        let unused = |inner: &mut Inner| {
            (!inner.driver.engine().unfinished_calls(&digest) || inner.driver.engine().is_stopping()).then_some(())
        };
        let (inner, _) = self.drive(self.lock(), None, unused);
        let scope = self.in_scope_of(&inner, role);
        let (inner, answers) = self.ask(inner, &scope, &removal(role, digest));
        let failed: Vec<_> = answers.into_iter().filter(is_uncertain).collect();
        if failed.is_empty() {
            self.settle(inner, |inner| inner.forget(&digest));
            return Ok(());
        }
        let what = sentence(&texts(&failed));
        let callable = inner.registry.callable(digest);
        self.settle(inner, |inner| inner.registry.doubt(&digest, what.clone()));
        Err(CallableError::RegisterCleanupUncertain { callable, what }.into())
    }

    /// Children that run such callables and live; all of them if none lives, so that each says why.
    fn in_scope(&self, role: Role) -> Vec<EndpointIndex> {
        self.in_scope_of(&self.lock(), role)
    }

    fn in_scope_of(&self, inner: &Inner, role: Role) -> Vec<EndpointIndex> {
        let serving = (0..).map(EndpointIndex).zip(&self.scopes).filter(|(_, scope)| scope.serves(role));
        let serving: Vec<_> = serving.map(|(endpoint, _)| endpoint).collect();
        let lives = |endpoint: &EndpointIndex| {
            inner.driver.lane(*endpoint).is_some_and(|lane| lane.poison().is_none() && lane.exit().is_none())
        };
        let living: Vec<_> = serving.iter().copied().filter(lives).collect();
        if living.is_empty() { serving } else { living }
    }

    /// Asks children at the same time and waits for every answer; a death or a stop is one.
    pub(crate) fn ask<'a>(
        &'a self,
        mut inner: Guard<'a>,
        children: &[EndpointIndex],
        request: &ControlRequest,
    ) -> (Guard<'a>, Vec<Answer>) {
        let mut answers = Vec::new();
        let mut open: Vec<(EndpointIndex, Label, ControlTicket)> = Vec::new();
        let mut waiting = children.iter().copied();
        let mut next = waiting.next();
        let collect = |inner: &mut Inner| {
            // As many at once as the driver takes; the others as soon as one is answered.
            while let Some(endpoint) = next {
                let Some(label) = inner.driver.lane(endpoint).map(|lane| lane.spec().label) else {
                    next = waiting.next();
                    continue;
                };
                match inner.driver.control(endpoint, request, None, clock::now()) {
                    Ok(ticket) => open.push((endpoint, label, ticket)),
                    Err(_) => break,
                }
                next = waiting.next();
            }
            open.retain(|&(endpoint, label, ticket)| match inner.driver.control_result(ticket) {
                Some(answer) => {
                    answers.push((endpoint, label, answer));
                    false
                }
                None => true,
            });
            (open.is_empty() && next.is_none()).then_some(())
        };
        (inner, _) = self.drive(inner, None, collect);
        (inner, answers)
    }

    /// Changes the registry, and tells whoever waits for that.
    fn settle<R>(&self, mut inner: Guard<'_>, change: impl FnOnce(&mut Inner) -> R) -> R {
        let result = change(&mut inner);
        inner.changes += 1;
        self.tell_sleepers(&mut inner);
        result
    }
}

const fn removal(role: Role, digest: Digest) -> ControlRequest {
    match role {
        Role::Chip => ControlRequest::Unregister { digest },
        Role::Function | Role::Orchestration | Role::Custom => ControlRequest::PyUnregister { digest },
    }
}

/// Whether a child that lives on may still have what it was to forget.
fn is_uncertain((.., answer): &Answer) -> bool {
    matches!(answer, Err(ControlError { fault: ControlFault::Failed { .. } | ControlFault::NotSent { .. }, .. }))
}

fn texts(answers: &[Answer]) -> Vec<(Label, String)> {
    let text = |answer: &Answer| answer.2.as_ref().err().map(|error| (answer.1, error.fault.to_string()));
    answers.iter().filter_map(text).collect()
}

fn sentence(failures: &[(Label, String)]) -> String {
    failures.iter().fold(String::new(), |mut text, (label, what)| {
        let _ = write!(text, "{}{label}: {what}", if text.is_empty() { "" } else { ", " });
        text
    })
}
