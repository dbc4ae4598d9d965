//! The tensors of a run on their way to the device and back.
//!
//! A HOST tensor is translated: room for its extent is found on the device, an input is copied there before the launch,
//! and the elements of an output, not the gaps between them, are copied back at finalize. A DEVICE tensor is used where
//! it is.

use laneway_core::chip::{Call, ChipError, DeviceAddress, HostAddress, Reason};
use laneway_core::wire::{AddressSpace, ArgDirection, ChipTensor};

use crate::HostMemory;
use crate::kernel::View;
use crate::memory::DeviceMemory;

/// Each staged tensor starts on this boundary of the staging block, in bytes.
const ALIGN: u64 = 64;

/// One tensor of a run.
#[derive(Clone, Copy, Debug)]
struct Staged {
    /// On the device. Of a HOST tensor, relative to the staging block until [`Staging::place`].
    view: View,
    /// The first element on the host, and the direction; `None` for a DEVICE tensor.
    host: Option<(HostAddress, ArgDirection)>,
}

/// The tensors of a run, judged.
#[derive(Debug)]
pub(crate) struct Staging {
    tensors: Vec<Staged>,
    bytes: u64,
}

impl Staging {
    /// Judges the tensors and lays out the staging block; touches nothing.
    ///
    /// # Errors
    /// [`ChipError::NotHostMemory`] or what `device_range` says about a DEVICE tensor.
    pub(crate) fn plan(
        tensors: &[ChipTensor],
        directions: &[ArgDirection],
        host: &HostMemory,
        device_range: impl Fn(DeviceAddress, u64) -> Result<(), ChipError>,
    ) -> Result<Self, ChipError> {
        let mut bytes = 0u64;
        let mut staged = Vec::with_capacity(tensors.len());
        for (index, (tensor, &direction)) in tensors.iter().zip(directions).enumerate() {
            let range = tensor.byte_range();
            staged.push(match tensor.address_space() {
                AddressSpace::Device => {
                    if !range.is_empty() {
                        device_range(DeviceAddress(range.start), range.len())?;
                    }
                    Staged { view: View::of(tensor, range.start), host: None }
                }
                AddressSpace::Host => {
                    host.check(Call::Prepare, HostAddress(range.start), range.len())?;
                    let view = View::of(tensor, bytes);
                    let next = range.len().checked_next_multiple_of(ALIGN).and_then(|size| bytes.checked_add(size));
                    bytes = next.ok_or_else(|| ChipError::ArgumentRefused {
                        index,
                        reason: Reason::from("the tensors of the run are larger than any device"),
                    })?;
                    Staged { view, host: Some((HostAddress(range.start), direction)) }
                }
            });
        }
        Ok(Self { tensors: staged, bytes })
    }

    /// Bytes that the HOST tensors need on the device.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Puts the HOST tensors into a block of at least [`bytes`](Self::bytes) bytes.
    pub(crate) fn place(&mut self, block: DeviceAddress) {
        for staged in self.tensors.iter_mut().filter(|staged| staged.host.is_some()) {
            staged.view.address += block.0;
        }
    }

    /// Where each tensor is on the device.
    pub(crate) fn views(&self) -> Vec<View> {
        self.tensors.iter().map(|staged| staged.view).collect()
    }

    /// Copies what the run reads to the device.
    pub(crate) fn copy_in(&self, memory: &mut DeviceMemory, host: &HostMemory) -> Result<(), ChipError> {
        for Staged { view, host: at } in &self.tensors {
            let Some((from, ArgDirection::In | ArgDirection::InOut)) = *at else { continue };
            if view.extent() > 0 {
                let range = memory.range(Call::Prepare, DeviceAddress(view.address), view.byte_extent())?;
                host.read(Call::Prepare, from, memory.bytes_mut(range))?;
            }
        }
        Ok(())
    }

    /// Copies what the run wrote back to the host, element by element where there are gaps: they may belong to another
    /// task (T-1).
    pub(crate) fn copy_back(&self, memory: &DeviceMemory, host: &HostMemory) -> Result<(), ChipError> {
        for Staged { view, host: at } in &self.tensors {
            let Some((to, ArgDirection::Out | ArgDirection::InOut)) = *at else { continue };
            if view.extent() == 0 {
                continue;
            }
            let range = memory.range(Call::Finalize, DeviceAddress(view.address), view.byte_extent())?;
            let bytes = memory.bytes(range);
            let mut answer = Ok(());
            view.byte_runs(|run| {
                if answer.is_ok() {
                    answer = host.write(Call::Finalize, HostAddress(to.0 + run.start as u64), &bytes[run]);
                }
            });
            answer?;
        }
        Ok(())
    }
}
