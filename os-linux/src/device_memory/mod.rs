//! Memory of chip children, asked for by worker id (C-16).

mod books;

use laneway_core::chip::{Call, DeviceAddress};
use laneway_core::engine::Memory;
use laneway_core::ids::WorkerId;
use laneway_core::lane::Label;
use laneway_core::wire::ByteRange;
use laneway_core::wire::control::{ControlRequest, CopySpan};

use crate::element::Element;
use crate::error::Leftover;
use crate::live::{Inner, Live};
use crate::sys::clock;
use crate::{Error, Tensor, Worker};

pub(crate) use books::DeviceBooks;

impl Worker {
    /// Allocates memory on the chip of `worker`.
    ///
    /// ```no_run
    /// # use laneway_linux::{AddressSpace, ChipTensor, Dtype, Error, Tensor, Worker, WorkerId};
    /// # fn example(worker: &Worker, chip: WorkerId, x: &Tensor<f32>) -> Result<(), Error> {
    /// let there = worker.malloc(chip, 4096)?;
    /// worker.copy_to(chip, there, x)?;
    /// // An argument for tasks of this chip, and of no other.
    /// let on_device = ChipTensor::contiguous(there.0, 4096, Dtype::F32, &[1024], AddressSpace::Device)?;
    /// worker.free(chip, there)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// No such worker; [`Error::Control`] with what the chip says, out of memory for one.
    pub fn malloc(&self, worker: WorkerId, bytes: u64) -> Result<DeviceAddress, Error> {
        let live = self.live("malloc")?;
        live.lock().devices.ledger(worker)?;
        let base = DeviceAddress(live.control(worker, &ControlRequest::Malloc { bytes })?);
        live.lock().devices.ledger(worker)?.enter(base, bytes)?;
        Ok(base)
    }

    /// Frees the allocation with exactly this base: at once, or when no unfinished task names it any more.
    ///
    /// # Errors
    /// [`Error::Chip`] if it is no live allocation of this worker, or not its base; nothing was sent then. [`Error::Control`]
    /// with what the chip says; the allocation is live as before, unless that says otherwise.
    pub fn free(&self, worker: WorkerId, base: DeviceAddress) -> Result<(), Error> {
        let live = self.live("free")?;
        let mut inner = live.lock();
        let bytes = inner.devices.ledger(worker)?.begin_free(base)?;
        if inner.names_on_device(worker, base, bytes) {
            inner.devices.defer();
            return Ok(());
        }
        // Another thread may be given the same memory before this one hears that it is free.
        let request = inner.devices.ledger(worker)?.request_free(base);
        drop(inner);
        let answer = live.control(worker, &ControlRequest::Free { address: base.0 });
        live.lock().devices.settle_free(worker, request, answer.is_ok());
        answer.map(drop)
    }

    /// Copies a shared tensor to the chip of `worker`.
    ///
    /// # Errors
    /// [`Error::Chip`] unless the range lies in one live allocation of this worker; [`Error::InUse`] if an unfinished task
    /// names bytes of either side. Nothing was sent then.
    pub fn copy_to<T: Element>(&self, worker: WorkerId, to: DeviceAddress, from: &Tensor<T>) -> Result<(), Error> {
        let host = from.as_arg().byte_range();
        let live = self.live("copy_to")?;
        live.check_copy(Call::CopyTo, worker, to, host)?;
        let span = CopySpan::Addresses { dst: to.0, src: host.start, nbytes: host.len() };
        live.control(worker, &ControlRequest::CopyTo(span)).map(drop)
    }

    /// Copies from the chip of `worker` into a shared tensor.
    ///
    /// # Errors
    /// As [`Worker::copy_to`].
    pub fn copy_from<T: Element>(&self, worker: WorkerId, to: &Tensor<T>, from: DeviceAddress) -> Result<(), Error> {
        let host = to.as_arg().byte_range();
        let live = self.live("copy_from")?;
        live.check_copy(Call::CopyFrom, worker, from, host)?;
        let span = CopySpan::Addresses { dst: host.start, src: from.0, nbytes: host.len() };
        live.control(worker, &ControlRequest::CopyFrom(span)).map(drop)
    }

    /// Bytes in use on the chip of `worker`, for anything.
    ///
    /// # Errors
    /// No such worker; [`Error::Control`].
    pub fn committed_device_memory(&self, worker: WorkerId) -> Result<u64, Error> {
        self.live("committed_device_memory")?.control(worker, &ControlRequest::CommittedDeviceMemory)
    }

    /// What has not been freed on the chip of `worker`: base and bytes. It goes with its child when the worker closes, which
    /// then reports it.
    ///
    /// # Errors
    /// No such worker.
    pub fn live_device_memory(&self, worker: WorkerId) -> Result<Vec<(DeviceAddress, u64)>, Error> {
        let live = self.live("live_device_memory")?;
        let mut inner = live.lock();
        Ok(inner.devices.ledger(worker)?.live().collect())
    }
}

impl Live {
    /// Sends a control to a NEXT_LEVEL worker and waits for its answer, driving progress meanwhile.
    fn control(&self, worker: WorkerId, request: &ControlRequest) -> Result<u64, Error> {
        self.refuse_subscribers("a control")?;
        let mut inner = self.lock();
        let endpoint = inner.devices.endpoint(worker)?;
        let ticket = inner.driver.control(endpoint, request, None, clock::now())?;
        loop {
            let answer;
            (inner, answer) = self.drive(inner, None, |inner| inner.driver.control_result(ticket));
            if let Some(answer) = answer {
                return Ok(answer?);
            }
        }
    }

    fn check_copy(&self, call: Call, worker: WorkerId, address: DeviceAddress, host: ByteRange) -> Result<(), Error> {
        let mut inner = self.lock();
        inner.devices.ledger(worker)?.check(call, address, host.len())?;
        self.stir(&mut inner);
        if inner.names_on_device(worker, address, host.len()) {
            return Err(Error::InUse { start: address.0, end: address.0 + host.len() });
        }
        if inner.names(&(host.start..host.end)) {
            return Err(Error::InUse { start: host.start, end: host.end });
        }
        Ok(())
    }
}

impl Inner {
    /// Memory that was never freed, of chips that live (C-16).
    pub(crate) fn left_on_chips(&self) -> Vec<(Label, Leftover)> {
        let left = self.devices.left().filter_map(|(endpoint, left)| {
            let lane = self.driver.lane(endpoint).filter(|lane| lane.exit().is_none())?;
            Some((lane.spec().label, left))
        });
        left.collect()
    }

    /// Whether an unfinished task of `worker` names any of these bytes.
    fn names_on_device(&self, worker: WorkerId, address: DeviceAddress, bytes: u64) -> bool {
        let range = ByteRange { start: address.0, end: address.0.saturating_add(bytes) };
        self.driver.engine().unfinished_names(Memory::Device(worker), range)
    }
}
