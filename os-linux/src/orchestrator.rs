//! What a run's callback submits with.

use std::borrow::Borrow;
use std::time::Duration;

use laneway_core::engine::{Allocated, EngineError, FailureKind, Submission, Target};
use laneway_core::ids::{RunId, TaskSlot, WorkerId};
use laneway_core::model::TaskArgs;
use laneway_core::time::Instant;
use laneway_core::wire::{AddressSpace, CallConfig, ChipTensor, Digest};

use crate::callable::{CallableHandle, CallableName, Role};
use crate::element::Element;
use crate::error::{CallableError, Error};
use crate::live::{Guard, Inner, Live};
use crate::sys::clock;
use crate::tensor::bytes_of;

/// Builds one run: submits tasks, allocates scratch memory, waits for part of the graph.
///
/// The order between tasks comes from the tags of their arguments alone. There is no edge from a read to a later pure
/// `output` of the same bytes: overwriting is the caller's statement that nobody needs the old value any more (E-19).
pub struct Orchestrator<'a> {
    live: &'a Live,
    run: RunId,
    deadline: Option<Duration>,
}

/// The tensors that a submit allocated: those given as `output` with address 0, in argument and member order.
pub type Outputs = Vec<ChipTensor>;

impl<'a> Orchestrator<'a> {
    pub(crate) fn new(live: &'a Live, run: RunId) -> Self {
        Self { live, run, deadline: None }
    }

    /// The run that is being built.
    #[must_use]
    pub fn run(&self) -> RunId {
        self.run
    }

    /// The chip callable that the worker above registered and passed on to this one, by the text form of its digest (R-9).
    ///
    /// # Errors
    /// [`HashidFormatInvalid`](crate::CallableError::HashidFormatInvalid); a callable that was not passed on, or is not any more.
    pub fn passed_on(&self, hashid: &str) -> Result<CallableHandle, Error> {
        self.live.refuse_a_copy()?;
        let invalid = |_| CallableError::HashidFormatInvalid { text: hashid.to_owned() };
        let digest: Digest = hashid.parse().map_err(invalid)?;
        let why = "the worker above did not pass it on";
        let unknown = CallableError::CallableHandleMutated { callable: CallableName::unnamed(digest), why };
        Ok(self.live.lock().registry.handle_from_above(&digest).ok_or(unknown)?)
    }

    /// Each task that is submitted from here on must end within `deadline` of its dispatch, whatever it runs; `None`, as at
    /// the beginning, lets it take for ever. The child of one that does not is given up as lost and killed, and its worker
    /// is dead (E-43, C-15).
    pub fn set_deadline(&mut self, deadline: Option<Duration>) {
        self.deadline = deadline;
    }

    /// Submits a task to exactly this NEXT_LEVEL worker, with the all-zero config.
    ///
    /// # Errors
    /// A sentence about the argument, the callable or the worker that is wrong; nothing was submitted then. A full ring or
    /// window is waited for, up to the allocation timeout (E-13).
    pub fn submit_next_level(
        &mut self,
        callable: &CallableHandle,
        worker: WorkerId,
        args: impl Borrow<TaskArgs>,
    ) -> Result<Outputs, Error> {
        self.submit(callable, Target::NextLevel(worker), None, &[args.borrow()])
    }

    /// As [`Orchestrator::submit_next_level`], with a config.
    ///
    /// # Errors
    /// As there; also for a config field out of range.
    pub fn submit_next_level_with(
        &mut self,
        callable: &CallableHandle,
        worker: WorkerId,
        args: impl Borrow<TaskArgs>,
        config: &CallConfig,
    ) -> Result<Outputs, Error> {
        self.submit(callable, Target::NextLevel(worker), Some(config), &[args.borrow()])
    }

    /// Submits one member to each of `workers`, which start together; `args` has one list for each (E-24, E-31).
    ///
    /// ```no_run
    /// # use laneway_linux::{BoxError, CallableHandle, Orchestrator, TaskArgs, Tensor, WorkerId};
    /// # fn example(
    /// #     orch: &mut Orchestrator<'_>, add: &CallableHandle, chips: [WorkerId; 2], x: &Tensor<f32>, y: &Tensor<f32>,
    /// # ) -> Result<(), BoxError> {
    /// let (mut first, mut second) = (TaskArgs::new(), TaskArgs::new());
    /// first.inout(x);
    /// second.inout(y);
    /// orch.submit_next_level_group(add, &chips, &[&first, &second], None)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Orchestrator::submit_next_level`]; also for a worker named twice.
    pub fn submit_next_level_group(
        &mut self,
        callable: &CallableHandle,
        workers: &[WorkerId],
        args: &[&TaskArgs],
        config: Option<&CallConfig>,
    ) -> Result<Outputs, Error> {
        self.submit(callable, Target::NextLevelGroup(workers), config, args)
    }

    /// Submits a task to whichever SUB child is free.
    ///
    /// # Errors
    /// As [`Orchestrator::submit_next_level`].
    pub fn submit_sub(&mut self, callable: &CallableHandle, args: impl Borrow<TaskArgs>) -> Result<Outputs, Error> {
        self.submit(callable, Target::Sub, None, &[args.borrow()])
    }

    /// Submits one member to each of as many distinct SUB children as there are lists; they start together.
    ///
    /// # Errors
    /// As [`Orchestrator::submit_next_level`]; also for more members than SUB children.
    pub fn submit_sub_group(&mut self, callable: &CallableHandle, args: &[&TaskArgs]) -> Result<Outputs, Error> {
        self.submit(callable, Target::SubGroup, None, args)
    }

    /// A tensor of zero or more earlier bytes from the heap ring of the current scope. It lives until the scope has ended
    /// and no task that names any of its bytes is left (E-27).
    ///
    /// # Errors
    /// A shape without elements or larger than the ring; a full ring after the allocation timeout.
    pub fn alloc<T: Element>(&mut self, shape: &[u32]) -> Result<ChipTensor, Error> {
        let bytes = bytes_of::<T>(shape)?;
        let run = self.run;
        let (inner, address) = self.retry(|inner| inner.driver.engine_mut().alloc(run, bytes))?;
        drop(inner);
        Ok(ChipTensor::contiguous(address, bytes, T::DTYPE, shape, AddressSpace::Host)?)
    }

    /// Runs `body` in a scope of its own: what it allocates and what its tasks allocate is released when it returns, as
    /// soon as no task needs it any more. Ending a scope never waits (E-28).
    ///
    /// ```no_run
    /// # use laneway_linux::{BoxError, CallableHandle, Orchestrator, TaskArgs, Tensor};
    /// # fn example(orch: &mut Orchestrator<'_>, copy: &CallableHandle, x: &Tensor<f32>) -> Result<(), BoxError> {
    /// orch.scope(|orch| {
    ///     let scratch = orch.alloc::<f32>(&[1024])?;
    ///     orch.submit_sub(copy, TaskArgs::new().input(x).output(scratch))?;
    ///     orch.submit_sub(copy, TaskArgs::new().input(scratch).output(x))?;
    ///     Ok::<_, BoxError>(())
    /// })?; // `scratch` goes when both tasks have ended
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Nesting deeper than 64; what `body` returns.
    pub fn scope<R, E: From<Error>>(&mut self, body: impl FnOnce(&mut Self) -> Result<R, E>) -> Result<R, E> {
        let run = self.run;
        self.live.refuse_a_copy()?;
        self.live.lock().driver.engine_mut().scope_begin(run).map_err(Error::from)?;
        // Ended also when `body` fails or panics.
        let scope = Scope { live: self.live, run };
        let result = body(self);
        drop(scope);
        result
    }

    /// The graph of the run so far in the DOT language; see [`RunHandle::dot`](crate::RunHandle::dot).
    ///
    /// # Errors
    /// [`Error::NotRecorded`] unless the worker keeps graphs.
    pub fn dot(&self) -> Result<String, Error> {
        self.live.refuse_a_copy()?;
        self.live.lock().dot(self.run)
    }

    /// Blocks until no unfinished task of this run names bytes of `tensors`, driving progress meanwhile (E-2).
    ///
    /// ```no_run
    /// # use laneway_linux::{BoxError, CallableHandle, Orchestrator, TaskArgs, Tensor};
    /// # fn example(orch: &mut Orchestrator<'_>, step: &CallableHandle, loss: &Tensor<f32>) -> Result<(), BoxError> {
    /// // A graph that depends on what its own first part found.
    /// while loss.to_vec()?[0] > 0.01 {
    ///     orch.submit_sub(step, TaskArgs::new().inout(loss))?;
    ///     orch.wait(&[loss.as_arg()])?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error of a task that failed, or of the run if it was cancelled.
    pub fn wait(&mut self, tensors: &[ChipTensor]) -> Result<(), Error> {
        let run = self.run;
        self.live.refuse_a_copy()?;
        // Looked at from the first task that was unfinished last time, so that a whole wait sees each task about once.
        let mut from = TaskSlot(0);
        let inner = self.live.lock();
        let (inner, _) =
            self.live.drive(inner, None, |inner| match inner.driver.engine().unfinished_naming(run, tensors, from) {
                Some(task) => {
                    from = task;
                    None
                }
                None => Some(()),
            });
        match inner.driver.engine().failure_naming(run, tensors) {
            Some(message) => Err(self.live.run_failed(run, FailureKind::Task, message)),
            None => Ok(()),
        }
    }

    fn submit(
        &mut self,
        callable: &CallableHandle,
        target: Target<'_>,
        config: Option<&CallConfig>,
        members: &[&TaskArgs],
    ) -> Result<Outputs, Error> {
        let run = self.run;
        let (mut outputs, mut began) = (Outputs::new(), None);
        let submission = Submission { target, digest: callable.digest(), config, members, deadline: self.deadline };
        let (mut inner, ()) = self.retry(|inner| {
            began = began.or_else(|| inner.driver.observer_mut().submit_begins());
            self.check(inner, callable, target)?;
            check_devices(inner, target, members)?;
            let place = &mut |at: Allocated| outputs.extend(placed(members, &at));
            inner.driver.engine_mut().submit(run, &submission, place).map_err(Error::from)
        })?;
        inner.task_submitted(run, &submission, began);
        self.live.submitted(&mut inner, run);
        Ok(outputs)
    }

    /// Refuses a handle that the target's kind of child does not run (R-12).
    fn check(&self, inner: &Inner, callable: &CallableHandle, target: Target<'_>) -> Result<(), Error> {
        let check = |worker: WorkerId| match self.live.next_level.get(worker.get() as usize) {
            Some(role) => inner.registry.check(callable, *role),
            None => Err(EngineError::UnknownWorker { worker }.into()),
        };
        match target {
            Target::Sub | Target::SubGroup => inner.registry.check(callable, Role::Function),
            Target::NextLevel(id) => check(id),
            Target::NextLevelGroup(ids) => ids.iter().try_for_each(|id| check(*id)),
        }
    }

    /// Does `attempt`, again and again while a pool is full and something may still free it, up to the allocation timeout.
    fn retry<R, E: Into<Error>>(
        &self,
        mut attempt: impl FnMut(&mut Inner) -> Result<R, E>,
    ) -> Result<(Guard<'a>, R), Error> {
        self.live.refuse_a_copy()?;
        let mut inner = self.live.lock();
        let mut deadline: Option<Instant> = None;
        loop {
            let error = match attempt(&mut inner) {
                Ok(done) => return Ok((inner, done)),
                Err(error) => error.into(),
            };
            if !matches!(error, Error::Engine(EngineError::Blocked { may_free: true, .. })) {
                return Err(error);
            }
            let until = *deadline.get_or_insert_with(|| clock::now().saturating_add(self.live.config.alloc_timeout));
            let seen = inner.changes;
            let changed;
            (inner, changed) = self.live.drive(inner, Some(until), |inner| (inner.changes != seen).then_some(()));
            if changed.is_none() {
                return Err(error);
            }
        }
    }
}

/// A DEVICE tensor goes to the worker that owns its memory, and to no other (C-16).
fn check_devices(inner: &mut Inner, target: Target<'_>, members: &[&TaskArgs]) -> Result<(), Error> {
    match target {
        Target::NextLevel(id) => members.iter().try_for_each(|args| inner.devices.check(id, args)),
        Target::NextLevelGroup(ids) => {
            ids.iter().zip(members).try_for_each(|(id, args)| inner.devices.check(*id, args))
        }
        // The engine refuses device memory there.
        Target::Sub | Target::SubGroup => Ok(()),
    }
}

/// Ends a scope, also on the way out of a panic.
struct Scope<'a> {
    live: &'a Live,
    run: RunId,
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        // A process that the callback forked may find the lock held for ever.
        if self.live.is_inherited() {
            return;
        }
        // Refused only for a run that takes no more work; its scopes were released with it.
        let _ = self.live.lock().driver.engine_mut().scope_end(self.run);
    }
}

/// The tensor that was allocated for an argument.
fn placed(members: &[&TaskArgs], at: &Allocated) -> Option<ChipTensor> {
    let asked = members.get(at.member.index())?.tensors().get(at.tensor)?;
    asked.with_address(at.address).ok()
}
