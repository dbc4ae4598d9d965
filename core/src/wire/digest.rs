//! The 32 bytes that name a callable.

use core::fmt;
use core::str::FromStr;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{WireError, num};

const PREFIX: &[u8; 7] = b"sha256:";
const TEXT_BYTES: usize = 71;

/// SHA-256 of a callable's canonical descriptor. Printed as `sha256:` and 64 lowercase hex digits, and read back from
/// exactly that.
///
/// ```
/// use laneway_core::wire::Digest;
///
/// let digest = Digest([0xab; 32]);
/// let text = digest.to_string();
/// assert!(text.starts_with("sha256:abab"));
/// assert_eq!(text.parse(), Ok(digest));
/// assert!(text.to_uppercase().parse::<Digest>().is_err());
/// ```
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest that names nothing: all zero.
    pub const ZERO: Self = Self([0; 32]);

    /// The digest as four little-endian words, as it is compared and copied in a frame.
    #[must_use]
    pub const fn words(&self) -> [u64; 4] {
        zerocopy::transmute!(self.0)
    }

    /// The digest as messages show it beside a name: enough of it to find the callable.
    ///
    /// ```
    /// # use laneway_core::wire::Digest;
    /// assert_eq!(Digest([0xab; 32]).short().to_string(), "sha256:abababababab…");
    /// ```
    #[must_use]
    pub const fn short(&self) -> ShortDigest {
        let [a, b, c, d, e, f, ..] = self.0;
        ShortDigest([a, b, c, d, e, f])
    }

    /// The digest from the four words of a frame.
    #[must_use]
    pub const fn from_words(words: [u64; 4]) -> Self {
        Self(zerocopy::transmute!(words))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The first twelve hex digits of a [`Digest`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ShortDigest([u8; 6]);

impl fmt::Display for ShortDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("…")
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = WireError;

    fn from_str(text: &str) -> Result<Self, WireError> {
        Self::from_text(text.as_bytes())
    }
}

impl Digest {
    /// Reads the text form from bytes that need not be UTF-8.
    ///
    /// # Errors
    /// [`WireError::DigestFormat`] with the position of the first byte that is wrong or missing.
    pub fn from_text(text: &[u8]) -> Result<Self, WireError> {
        let format = |at: usize| WireError::DigestFormat { len: num::wide(text.len()), at: num::wide(at) };
        if let Some(at) = PREFIX.iter().zip(text).position(|(want, have)| want != have) {
            return Err(format(at));
        }
        let Some(digits) = text.strip_prefix(PREFIX) else { return Err(format(text.len())) };
        if let Some(at) = digits.iter().take(64).position(|&digit| nibble(digit).is_none()) {
            return Err(format(PREFIX.len().saturating_add(at)));
        }
        if text.len() != TEXT_BYTES {
            return Err(format(text.len().min(TEXT_BYTES)));
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            if let [high, low] = pair {
                *byte = nibble(*high).unwrap_or(0) << 4 | nibble(*low).unwrap_or(0);
            }
        }
        Ok(Self(bytes))
    }
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit.wrapping_sub(b'0')),
        b'a'..=b'f' => Some(digit.wrapping_sub(b'a').wrapping_add(10)),
        _ => None,
    }
}
