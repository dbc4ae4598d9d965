//! A kind of child: it fills tensors and checks them.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI32, Ordering};

use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;
use laneway_linux::{BoxError, ChipTensor, CustomStart, Failure, Leaf, Report, Task};

/// The elements of a contiguous tensor of i32, in memory that the worker's children share.
pub fn elements(tensor: &ChipTensor) -> &[AtomicI32] {
    let (start, end) = (tensor.byte_range().start, tensor.byte_range().end);
    // SAFETY: the worker checked that the bytes lie in memory of its tree, which a child has mapped for life; everybody
    // reaches them by atomics, and `submit` gave the tensor 4-byte elements.
    unsafe { std::slice::from_raw_parts(start as *const AtomicI32, (end - start) as usize / 4) }
}

pub struct Clerk {
    callables: HashMap<Digest, Vec<u8>>,
}

impl Clerk {
    pub fn start(given: CustomStart<'_>) -> Result<Self, BoxError> {
        let callables = given.callables.iter().map(|(digest, name)| (*digest, name.to_vec())).collect();
        Ok(Self { callables })
    }
}

impl Leaf for Clerk {
    fn knows(&mut self, digest: &Digest) -> bool {
        self.callables.get(digest).is_some_and(|name| [&b"fill"[..], b"check"].contains(&name.as_slice()))
    }

    fn run(&mut self, task: &Task<'_>, report: &mut Report) -> Result<(), Failure> {
        let ([tensor], [scalar]) = (task.args.tensors(), task.args.scalars()) else {
            report.push_str("one tensor and one scalar are needed");
            return Err(Failure::MESSAGE);
        };
        let (cells, value) = (elements(tensor), *scalar as i32);
        if self.callables[task.digest] == b"fill" {
            cells.iter().for_each(|cell| cell.store(value, Ordering::Relaxed));
            return Ok(());
        }
        match cells[0].load(Ordering::Relaxed) {
            found if found == value => Ok(()),
            found => {
                let _ = write!(report, "{found} is not {value}");
                Err(Failure::MESSAGE)
            }
        }
    }

    fn control(&mut self, _: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        report.push_str("a clerk serves no controls");
        Err(Failure::MESSAGE)
    }

    fn shutdown(&mut self) {}
}
