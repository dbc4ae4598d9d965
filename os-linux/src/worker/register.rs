//! Registering callables.

use std::sync::Arc;

use laneway_core::chip::{Platform, RuntimeKind};
use laneway_core::wire::{CallConfig, TaskArgsView};

use super::{State, Worker};
use crate::Error;
use crate::callable::{Body, BoxError, CallableHandle, Identity};
use crate::orchestrator::Orchestrator;
use crate::registry::Registry;
use crate::sub::SubArgs;

/// What a host function looks like as a pointer.
type FunctionPointer = fn(&SubArgs<'_>) -> Result<(), BoxError>;

/// What an orchestration looks like as a pointer.
type OrchestrationPointer = fn(&mut Orchestrator<'_>, TaskArgsView<'_>, &CallConfig) -> Result<(), BoxError>;

impl Worker {
    /// Registers a host function for SUB children under a name. Whatever it captures is inherited by the children when they
    /// are forked; what they change of it stays theirs.
    ///
    /// # Errors
    /// [`Error::RegisteredTooLate`] after init: a closure reaches the children by the fork alone.
    /// [`CallableNameTaken`](crate::CallableError::CallableNameTaken) for another function that captures nothing under the
    /// same name.
    #[track_caller]
    pub fn register<F>(&self, name: &str, function: F) -> Result<CallableHandle, Error>
    where
        F: Fn(&SubArgs<'_>) -> Result<(), BoxError> + Send + Sync + 'static,
    {
        let identity = Identity::of(&function, |pointer: &FunctionPointer| (*pointer as *const ()).addr());
        let plain = identity.is_plain::<F>();
        let body = Body::Function(Arc::new(function));
        self.before_the_forks(name, |registry| registry.inherit(name, identity, plain, body))
    }

    /// Registers an orchestration for nested workers under a name: a function that builds a run on the worker that it is sent
    /// to, with that worker's own orchestrator and the arguments and config of the task.
    ///
    /// # Errors
    /// As [`Worker::register`].
    #[track_caller]
    pub fn register_orchestration<F>(&self, name: &str, function: F) -> Result<CallableHandle, Error>
    where
        F: Fn(&mut Orchestrator<'_>, TaskArgsView<'_>, &CallConfig) -> Result<(), BoxError> + Send + Sync + 'static,
    {
        let identity = Identity::of(&function, |pointer: &OrchestrationPointer| (*pointer as *const ()).addr());
        let plain = identity.is_plain::<F>();
        let body = Body::Orchestration(Arc::new(function));
        self.before_the_forks(name, |registry| registry.inherit(name, identity, plain, body))
    }

    /// Registers a chip callable: the bytes of a `ChipCallable` blob, built for `platform` and `runtime`.
    ///
    /// # Errors
    /// A sentence about what is wrong with the blob; [`Error::RegisteredTooLate`] after init.
    pub fn register_chip(
        &self,
        platform: Platform,
        runtime: RuntimeKind,
        blob: &[u8],
    ) -> Result<CallableHandle, Error> {
        self.before_the_forks("a chip callable", |registry| registry.chip(platform, runtime, blob))
    }

    fn before_the_forks(
        &self,
        name: &str,
        register: impl FnOnce(&mut Registry) -> Result<CallableHandle, Error>,
    ) -> Result<CallableHandle, Error> {
        match &mut *self.state() {
            State::New { registry, .. } | State::Attached { registry, .. } => register(registry),
            other => Err(Error::RegisteredTooLate { name: name.to_owned(), state: other.name() }),
        }
    }
}
