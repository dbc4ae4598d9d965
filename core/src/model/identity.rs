//! What a callable is called: the canonical descriptor and its digest.
//!
//! A descriptor is a sequence of little-endian u32, strings and byte strings (u32 length, then bytes) that starts with
//! schema 1 and the kind. Two processes that describe a callable alike name it alike; no number of a private table ever
//! crosses between them.

#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::as_conversions,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

use sha2::{Digest as _, Sha256};

use super::ModelError;
use crate::wire::cursor::Cursor;
use crate::wire::{ArgDirection, CallableKind, Digest, WireError};

const SCHEMA: u32 = 1;
const SIGNATURE_SCHEMA: u32 = 1;
const PAYLOAD_VERSION: u32 = 1;
const SERIALIZER: u32 = 1;
/// Longest text of a descriptor that is taken in from outside, in bytes.
const MAX_TEXT: u32 = 1_024;

/// SHA-256 of something that a descriptor refers to.
pub type Sha256Bytes = [u8; 32];

/// What names a callable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Descriptor<'a> {
    /// A device binary.
    ChipCallable {
        /// Platform it was built for; gives the target architecture.
        platform: &'a str,
        /// Device runtime it was built for.
        runtime: &'a str,
        /// SHA-256 of the exact blob.
        blob: Sha256Bytes,
        /// SHA-256 of its signature; see [`signature_digest`].
        signature: Sha256Bytes,
    },
    /// A serialised Python function.
    PythonSerialized {
        /// SHA-256 of the serializer's output.
        payload: Sha256Bytes,
    },
    /// A Python function by name.
    PythonImport {
        /// Module path.
        module: &'a str,
        /// Name in the module.
        qualname: &'a str,
    },
    /// A Rust function by name.
    Native {
        /// The name that its user gave.
        name: &'a str,
        /// Its version.
        version: u32,
        /// SHA-256 of the captured bytes; of nothing if it captures nothing.
        captured: Sha256Bytes,
        /// 0, or the registration ordinal of a closure that the fork inherits.
        instance: u64,
    },
}

/// SHA-256 of `bytes`.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Sha256Bytes {
    Sha256::digest(bytes).into()
}

/// SHA-256 of the signature schema: version, count, one code per parameter.
#[must_use]
pub fn signature_digest(signature: impl ExactSizeIterator<Item = ArgDirection>) -> Sha256Bytes {
    let mut hash = Sha256::new();
    hash.update(SIGNATURE_SCHEMA.to_le_bytes());
    hash.update(length(signature.len()));
    signature.for_each(|direction| hash.update(direction.code().to_le_bytes()));
    hash.finalize().into()
}

/// The target architecture of a platform: `a2a3` or `a5`.
///
/// # Errors
/// [`ModelError::UnknownPlatform`].
pub fn target_arch(platform: &str) -> Result<&'static str, ModelError> {
    match platform {
        "a2a3" | "a2a3sim" => Ok("a2a3"),
        "a5" | "a5sim" => Ok("a5"),
        _ => Err(ModelError::UnknownPlatform),
    }
}

impl<'a> Descriptor<'a> {
    /// What the callable is made of.
    #[must_use]
    pub const fn kind(&self) -> CallableKind {
        match self {
            Self::ChipCallable { .. } => CallableKind::ChipCallable,
            Self::PythonSerialized { .. } => CallableKind::PythonSerialized,
            Self::PythonImport { .. } => CallableKind::PythonImport,
            Self::Native { .. } => CallableKind::Native,
        }
    }

    /// Hands the canonical bytes to `put`, piece by piece.
    ///
    /// # Errors
    /// [`ModelError::UnknownPlatform`] for a chip callable of an unknown platform.
    pub fn write(&self, mut put: impl FnMut(&[u8])) -> Result<(), ModelError> {
        let blob = |put: &mut dyn FnMut(&[u8]), bytes: &[u8]| {
            put(&length(bytes.len()));
            put(bytes);
        };
        put(&SCHEMA.to_le_bytes());
        put(&self.kind().code().to_le_bytes());
        match self {
            Self::ChipCallable { platform, runtime, blob: bytes, signature } => {
                blob(&mut put, target_arch(platform)?.as_bytes());
                blob(&mut put, platform.as_bytes());
                blob(&mut put, runtime.as_bytes());
                blob(&mut put, bytes);
                blob(&mut put, signature);
            }
            Self::PythonSerialized { payload } => {
                put(&PAYLOAD_VERSION.to_le_bytes());
                put(&SERIALIZER.to_le_bytes());
                blob(&mut put, payload);
            }
            Self::PythonImport { module, qualname } => {
                blob(&mut put, module.as_bytes());
                blob(&mut put, qualname.as_bytes());
            }
            Self::Native { name, version, captured, instance } => {
                blob(&mut put, name.as_bytes());
                put(&version.to_le_bytes());
                blob(&mut put, captured);
                put(&instance.to_le_bytes());
            }
        }
        Ok(())
    }

    /// The digest that names the callable.
    ///
    /// # Errors
    /// [`ModelError::UnknownPlatform`] for a chip callable of an unknown platform.
    pub fn digest(&self) -> Result<Digest, ModelError> {
        let mut hash = Sha256::new();
        self.write(|bytes| hash.update(bytes))?;
        Ok(Digest(hash.finalize().into()))
    }

    /// Reads a descriptor back from its canonical bytes, which may come from anyone.
    ///
    /// # Errors
    /// The first field that is not legal, bytes that are missing, or bytes too many.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, ModelError> {
        let mut cursor = Cursor::new("callable descriptor", bytes);
        fixed(&mut cursor, "descriptor schema", SCHEMA)?;
        let descriptor = match CallableKind::from_code(cursor.i32()?)? {
            CallableKind::ChipCallable => {
                let arch = cursor.str("target_arch", MAX_TEXT)?;
                let platform = cursor.str("platform", MAX_TEXT)?;
                if target_arch(platform)? != arch {
                    return Err(ModelError::UnknownPlatform);
                }
                let runtime = cursor.str("runtime", MAX_TEXT)?;
                Self::ChipCallable { platform, runtime, blob: sha(&mut cursor)?, signature: sha(&mut cursor)? }
            }
            CallableKind::PythonSerialized => {
                fixed(&mut cursor, "payload version", PAYLOAD_VERSION)?;
                fixed(&mut cursor, "serializer", SERIALIZER)?;
                Self::PythonSerialized { payload: sha(&mut cursor)? }
            }
            CallableKind::PythonImport => Self::PythonImport {
                module: cursor.str("module", MAX_TEXT)?,
                qualname: cursor.str("qualname", MAX_TEXT)?,
            },
            CallableKind::Native => Self::Native {
                name: cursor.str("callable name", MAX_TEXT)?,
                version: cursor.u32()?,
                captured: sha(&mut cursor)?,
                instance: cursor.u64()?,
            },
        };
        cursor.finish()?;
        Ok(descriptor)
    }
}

/// A length field. Nothing that is described here comes near 4 GiB; if it did, it would be named by its capped length.
fn length(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes()
}

fn fixed(cursor: &mut Cursor<'_>, field: &'static str, want: u32) -> Result<(), WireError> {
    match cursor.u32()? {
        value if value == want => Ok(()),
        value => Err(WireError::OutOfRange { field, value: value.into(), min: want.into(), max: want.into() }),
    }
}

fn sha(cursor: &mut Cursor<'_>) -> Result<Sha256Bytes, WireError> {
    match cursor.u32()? {
        32 => cursor.array().copied(),
        len => Err(WireError::OutOfRange { field: "length of a SHA-256", value: len.into(), min: 32, max: 32 }),
    }
}

#[cfg(test)]
mod tests;
