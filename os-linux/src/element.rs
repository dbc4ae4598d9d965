//! Element types: which Rust type stands for which dtype, and how one element of shared memory is read and written.
//!
//! Tensor memory is mapped in several processes, so no Rust reference to it may exist while another process can write.
//! Every access here is one relaxed atomic of the element's width: a torn or stale value is possible where the tags of the
//! tasks did not order the accesses, undefined behaviour is not.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use laneway_core::wire::Dtype;

/// A Rust type that is one tensor element. Sealed: the set is the dtypes of the contract that Rust can name.
pub trait Element: Copy + Send + Sync + PartialEq + core::fmt::Debug + 'static + sealed::Sealed {
    /// The code of this type on the wire.
    const DTYPE: Dtype;

    /// The value of all-zero bytes.
    const ZERO: Self;

    /// Reads one element, relaxed.
    ///
    /// # Safety
    /// `at` is aligned for `Self` and lies in a mapping that stays mapped for the call.
    unsafe fn load(at: *const Self) -> Self;

    /// Writes one element, relaxed.
    ///
    /// # Safety
    /// As [`Element::load`], and the mapping is writable.
    unsafe fn store(at: *mut Self, value: Self);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! element {
    ($ty:ty, $dtype:ident, $atomic:ident, $from:expr, $to:expr, $zero:expr) => {
        impl sealed::Sealed for $ty {}

        impl Element for $ty {
            const DTYPE: Dtype = Dtype::$dtype;
            const ZERO: Self = $zero;

            #[inline]
            unsafe fn load(at: *const Self) -> Self {
                // SAFETY: the caller promises alignment and a live mapping; every access in this process is atomic too.
                let cell = unsafe { $atomic::from_ptr(at.cast_mut().cast()) };
                $from(cell.load(Ordering::Relaxed))
            }

            #[inline]
            unsafe fn store(at: *mut Self, value: Self) {
                // SAFETY: as in `load`, and the mapping is writable.
                let cell = unsafe { $atomic::from_ptr(at.cast()) };
                cell.store($to(value), Ordering::Relaxed);
            }
        }
    };
}

element!(f32, F32, AtomicU32, f32::from_bits, f32::to_bits, 0.0);
element!(half::f16, F16, AtomicU16, half::f16::from_bits, half::f16::to_bits, half::f16::ZERO);
element!(half::bf16, Bf16, AtomicU16, half::bf16::from_bits, half::bf16::to_bits, half::bf16::ZERO);
element!(i8, I8, AtomicU8, u8::cast_signed, i8::cast_unsigned, 0);
element!(i16, I16, AtomicU16, u16::cast_signed, i16::cast_unsigned, 0);
element!(i32, I32, AtomicU32, u32::cast_signed, i32::cast_unsigned, 0);
element!(i64, I64, AtomicU64, u64::cast_signed, i64::cast_unsigned, 0);
element!(u8, U8, AtomicU8, core::convert::identity, core::convert::identity, 0);
element!(u16, U16, AtomicU16, core::convert::identity, core::convert::identity, 0);
element!(u32, U32, AtomicU32, core::convert::identity, core::convert::identity, 0);
element!(u64, U64, AtomicU64, core::convert::identity, core::convert::identity, 0);
