//! Memory of the host program as an argument of tasks (E-38).

use std::ops::Range;

use laneway_core::engine::RangeKind;

use super::Worker;
use crate::Error;
use crate::memory::Lent;

impl Worker {
    /// Lets tasks name memory of the program itself: a mapping of its own that is shared (`MAP_SHARED`), as of a file, a memfd or
    /// a device. Name it in arguments with [`ChipTensor::contiguous`](crate::ChipTensor::contiguous). Before init, at the root.
    ///
    /// ```no_run
    /// # use laneway_linux::{AddressSpace, ChipTensor, Dtype, TaskArgs, Worker};
    /// # fn map_file() -> (u64, u64) { (0, 0) }
    /// # fn main() -> Result<(), laneway_linux::Error> {
    /// let worker = Worker::builder().subs(1).build()?;
    /// let (address, bytes) = map_file();
    /// // SAFETY: the mapping is MAP_SHARED, and stays until the worker is closed.
    /// unsafe { worker.share_range(address..address + bytes)? };
    /// worker.init()?;
    /// let first = ChipTensor::contiguous(address, 4096, Dtype::F32, &[1024], AddressSpace::Host)?;
    /// let mut args = TaskArgs::new();
    /// args.inout(first);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongState`] after init. A range that is empty or overlaps another one is refused by init.
    ///
    /// # Safety
    /// Every byte of the range is mapped readable and writable from here until the worker is closed, in memory that a forked
    /// child shares, and nobody accesses it but by atomics, raw pointers and tasks while the worker is open.
    #[expect(unsafe_code, reason = "the caller promises what nobody here can check")]
    pub unsafe fn share_range(&self, range: Range<u64>) -> Result<(), Error> {
        self.lend(range, RangeKind::Shared, "share_range")
    }

    /// As [`share_range`](Self::share_range) for memory that children have a copy of, as it was when they were forked: any memory
    /// of the program. Tasks may read it only; naming it as anything but an input is refused at submit, since what a child
    /// wrote there would be seen by nobody.
    ///
    /// # Errors
    /// As [`share_range`](Self::share_range).
    ///
    /// # Safety
    /// Every byte of the range is mapped readable from here until the worker is closed, and nobody writes it meanwhile, callables
    /// included.
    #[expect(unsafe_code, reason = "the caller promises what nobody here can check")]
    pub unsafe fn share_snapshot(&self, range: Range<u64>) -> Result<(), Error> {
        self.lend(range, RangeKind::Snapshot, "share_snapshot")
    }

    fn lend(&self, range: Range<u64>, kind: RangeKind, call: &'static str) -> Result<(), Error> {
        self.space_of_new(call)?.lend(Lent { range, kind });
        Ok(())
    }
}
