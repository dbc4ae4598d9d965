//! The child's half of a mailbox, as the cases see it.

use laneway_core::chip::DeviceRuntime;
use laneway_core::mailbox::Words;
use laneway_core::serve::{Child, ChildSpec, ChipRunner, NoBell, Served};
use laneway_core::wire::Digest;

use crate::backend::BoxError;

/// A child half around a device.
pub trait ChildHalf {
    /// One bounded round.
    fn step(&mut self) -> Served;
}

/// The child half of laneway-core.
pub struct CoreChild<'a, W: Words> {
    child: Box<Child<W, ChipRunner<'a>>>,
}

impl<W: Words> std::fmt::Debug for CoreChild<'_, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoreChild").finish_non_exhaustive()
    }
}

impl<'a, W: Words> CoreChild<'a, W> {
    /// One that serves `words` with `device`, on which these callables are installed first.
    ///
    /// # Errors
    /// A callable that the device refuses.
    pub fn new(
        words: W,
        device: &'a mut dyn DeviceRuntime,
        callables: &[(Digest, Vec<u8>)],
        spec: ChildSpec,
    ) -> Result<Self, BoxError> {
        let mut runner = ChipRunner::new(device);
        for (digest, blob) in callables {
            runner.register(*digest, blob)?;
        }
        Ok(Self { child: Box::new(Child::new(words, runner, spec)) })
    }
}

impl<W: Words> ChildHalf for CoreChild<'_, W> {
    fn step(&mut self) -> Served {
        self.child.step(&mut NoBell)
    }
}
