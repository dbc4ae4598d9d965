//! Element types and address spaces.

use core::fmt;

/// The element type of a tensor; the number is its code on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Dtype {
    /// IEEE 754 single precision.
    F32 = 0,
    /// IEEE 754 half precision.
    F16 = 1,
    /// Signed, 32 bits.
    I32 = 2,
    /// Signed, 16 bits.
    I16 = 3,
    /// Signed, 8 bits.
    I8 = 4,
    /// Unsigned, 8 bits.
    U8 = 5,
    /// The upper half of a single.
    Bf16 = 6,
    /// Signed, 64 bits.
    I64 = 7,
    /// Unsigned, 64 bits.
    U64 = 8,
    /// Unsigned, 16 bits.
    U16 = 9,
    /// Unsigned, 32 bits.
    U32 = 10,
    /// One byte, 0 or 1.
    Bool = 11,
    /// 8-bit float, 4 exponent and 3 mantissa bits, no infinity.
    Fp8E4M3Fn = 12,
    /// 8-bit power-of-two scale.
    Fp8E8M0 = 13,
    /// 4-bit floats; one element is the byte that packs two of them.
    Fp4E2M1 = 14,
}

impl Dtype {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 15] = [
        Self::F32,
        Self::F16,
        Self::I32,
        Self::I16,
        Self::I8,
        Self::U8,
        Self::Bf16,
        Self::I64,
        Self::U64,
        Self::U16,
        Self::U32,
        Self::Bool,
        Self::Fp8E4M3Fn,
        Self::Fp8E8M0,
        Self::Fp4E2M1,
    ];

    /// The type that `code` stands for.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The code on the wire.
    #[must_use]
    #[allow(clippy::as_conversions)] // a fieldless enum has no other way to its number
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Bytes of one element.
    #[must_use]
    pub const fn element_bytes(self) -> u32 {
        match self {
            Self::I64 | Self::U64 => 8,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F16 | Self::I16 | Self::Bf16 | Self::U16 => 2,
            Self::I8 | Self::U8 | Self::Bool | Self::Fp8E4M3Fn | Self::Fp8E8M0 | Self::Fp4E2M1 => 1,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::I32 => "i32",
            Self::I16 => "i16",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::Bf16 => "bf16",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::Bool => "bool",
            Self::Fp8E4M3Fn => "fp8e4m3fn",
            Self::Fp8E8M0 => "fp8e8m0",
            Self::Fp4E2M1 => "fp4e2m1",
        })
    }
}

/// Where the bytes of a tensor lie; the number is its code on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum AddressSpace {
    /// Memory of the host, at the same address in the whole process tree.
    Host = 0,
    /// Memory of one device; the number means nothing on another.
    Device = 1,
}

impl AddressSpace {
    /// The space that `code` stands for.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Host),
            1 => Some(Self::Device),
            _ => None,
        }
    }

    /// The code on the wire.
    #[must_use]
    #[allow(clippy::as_conversions)] // a fieldless enum has no other way to its number
    pub const fn code(self) -> u8 {
        self as u8
    }
}
