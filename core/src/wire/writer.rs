//! Writing a byte sequence from front to back into memory that the caller owns.

use super::{WireError, num};

/// Where a structure is being written. Nothing is allocated; what does not fit is an error.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    what: &'static str,
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Starts at the front of `out`; `what` names the structure in errors.
    pub(crate) const fn new(what: &'static str, out: &'a mut [u8]) -> Self {
        Self { what, out, at: 0 }
    }

    /// Bytes written.
    pub(crate) const fn len(&self) -> usize {
        self.at
    }

    /// Appends `bytes`.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let end = self.at.saturating_add(bytes.len());
        let have = num::wide(self.out.len());
        match self.out.get_mut(self.at..end) {
            Some(here) => {
                here.copy_from_slice(bytes);
                self.at = end;
                Ok(())
            }
            None => Err(WireError::Short { what: self.what, have, need: num::wide(end) }),
        }
    }

    pub(crate) fn u32(&mut self, value: u32) -> Result<(), WireError> {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> Result<(), WireError> {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends zeros up to offset `at`.
    pub(crate) fn zeros_to(&mut self, at: usize) -> Result<(), WireError> {
        let have = num::wide(self.out.len());
        match self.out.get_mut(self.at..at) {
            Some(gap) => {
                gap.fill(0);
                self.at = at;
                Ok(())
            }
            None => Err(WireError::Short { what: self.what, have, need: num::wide(at) }),
        }
    }

    /// Appends a length and `bytes`, at most `max` of them.
    pub(crate) fn blob(&mut self, field: &'static str, bytes: &[u8], max: u32) -> Result<(), WireError> {
        match u32::try_from(bytes.len()) {
            Ok(len) if len <= max => {
                self.u32(len)?;
                self.bytes(bytes)
            }
            _ => Err(WireError::TooLong { field, len: num::wide(bytes.len()), max: max.into() }),
        }
    }
}
