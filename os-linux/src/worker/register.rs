//! Registering callables.

use std::path::Path;
use std::sync::Arc;

use laneway_core::chip::{Platform, RuntimeKind};
use laneway_core::wire::{CallConfig, TaskArgsView};

use super::{State, Worker};
use crate::callable::{Body, BoxError, CallableHandle, Identity};
use crate::error::{CallableError, Error};
use crate::late::{Late, LateFn, LateOrchestration, Target};
use crate::orchestrator::Orchestrator;
use crate::registry::{Left, Registry, chip_digest};
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

    /// Registers a chip callable, at any time: the bytes of a `ChipCallable` blob, built for `platform` and `runtime`. After
    /// init it returns when every chip of this worker and below it has it, or has failed.
    ///
    /// # Errors
    /// A sentence about what is wrong with the blob;
    /// [`RegisterPartialFailure`](crate::CallableError::RegisterPartialFailure) if a child could not install it: no child has
    /// it then.
    pub fn register_chip(
        &self,
        platform: Platform,
        runtime: RuntimeKind,
        blob: &[u8],
    ) -> Result<CallableHandle, Error> {
        match self.before_the_forks("a chip callable", |registry| registry.chip(platform, runtime, blob)) {
            Err(Error::RegisteredTooLate { .. }) => {}
            registered => return registered,
        }
        let live = self.live("register_chip")?;
        live.register_chip(chip_digest(platform, runtime, blob)?, blob)
    }

    /// Registers a host function with the data that it is to be called with, at any time. Unlike a closure it reaches children
    /// that exist already: they are this very program, so the function is there, and the bytes are sent.
    ///
    /// ```no_run
    /// use laneway_linux::{BoxError, SubArgs, Worker};
    ///
    /// fn scale(args: &SubArgs<'_>, captured: &[u8]) -> Result<(), BoxError> {
    ///     let (x, factor) = (args.tensor::<f32>(0)?, f32::from_le_bytes(captured.try_into()?));
    ///     x.fill_with(|i| x.get(i).unwrap_or(0.0) * factor);
    ///     Ok(())
    /// }
    ///
    /// # fn example(worker: &Worker) -> Result<(), laneway_linux::Error> {
    /// let triple = worker.register_fn("scale", 1, scale, &3_f32.to_le_bytes())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`NotInImage`](crate::CallableError::NotInImage) after init for a function of a library that was loaded since;
    /// [`CallableNameTaken`](crate::CallableError::CallableNameTaken);
    /// [`RegisterPartialFailure`](crate::CallableError::RegisterPartialFailure).
    pub fn register_fn(
        &self,
        name: &str,
        version: u32,
        function: LateFn,
        captured: &[u8],
    ) -> Result<CallableHandle, Error> {
        self.register_late(name, version, Target::Function(function), captured)
    }

    /// As [`Worker::register_fn`], for an orchestration on nested workers.
    ///
    /// # Errors
    /// As there.
    pub fn register_orchestration_fn(
        &self,
        name: &str,
        version: u32,
        function: LateOrchestration,
        captured: &[u8],
    ) -> Result<CallableHandle, Error> {
        self.register_late(name, version, Target::Orchestration(function), captured)
    }

    /// Registers a function of a shared library for SUB children, at any time. Each child loads the library by itself; this
    /// process does not.
    ///
    /// # Safety
    /// The symbol is a function `int f(const struct NativeCall *)` that keeps to what [`NativeCall`](crate::NativeCall) says, and
    /// it is sound to load the library.
    ///
    /// # Errors
    /// As [`Worker::register_fn`]; a library or a symbol that is not there fails init, or the registration.
    #[expect(unsafe_code, reason = "the caller promises what nobody here can check")]
    pub unsafe fn register_symbol(
        &self,
        name: &str,
        version: u32,
        library: &Path,
        symbol: &str,
        captured: &[u8],
    ) -> Result<CallableHandle, Error> {
        let path = library.to_str().ok_or_else(|| CallableError::Library {
            path: library.display().to_string(),
            symbol: symbol.to_owned(),
            reason: "the path is not UTF-8".to_owned(),
        })?;
        let target = Target::Symbol { path: path.to_owned(), symbol: symbol.to_owned() };
        self.register_late(name, version, target, captured)
    }

    fn register_late(
        &self,
        name: &str,
        version: u32,
        target: Target,
        captured: &[u8],
    ) -> Result<CallableHandle, Error> {
        let late = Late { name: name.to_owned(), version, target, captured: captured.to_vec() };
        match self.before_the_forks(name, |registry| registry.inherit_late(late.clone())) {
            Err(Error::RegisteredTooLate { .. }) => self.live("register")?.register_late(&late),
            registered => registered,
        }
    }

    /// Ends a registration, at any time: submits with this handle are refused from now on. The last handle of a callable takes
    /// it out of the children, after every task that calls it has ended; this waits for that (R-7).
    ///
    /// # Errors
    /// [`CallableHandleMutated`](crate::CallableError::CallableHandleMutated) for a handle that is not this worker's or was
    /// unregistered; [`RegisterCleanupUncertain`](crate::CallableError::RegisterCleanupUncertain) if a child could not forget it.
    pub fn unregister(&self, handle: &CallableHandle) -> Result<(), Error> {
        if let State::New { registry, .. } | State::Attached { registry, .. } = &mut *self.state() {
            if registry.leave(handle)? == Left::Last {
                registry.forget(handle.digest());
            }
            return Ok(());
        }
        self.live("unregister")?.unregister(handle)
    }

    pub(super) fn before_the_forks(
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
