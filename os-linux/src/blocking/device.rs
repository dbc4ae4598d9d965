//! What a blocking device does itself.

use laneway_core::chip::Reason;
use laneway_core::wire::ChipCallable;

use super::{DeviceMemory, RunArgs};
use crate::callable::BoxError;

/// A device that is driven by a call which returns when the work is done.
///
/// All calls take `&self`: the run is made on a thread of its own while the child goes on answering its parent, which may
/// ask for device memory meanwhile. One run at a time is made, and nothing is loaded while one is prepared (C-8, L-12).
///
/// ```
/// use laneway_linux::{BlockingDevice, BoxError, ChipCallable, RunArgs, RunError};
///
/// struct Doubler;
///
/// impl BlockingDevice for Doubler {
///     type Callable = ();
///
///     fn load(&self, callable: &ChipCallable<'_>) -> Result<(), BoxError> {
///         if callable.func_name() == "double" { Ok(()) } else { Err("only `double` is known".into()) }
///     }
///
///     fn run(&self, _: &(), args: &RunArgs<'_>) -> Result<(), RunError> {
///         let (x, y) = (args.tensor::<f32>(0)?, args.tensor::<f32>(1)?);
///         y.fill_with(|i| 2.0 * x.get(i).unwrap_or_default());
///         Ok(())
///     }
/// }
/// ```
pub trait BlockingDevice: Send + Sync + 'static {
    /// What the device keeps of a callable while it is registered; dropped when it is unregistered.
    type Callable: Send + Sync + 'static;

    /// Judges a callable and loads it. Its bytes came from outside; its header has been judged (C-14).
    ///
    /// # Errors
    /// Why the device cannot run it. A [`ChipError`](laneway_core::chip::ChipError) is passed on as it is.
    fn load(&self, callable: &ChipCallable<'_>) -> Result<Self::Callable, BoxError>;

    /// Judges the arguments of a run before anything is started. Their number fits the callable, host tensors lie in memory
    /// that the device may touch, and DEVICE tensors in live allocations of it.
    ///
    /// # Errors
    /// What is wrong with them: the task fails and leaves nothing behind. A [`ChipError`](laneway_core::chip::ChipError) is
    /// passed on as it is.
    fn check(&self, _callable: &Self::Callable, _args: &RunArgs<'_>) -> Result<(), BoxError> {
        Ok(())
    }

    /// Does the work of a run, and returns when it is done. It may take as long as it likes, even for ever: its submitter
    /// can give it a deadline (C-15).
    ///
    /// # Errors
    /// [`RunError`]; `?` makes one of any error, which says that the run failed and the device goes on. A panic is taken for
    /// [`RunError::Unproven`].
    fn run(&self, callable: &Self::Callable, args: &RunArgs<'_>) -> Result<(), RunError>;

    /// The memory of the device; without one every call about device memory is refused.
    fn memory(&self) -> Option<&dyn DeviceMemory> {
        None
    }
}

/// How a run ended that did not end well.
///
/// Every error, and every text, becomes [`Failed`](Self::Failed) by `?` or `into`; one that is a
/// [`ChipError::Unproven`](laneway_core::chip::ChipError::Unproven) is taken for what it says. Of its text at most 88
/// bytes are told; a longer one ends with an ellipsis.
#[derive(Debug)]
pub enum RunError {
    /// The work is over and went wrong. The task fails, and the device goes on.
    Failed(BoxError),
    /// The device may still be at work, after a time-out of its driver for one. Nothing that it can reach is used again, its
    /// child leaves and its endpoint is dead (C-9).
    Unproven(BoxError),
}

impl RunError {
    /// That the device may still be at work.
    pub fn unproven(error: impl Into<BoxError>) -> Self {
        Self::Unproven(error.into())
    }
}

impl<E: Into<BoxError>> From<E> for RunError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// As much of an error as is reported.
pub(super) fn reason(error: &BoxError) -> Reason {
    Reason::new(format_args!("{error}"))
}

/// As much of the text of a panic.
pub(super) fn panicked(text: &str) -> Reason {
    Reason::new(format_args!("panic: {text}"))
}
