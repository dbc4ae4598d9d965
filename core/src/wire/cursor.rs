//! Reading a byte sequence from front to back, each piece compared with what is left.

use super::{WireError, num};

/// What is left of a structure while it is being decoded. Nothing is allocated; strings and blobs are borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    what: &'static str,
    left: &'a [u8],
    whole: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the front of `bytes`; `what` names the structure in errors.
    pub(crate) const fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { what, left: bytes, whole: bytes.len() }
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        match self.left.split_at_checked(len) {
            Some((head, rest)) => {
                self.left = rest;
                Ok(head)
            }
            None => Err(self.short(len)),
        }
    }

    #[cold]
    fn short(&self, len: usize) -> WireError {
        let read = self.whole.saturating_sub(self.left.len());
        let need = num::wide(read.saturating_add(len));
        WireError::Short { what: self.what, have: num::wide(self.whole), need }
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], WireError> {
        match self.left.split_first_chunk() {
            Some((head, rest)) => {
                self.left = rest;
                Ok(head)
            }
            None => Err(self.short(N)),
        }
    }

    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        self.array().map(|[byte]| *byte)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(|bytes| u32::from_le_bytes(*bytes))
    }

    pub(crate) fn i32(&mut self) -> Result<i32, WireError> {
        self.array().map(|bytes| i32::from_le_bytes(*bytes))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// A length and that many bytes, at most `max`.
    pub(crate) fn blob(&mut self, field: &'static str, max: u32) -> Result<&'a [u8], WireError> {
        let len = self.u32()?;
        if len > max {
            return Err(WireError::TooLong { field, len: len.into(), max: max.into() });
        }
        self.take(num::index(len))
    }

    /// A length and that many bytes of UTF-8, at most `max`.
    pub(crate) fn str(&mut self, field: &'static str, max: u32) -> Result<&'a str, WireError> {
        let bytes = self.blob(field, max)?;
        core::str::from_utf8(bytes).map_err(|error| WireError::Text {
            field,
            at: num::wide(error.valid_up_to()),
            must: "UTF-8",
        })
    }

    /// Bytes left.
    pub(crate) const fn left(&self) -> usize {
        self.left.len()
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.left)
    }

    /// Reads with `read` and returns the bytes that it took.
    pub(crate) fn measured(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), WireError>,
    ) -> Result<&'a [u8], WireError> {
        let before = self.left;
        read(self)?;
        Ok(before.get(..before.len().saturating_sub(self.left.len())).unwrap_or_default())
    }

    /// A reserved u32, which must be 0.
    pub(crate) fn reserved(&mut self, field: &'static str) -> Result<(), WireError> {
        match self.u32()? {
            0 => Ok(()),
            value => Err(WireError::NotZero { field, value: value.into() }),
        }
    }

    /// The structure ends here.
    pub(crate) fn finish(self) -> Result<(), WireError> {
        if self.left.is_empty() {
            return Ok(());
        }
        Err(WireError::Trailing { what: self.what, extra: num::wide(self.left.len()) })
    }
}
