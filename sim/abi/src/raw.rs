//! Bytes behind pointers whose length the interface does not carry.

use std::ptr;
use std::slice;

/// Where the binaries of a callable start.
const STORAGE: usize = 9_376;
const BINARY_SIZE: usize = 1_028;
const CHILD_OFFSETS: usize = 5_196;
const CHILD_COUNT: usize = 9_292;
const MAX_CHILDREN: usize = 1_024;
/// Bytes of a child before its binary, and where its size stands in them.
const CHILD_HEADER: usize = 192;
const CHILD_BINARY_SIZE: usize = 132;

/// The bytes of the callable at `callable`, as far as its own header says that they go; `None` for a header that cannot
/// be one. What they hold is judged by whoever reads them.
///
/// # Safety
/// `callable` points to a `ChipCallable`: its fixed part, and everything that its counts, offsets and sizes name.
pub(crate) unsafe fn callable_bytes<'a>(callable: *const u8) -> Option<&'a [u8]> {
    if callable.is_null() {
        return None;
    }
    // SAFETY: the fixed part is there, as the caller promises.
    let header = unsafe { slice::from_raw_parts(callable, STORAGE) };
    let count = usize::try_from(word(header, CHILD_COUNT).cast_signed()).ok()?;
    if count > MAX_CHILDREN {
        return None;
    }
    let mut end = STORAGE + word(header, BINARY_SIZE) as usize;
    for index in 0..count {
        let start = STORAGE + word(header, CHILD_OFFSETS + 4 * index) as usize;
        // SAFETY: a child that the header names is there, as the caller promises, so its header is inside the callable.
        let size_at = unsafe { callable.add(start + CHILD_BINARY_SIZE) };
        // SAFETY: four bytes of that child's header; they need not be aligned.
        let size = unsafe { ptr::read_unaligned(size_at.cast::<u32>()) };
        end = end.max(start + CHILD_HEADER + u32::from_le(size) as usize);
    }
    // SAFETY: everything up to the end of the last part is there, as the caller promises.
    Some(unsafe { slice::from_raw_parts(callable, end) })
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}
