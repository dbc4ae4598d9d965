//! The types of fields: each knows how it is read, judged and written.

use core::num::NonZeroU64;

use crate::ids::WorkerId;
use crate::wire::cursor::Cursor;
use crate::wire::writer::Writer;
use crate::wire::{Digest, WireError};

/// A value that stands in a payload.
pub(super) trait Field<'a>: Sized {
    /// Reads and judges it; `field` names it in errors.
    fn read(cursor: &mut Cursor<'a>, field: &'static str) -> Result<Self, WireError>;
    /// Writes it; what could not be read back is refused.
    fn write(&self, out: &mut Writer<'_>, field: &'static str) -> Result<(), WireError>;
}

macro_rules! integers {
    ($($type:ident),+) => { $(
        impl<'a> Field<'a> for $type {
            fn read(cursor: &mut Cursor<'a>, _: &'static str) -> Result<Self, WireError> {
                cursor.array().map(|bytes| Self::from_le_bytes(*bytes))
            }

            fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
                out.bytes(&self.to_le_bytes())
            }
        }
    )+ };
}

integers!(u8, u32, i32, u64);

impl<'a> Field<'a> for NonZeroU64 {
    fn read(cursor: &mut Cursor<'a>, field: &'static str) -> Result<Self, WireError> {
        Self::new(cursor.u64()?).ok_or(WireError::Zero { field })
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        out.u64(self.get())
    }
}

impl<'a> Field<'a> for WorkerId {
    fn read(cursor: &mut Cursor<'a>, field: &'static str) -> Result<Self, WireError> {
        let raw = cursor.i32()?;
        Self::new(raw).ok_or(WireError::OutOfRange { field, value: raw.into(), min: 0, max: i32::MAX.into() })
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        out.bytes(&self.get().to_le_bytes())
    }
}

impl<'a> Field<'a> for Digest {
    fn read(cursor: &mut Cursor<'a>, _: &'static str) -> Result<Self, WireError> {
        cursor.array().copied().map(Self)
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        out.bytes(&self.0)
    }
}

impl<'a, const N: usize> Field<'a> for [u8; N] {
    fn read(cursor: &mut Cursor<'a>, _: &'static str) -> Result<Self, WireError> {
        cursor.array().copied()
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        out.bytes(self)
    }
}

/// A flag in 32 bits, 0 or 1.
impl<'a> Field<'a> for bool {
    fn read(cursor: &mut Cursor<'a>, field: &'static str) -> Result<Self, WireError> {
        match cursor.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(WireError::OutOfRange { field, value: value.into(), min: 0, max: 1 }),
        }
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        out.u32(u32::from(*self))
    }
}

/// What may be done with remote memory: at least one of reading and writing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AccessBits {
    /// Reading only (1).
    Read,
    /// Writing only (2).
    Write,
    /// Both (3).
    ReadWrite,
}

impl<'a> Field<'a> for AccessBits {
    fn read(cursor: &mut Cursor<'a>, field: &'static str) -> Result<Self, WireError> {
        match cursor.u32()? {
            1 => Ok(Self::Read),
            2 => Ok(Self::Write),
            3 => Ok(Self::ReadWrite),
            bits => Err(WireError::UnknownCode { field, value: bits.into(), known: "1 read, 2 write, 3 both" }),
        }
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        out.u32(match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::ReadWrite => 3,
        })
    }
}

/// Where remote memory is and how it is reached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RemoteSpace {
    /// In the frame itself (1).
    HostInline,
    /// On a device of the owner (2).
    RemoteDevice,
    /// In a window that the owner exports (3).
    RemoteWindow,
    /// Behind a load/store fabric (4).
    UbLdst,
}

impl RemoteSpace {
    const ALL: [Self; 4] = [Self::HostInline, Self::RemoteDevice, Self::RemoteWindow, Self::UbLdst];
    const KNOWN: &'static str = "1 HOST_INLINE, 2 REMOTE_DEVICE, 3 REMOTE_WINDOW, 4 UB_LDST";

    pub(super) fn from_code(field: &'static str, code: u32) -> Result<Self, WireError> {
        let found = Self::ALL.iter().copied().find(|space| space.code() == code);
        found.ok_or(WireError::UnknownCode { field, value: code.into(), known: Self::KNOWN })
    }

    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::HostInline => 1,
            Self::RemoteDevice => 2,
            Self::RemoteWindow => 3,
            Self::UbLdst => 4,
        }
    }

    /// Whether memory can be exported from it.
    #[must_use]
    pub const fn is_exported(self) -> bool {
        matches!(self, Self::RemoteWindow | Self::UbLdst)
    }
}

impl<'a> Field<'a> for RemoteSpace {
    fn read(cursor: &mut Cursor<'a>, field: &'static str) -> Result<Self, WireError> {
        Self::from_code(field, cursor.u32()?)
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        out.u32(self.code())
    }
}

/// A space that memory is exported from: 3 or 4.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Exported(pub(super) RemoteSpace);

impl<'a> Field<'a> for Exported {
    fn read(cursor: &mut Cursor<'a>, field: &'static str) -> Result<Self, WireError> {
        Self(RemoteSpace::read(cursor, field)?).judged(field)
    }

    fn write(&self, out: &mut Writer<'_>, field: &'static str) -> Result<(), WireError> {
        self.judged(field)?.0.write(out, field)
    }
}

impl Exported {
    fn judged(self, field: &'static str) -> Result<Self, WireError> {
        if self.0.is_exported() {
            return Ok(self);
        }
        let value = self.0.code().into();
        Err(WireError::UnknownCode { field, value, known: "3 REMOTE_WINDOW, 4 UB_LDST" })
    }
}

/// A buffer of a remote worker: owner, number and how often that number has been used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RemoteBuffer {
    /// The worker that owns it.
    pub owner: WorkerId,
    /// Its number there.
    pub id: NonZeroU64,
    /// How often that number has been used.
    pub generation: NonZeroU64,
}

impl<'a> Field<'a> for RemoteBuffer {
    fn read(cursor: &mut Cursor<'a>, _: &'static str) -> Result<Self, WireError> {
        Ok(Self {
            owner: Field::read(cursor, "buffer owner")?,
            id: Field::read(cursor, "buffer id")?,
            generation: Field::read(cursor, "buffer generation")?,
        })
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        self.owner.write(out, "buffer owner")?;
        self.id.write(out, "buffer id")?;
        self.generation.write(out, "buffer generation")
    }
}

/// Declares a payload as its fields in order. `str(max)` and `blob(max)` are a length and bytes, `tail` is what is left,
/// `zero` is a reserved u32.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? { $($(#[$fdoc:meta])* $field:ident : $kind:ident $(($arg:tt))? $(as $type:ty)?),* $(,)? $(; $reserved:ident)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name $(<$life>)? {
            $($(#[$fdoc])* pub $field: record!(@type $kind $(($arg))? $($type)?)),*
        }

        impl<'a> Field<'a> for record!(@name $name $($life)?) {
            fn read(cursor: &mut Cursor<'a>, _: &'static str) -> Result<Self, WireError> {
                let out = $name {
                    $($field: record!(@read cursor, concat!(stringify!($name), ".", stringify!($field)), $kind $(($arg))? $($type)?)),*
                };
                $(cursor.reserved(concat!(stringify!($name), ".", stringify!($reserved)))?;)?
                Ok(out)
            }

            fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
                $(record!(@write out, self.$field, concat!(stringify!($name), ".", stringify!($field)), $kind $(($arg))?)?;)*
                $(record!(@zero out, $reserved)?;)?
                Ok(())
            }
        }
    };
    (@name $name:ident) => { $name };
    (@name $name:ident $life:lifetime) => { $name<'a> };
    (@type str($max:tt)) => { &'a str };
    (@type blob($max:tt)) => { &'a [u8] };
    (@type tail) => { &'a [u8] };
    (@type exported) => { RemoteSpace };
    (@type is $type:ty) => { $type };
    (@read $cursor:ident, $name:expr, str($max:tt)) => { $cursor.str($name, caps::$max)? };
    (@read $cursor:ident, $name:expr, blob($max:tt)) => { $cursor.blob($name, caps::$max)? };
    (@read $cursor:ident, $name:expr, tail) => { $cursor.rest() };
    (@read $cursor:ident, $name:expr, exported) => { Exported::read($cursor, $name)?.0 };
    (@read $cursor:ident, $name:expr, is $type:ty) => { <$type as Field>::read($cursor, $name)? };
    (@write $out:ident, $value:expr, $name:expr, str($max:tt)) => { $out.blob($name, $value.as_bytes(), caps::$max) };
    (@write $out:ident, $value:expr, $name:expr, blob($max:tt)) => { $out.blob($name, $value, caps::$max) };
    (@write $out:ident, $value:expr, $name:expr, tail) => { $out.bytes($value) };
    (@write $out:ident, $value:expr, $name:expr, exported) => { Exported($value).write($out, $name) };
    (@write $out:ident, $value:expr, $name:expr, is) => { $value.write($out, $name) };
    (@zero $out:ident, $reserved:ident) => { $out.u32(0) };
}

pub(super) use record;
