//! Writing a blob.

use zerocopy::byteorder::little_endian::{I32, U32, U64};
use zerocopy::{FromZeros, IntoBytes};

use super::{CHILD_ALIGN, CORE_BINARY, CoreHeader, Header, MAX_CHILDREN, NAME_BYTES, STORAGE};
use crate::wire::writer::Writer;
use crate::wire::{ArgDirection, WireError, num};

/// What a blob is made of.
///
/// ```
/// use laneway_core::wire::{ArgDirection, ChipCallable, ChipCallableSource};
///
/// # fn main() -> Result<(), laneway_core::wire::WireError> {
/// let signature = &[ArgDirection::In, ArgDirection::Out];
/// let source = ChipCallableSource { func_name: "copy", signature, binary: b"code", ..Default::default() };
/// let mut blob = vec![0; source.encoded_len()?];
/// source.encode(&mut blob)?;
/// assert_eq!(ChipCallable::parse(&blob)?.func_name(), "copy");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ChipCallableSource<'a> {
    /// Name of the orchestration function, at most 64 bytes.
    pub func_name: &'a str,
    /// Name of the configuration function, at most 64 bytes.
    pub config_name: &'a str,
    /// What the callable declares for each parameter, at most 256.
    pub signature: &'a [ArgDirection],
    /// The orchestration binary.
    pub binary: &'a [u8],
    /// The core binaries, at most 1,024.
    pub children: &'a [CoreCallableSource<'a>],
}

/// One core binary.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreCallableSource<'a> {
    /// The number that the orchestration launches it by.
    pub func_id: i32,
    /// What it declares for each parameter, at most 32.
    pub signature: &'a [ArgDirection],
    /// Where it has been loaded; 0 = nowhere yet.
    pub resolved_addr: u64,
    /// The binary.
    pub binary: &'a [u8],
}

impl ChipCallableSource<'_> {
    /// Bytes of the blob.
    ///
    /// # Errors
    /// Parts that together are larger than their 32-bit offsets reach.
    pub fn encoded_len(&self) -> Result<usize, WireError> {
        let mut end = small("orchestration binary", self.binary.len(), u32::MAX)?;
        for child in self.children {
            end = child_end(child_offset(end)?, child)?;
        }
        Ok(STORAGE.saturating_add(num::index(end)))
    }

    /// Writes the blob and returns its length in bytes.
    ///
    /// # Errors
    /// A count or name over its cap, parts larger than their 32-bit offsets reach, or an `out` that is too small.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut header = Header::new_zeroed();
        header.sig_count = signature("sig_count", &mut header.signature, self.signature)?;
        header.func_name_len = name("func_name", &mut header.func_name, self.func_name)?;
        header.config_name_len = name("config_name", &mut header.config_name, self.config_name)?;
        header.binary_size = small("orchestration binary", self.binary.len(), u32::MAX)?.into();
        header.child_count = signed("child_count", self.children.len(), MAX_CHILDREN)?;
        let mut end = header.binary_size.get();
        let places = header.child_func_ids.iter_mut().zip(&mut header.child_offsets);
        for ((id, offset), child) in places.zip(self.children) {
            *id = child.func_id.into();
            let at = child_offset(end)?;
            *offset = at.into();
            end = child_end(at, child)?;
        }
        let mut writer = Writer::new("chip callable", out);
        writer.bytes(header.as_bytes())?;
        writer.bytes(self.binary)?;
        for (child, offset) in self.children.iter().zip(&header.child_offsets) {
            writer.zeros_to(STORAGE.saturating_add(num::index(offset.get())))?;
            let mut core = CoreHeader::new_zeroed();
            core.sig_count = signature("child sig_count", &mut core.signature, child.signature)?;
            core.binary_size = small("child binary", child.binary.len(), u32::MAX)?.into();
            core.resolved_addr = U64::new(child.resolved_addr);
            writer.bytes(core.as_bytes())?;
            writer.bytes(child.binary)?;
        }
        Ok(writer.len())
    }
}

fn child_offset(end: u32) -> Result<u32, WireError> {
    end.checked_next_multiple_of(CHILD_ALIGN).ok_or(too_large(u64::from(end)))
}

fn child_end(offset: u32, child: &CoreCallableSource<'_>) -> Result<u32, WireError> {
    let binary = small("child binary", child.binary.len(), u32::MAX)?;
    let core = small("child header", CORE_BINARY, u32::MAX)?;
    offset
        .checked_add(core)
        .and_then(|end| end.checked_add(binary))
        .ok_or(too_large(u64::from(offset).saturating_add(binary.into())))
}

const fn too_large(len: u64) -> WireError {
    WireError::TooLong { field: "chip callable storage", len, max: 0xFFFF_FFFF }
}

fn small(field: &'static str, len: usize, max: u32) -> Result<u32, WireError> {
    u32::try_from(len).ok().filter(|len| *len <= max).ok_or(WireError::TooLong {
        field,
        len: num::wide(len),
        max: max.into(),
    })
}

fn signed(field: &'static str, len: usize, max: usize) -> Result<I32, WireError> {
    match i32::try_from(len) {
        Ok(count) if len <= max => Ok(count.into()),
        _ => Err(WireError::TooLong { field, len: num::wide(len), max: num::wide(max) }),
    }
}

fn signature(field: &'static str, to: &mut [I32], from: &[ArgDirection]) -> Result<I32, WireError> {
    let count = signed(field, from.len(), to.len())?;
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.code().into();
    }
    Ok(count)
}

fn name(field: &'static str, to: &mut [u8; NAME_BYTES], from: &str) -> Result<U32, WireError> {
    let len = small(field, from.len(), 64)?;
    for (to, from) in to.iter_mut().zip(from.bytes()) {
        *to = from;
    }
    Ok(len.into())
}
