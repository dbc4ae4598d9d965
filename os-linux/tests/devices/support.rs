//! What the cases share.

use laneway_core::wire::{ArgDirection, ChipCallableSource};
use laneway_linux::{BlockingDevice, BoxError, CallableHandle, Chip, Platform, RuntimeKind, Worker, WorkerId};

/// A device of the tests' own names a simulation platform: one task frame, the depth of its contract.
pub(crate) const PLATFORM: Platform = Platform::A5Sim;
pub(crate) const KIND: RuntimeKind = RuntimeKind::HostBuildGraph;

/// A ready worker with one chip child around a device, and its one callable.
pub(crate) fn worker<D: BlockingDevice>(
    open: impl Fn() -> Result<D, BoxError> + Send + 'static,
) -> (Worker, WorkerId, CallableHandle) {
    let worker = crate::harness::builder!().build().unwrap();
    let chip = add_chip(&worker, open);
    let callable = register(&worker);
    worker.init().unwrap();
    (worker, chip, callable)
}

pub(crate) fn add_chip<D: BlockingDevice>(
    worker: &Worker,
    open: impl Fn() -> Result<D, BoxError> + Send + 'static,
) -> WorkerId {
    worker.add_chip(Chip::blocking(PLATFORM, KIND, open)).unwrap()
}

/// A callable that takes one tensor.
pub(crate) fn register(worker: &Worker) -> CallableHandle {
    let source = ChipCallableSource { func_name: "it", signature: &[ArgDirection::InOut], ..Default::default() };
    let mut blob = vec![0; source.encoded_len().unwrap()];
    source.encode(&mut blob).unwrap();
    worker.register_chip(PLATFORM, KIND, &blob).unwrap()
}
