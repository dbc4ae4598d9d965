//! What the cases share.

use laneway_core::wire::{ArgDirection, ChipCallableSource};
use laneway_linux::{BlockingDevice, BoxError, CallableHandle, Chip, Platform, RuntimeKind, Worker, WorkerId};

/// A device of the tests' own names a simulation platform: one task frame, the depth of its contract.
const PLATFORM: Platform = Platform::A5Sim;
const KIND: RuntimeKind = RuntimeKind::HostBuildGraph;

/// A callable that takes one tensor.
pub(crate) fn blob(name: &str) -> Vec<u8> {
    let source = ChipCallableSource { func_name: name, signature: &[ArgDirection::InOut], ..Default::default() };
    let mut blob = vec![0; source.encoded_len().unwrap()];
    source.encode(&mut blob).unwrap();
    blob
}

/// A ready worker with one chip child around a device, and its one callable.
pub(crate) fn worker<D: BlockingDevice>(
    open: impl Fn() -> Result<D, BoxError> + Send + 'static,
) -> (Worker, WorkerId, CallableHandle) {
    let worker = crate::harness::builder!().build().unwrap();
    let chip = worker.add_chip(Chip::blocking(PLATFORM, KIND, open)).unwrap();
    let callable = worker.register_chip(PLATFORM, KIND, &blob("it")).unwrap();
    worker.init().unwrap();
    (worker, chip, callable)
}
