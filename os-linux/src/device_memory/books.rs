//! What is live on which chip, and the frees that wait for tasks.

use laneway_core::chip::{Call, DeviceAddress, DeviceLedger, FreeRequest};
use laneway_core::driver::{ControlTicket, Driver, Observer};
use laneway_core::engine::{EngineError, Memory};
use laneway_core::ids::{EndpointIndex, WorkerId};
use laneway_core::mailbox::Words;
use laneway_core::model::TaskArgs;
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::{AddressSpace, ByteRange};

use crate::error::{Error, Leftover};
use crate::sys::clock;

/// The ledgers of all NEXT_LEVEL workers.
pub(crate) struct DeviceBooks {
    /// By worker id, which is also the endpoint's index: NEXT_LEVEL workers come first.
    ledgers: Box<[DeviceLedger]>,
    /// Whether a free waits for tasks that name its allocation.
    deferred: bool,
    /// Deferred frees that were sent.
    sent: Vec<(WorkerId, FreeRequest, ControlTicket)>,
}

impl DeviceBooks {
    /// For this many NEXT_LEVEL workers.
    pub(crate) fn new(workers: usize) -> Self {
        Self { ledgers: (0..workers).map(|_| DeviceLedger::new()).collect(), deferred: false, sent: Vec::new() }
    }

    /// What is live on a worker.
    pub(crate) fn ledger(&mut self, worker: WorkerId) -> Result<&mut DeviceLedger, Error> {
        self.ledgers.get_mut(worker.get() as usize).ok_or_else(|| EngineError::UnknownWorker { worker }.into())
    }

    /// Where controls for a worker go.
    pub(crate) fn endpoint(&self, worker: WorkerId) -> Result<EndpointIndex, Error> {
        let index = worker.get() as usize;
        let known = index < self.ledgers.len();
        known.then_some(EndpointIndex(index as u16)).ok_or_else(|| EngineError::UnknownWorker { worker }.into())
    }

    /// What was never freed, by worker.
    pub(crate) fn left(&self) -> impl Iterator<Item = (EndpointIndex, Leftover)> + '_ {
        (0..).map(EndpointIndex).zip(&self.ledgers).filter_map(|(endpoint, ledger)| {
            // What waits for a task or an answer was freed as far as its user is concerned.
            let (allocations, bytes) = ledger.held().fold((0, 0), |(n, sum), (_, bytes)| (n + 1, sum + bytes));
            (allocations > 0).then_some((endpoint, Leftover { allocations, bytes }))
        })
    }

    /// Refuses a DEVICE tensor that does not lie in live memory of the worker that it is submitted to.
    pub(crate) fn check(&mut self, worker: WorkerId, args: &TaskArgs) -> Result<(), Error> {
        for tensor in args.tensors().iter().filter(|tensor| tensor.address_space() == AddressSpace::Device) {
            let range = tensor.byte_range();
            self.ledger(worker)?.check(Call::Prepare, DeviceAddress(range.start), range.len())?;
        }
        Ok(())
    }

    /// A free waits from now on.
    pub(crate) fn defer(&mut self) {
        self.deferred = true;
    }

    /// A free was answered.
    pub(crate) fn settle_free(&mut self, worker: WorkerId, request: FreeRequest, freed: bool) {
        if let Ok(ledger) = self.ledger(worker) {
            if freed { ledger.freed(request) } else { ledger.free_failed(request) }
        }
    }

    /// Takes the answers to deferred frees that were sent.
    #[inline]
    pub(crate) fn take_answers<W: Words, O: Observer>(&mut self, driver: &mut Driver<W, O>) {
        if self.sent.is_empty() {
            return;
        }
        let mut at = 0;
        while let Some((.., ticket)) = self.sent.get(at) {
            match driver.control_result(*ticket) {
                None => at += 1,
                Some(answer) => {
                    let (worker, request, _) = self.sent.swap_remove(at);
                    self.settle_free(worker, request, answer.is_ok());
                }
            }
        }
    }

    /// Sends the deferred frees that no task stands in the way of any more. Call it when one has ended.
    #[inline]
    pub(crate) fn send_due<W: Words, O: Observer>(&mut self, driver: &mut Driver<W, O>) {
        if std::mem::take(&mut self.deferred) {
            self.send_deferred(driver);
        }
    }

    #[cold]
    fn send_deferred<W: Words, O: Observer>(&mut self, driver: &mut Driver<W, O>) {
        let Self { ledgers, deferred, sent } = self;
        for (index, ledger) in ledgers.iter_mut().enumerate() {
            let Some(worker) = WorkerId::new(index as i32) else { continue };
            let mut free = Vec::new();
            for (base, bytes) in ledger.freeing() {
                let range = ByteRange { start: base.0, end: base.0.saturating_add(bytes) };
                let request = ControlRequest::Free { address: base.0 };
                if driver.engine().unfinished_names(Memory::Device(worker), range) {
                    *deferred = true;
                    continue;
                }
                match driver.control(EndpointIndex(index as u16), &request, None, clock::now()) {
                    Ok(ticket) => free.push((base, ticket)),
                    // More controls on their way than there is room for.
                    Err(_) => *deferred = true,
                }
            }
            sent.extend(free.into_iter().map(|(base, ticket)| (worker, ledger.request_free(base), ticket)));
        }
    }
}
