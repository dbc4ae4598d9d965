//! Reading a blob that may come from anyone (C-14).

use core::fmt;

use zerocopy::FromBytes;
use zerocopy::byteorder::little_endian::I32;

use super::{CHILD_ALIGN, CORE_BINARY, CoreHeader, Header, MAX_CHILDREN, NAME_BYTES, STORAGE};
use crate::wire::{ArgDirection, WireError, num};

/// A blob whose every count, offset, size and name has been judged. It borrows the bytes.
#[derive(Clone, Copy)]
pub struct ChipCallable<'a> {
    header: &'a Header,
    storage: &'a [u8],
}

/// One core binary of a blob.
#[derive(Clone, Copy)]
pub struct CoreCallable<'a> {
    func_id: i32,
    offset: u32,
    header: &'a CoreHeader,
    binary: &'a [u8],
}

impl<'a> ChipCallable<'a> {
    /// Judges `blob`. Bytes behind the last part are allowed and ignored.
    ///
    /// # Errors
    /// Names the count, offset, size or name that is not legal, and of which child.
    pub fn parse(blob: &'a [u8]) -> Result<Self, WireError> {
        let Ok((header, storage)) = Header::ref_from_prefix(blob) else {
            let (have, need) = (num::wide(blob.len()), num::wide(STORAGE));
            return Err(WireError::Short { what: "chip callable", have, need });
        };
        let count = |field, value: i32, max: usize| match usize::try_from(value) {
            Ok(count) if count <= max => Ok(count),
            _ => Err(WireError::OutOfRange { field, value: value.into(), min: 0, max: num::wide(max).into() }),
        };
        directions(&header.signature, count("sig_count", header.sig_count.get(), header.signature.len())?)?;
        name("func_name", &header.func_name, header.func_name_len.get())?;
        name("config_name", &header.config_name, header.config_name_len.get())?;
        let binary_end = header.binary_size.get();
        let limit = num::wide(storage.len());
        if u64::from(binary_end) > limit {
            let len = binary_end.into();
            return Err(WireError::Outside { what: "orchestration binary", offset: 0, len, limit });
        }
        let children = count("child_count", header.child_count.get(), MAX_CHILDREN)?;
        let callable = Self { header, storage };
        for index in 0..children {
            callable.judge_child(index)?;
        }
        callable.judge_order(children)?;
        Ok(callable)
    }

    fn judge_child(&self, index: usize) -> Result<(), WireError> {
        let field = |field, value: i128, min: i128, max: i128| {
            if (min..=max).contains(&value) { Ok(()) } else { Err(WireError::Child { index, field, value, min, max }) }
        };
        let limit = i128::from(num::wide(self.storage.len()));
        let offset = self.offset(index);
        if !offset.is_multiple_of(CHILD_ALIGN) {
            return Err(WireError::ChildAlignment { index, offset, align: CHILD_ALIGN });
        }
        field("offset", offset.into(), self.header.binary_size.get().into(), limit)?;
        let Some(core) = self.core_header(offset) else {
            let end = i128::from(offset).saturating_add(num::wide(CORE_BINARY).into());
            return Err(WireError::Child { index, field: "end of header", value: end, min: 0, max: limit });
        };
        field("sig_count", core.sig_count.get().into(), 0, num::wide(core.signature.len()).into())?;
        let count = usize::try_from(core.sig_count.get()).unwrap_or(0);
        for direction in core.signature.iter().take(count) {
            field("argument direction", direction.get().into(), 0, 3)?;
        }
        field("end of binary", self.end(offset, core).into(), 0, limit)
    }

    /// No two children share a byte: their offsets are sorted, then neighbours compared.
    fn judge_order(&self, children: usize) -> Result<(), WireError> {
        let mut order = [0u16; MAX_CHILDREN];
        let Some(order) = order.get_mut(..children) else { return Ok(()) };
        for (index, slot) in (0u16..).zip(order.iter_mut()) {
            *slot = index;
        }
        order.sort_unstable_by_key(|&index| self.offset(index.into()));
        let mut previous = None;
        for index in order.iter().map(|&index| usize::from(index)) {
            let offset = self.offset(index);
            if let Some((before, end)) = previous
                && end > u64::from(offset)
            {
                return Err(WireError::Overlap { what: "child", a: before, b: index });
            }
            previous = self.core_header(offset).map(|core| (index, self.end(offset, core)));
        }
        Ok(())
    }

    fn offset(&self, index: usize) -> u32 {
        self.header.child_offsets.get(index).map_or(0, |offset| offset.get())
    }

    fn core_header(&self, offset: u32) -> Option<&'a CoreHeader> {
        let at = self.storage.get(num::index(offset)..)?;
        CoreHeader::ref_from_prefix(at).ok().map(|(header, _)| header)
    }

    /// One past the last byte of the child at `offset`, in the storage.
    fn end(&self, offset: u32, core: &CoreHeader) -> u64 {
        u64::from(offset).saturating_add(num::wide(CORE_BINARY)).saturating_add(core.binary_size.get().into())
    }

    /// What the callable declares for each parameter.
    pub fn signature(&self) -> impl ExactSizeIterator<Item = ArgDirection> + 'a {
        declared(&self.header.signature, self.header.sig_count)
    }

    /// Name of the orchestration function.
    #[must_use]
    pub fn func_name(&self) -> &'a str {
        text(&self.header.func_name, self.header.func_name_len.get())
    }

    /// Name of the configuration function.
    #[must_use]
    pub fn config_name(&self) -> &'a str {
        text(&self.header.config_name, self.header.config_name_len.get())
    }

    /// The orchestration binary.
    #[must_use]
    pub fn binary(&self) -> &'a [u8] {
        self.storage.get(..num::index(self.header.binary_size.get())).unwrap_or_default()
    }

    /// The core binaries, in the order of the blob.
    pub fn children(&self) -> impl Iterator<Item = CoreCallable<'a>> + '_ {
        let count = usize::try_from(self.header.child_count.get()).unwrap_or(0);
        self.header.child_func_ids.iter().zip(&self.header.child_offsets).take(count).filter_map(|(id, offset)| {
            // Judged when the value was made.
            let header = self.core_header(offset.get())?;
            let start = num::index(offset.get()).checked_add(CORE_BINARY)?;
            let binary = self.storage.get(start..)?.get(..num::index(header.binary_size.get()))?;
            Some(CoreCallable { func_id: id.get(), offset: offset.get(), header, binary })
        })
    }
}

impl<'a> CoreCallable<'a> {
    /// The number that the orchestration launches it by.
    #[must_use]
    pub const fn func_id(&self) -> i32 {
        self.func_id
    }

    /// Where it lies in the storage.
    #[must_use]
    pub const fn offset(&self) -> u32 {
        self.offset
    }

    /// What it declares for each parameter.
    pub fn signature(&self) -> impl ExactSizeIterator<Item = ArgDirection> + 'a {
        declared(&self.header.signature, self.header.sig_count)
    }

    /// Where it has been loaded; 0 = nowhere yet.
    #[must_use]
    pub fn resolved_addr(&self) -> u64 {
        self.header.resolved_addr.get()
    }

    /// The binary.
    #[must_use]
    pub const fn binary(&self) -> &'a [u8] {
        self.binary
    }
}

fn directions(signature: &[I32], count: usize) -> Result<(), WireError> {
    signature.iter().take(count).try_for_each(|code| ArgDirection::from_code(code.get()).map(|_| ()))
}

fn declared(signature: &[I32], count: I32) -> impl ExactSizeIterator<Item = ArgDirection> + '_ {
    let count = usize::try_from(count.get()).unwrap_or(0);
    // Judged when the value was made.
    signature.iter().take(count).map(|code| ArgDirection::from_code(code.get()).unwrap_or(ArgDirection::Scalar))
}

fn name(field: &'static str, bytes: &[u8; NAME_BYTES], len: u32) -> Result<(), WireError> {
    let Some(name) = bytes.get(..num::index(len)) else {
        return Err(WireError::TooLong { field, len: len.into(), max: num::wide(NAME_BYTES) });
    };
    match core::str::from_utf8(name) {
        Ok(_) => Ok(()),
        Err(error) => Err(WireError::Text { field, at: num::wide(error.valid_up_to()), must: "UTF-8" }),
    }
}

fn text(bytes: &[u8; NAME_BYTES], len: u32) -> &str {
    // Judged when the value was made.
    bytes.get(..num::index(len)).and_then(|name| core::str::from_utf8(name).ok()).unwrap_or_default()
}

impl fmt::Debug for ChipCallable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChipCallable")
            .field("func_name", &self.func_name())
            .field("config_name", &self.config_name())
            .field("parameters", &self.signature().len())
            .field("binary_bytes", &self.binary().len())
            .field("children", &self.header.child_count.get())
            .finish()
    }
}

impl fmt::Debug for CoreCallable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreCallable")
            .field("func_id", &self.func_id)
            .field("offset", &self.offset)
            .field("binary_bytes", &self.binary.len())
            .finish_non_exhaustive()
    }
}
