//! Time as a value: core never reads a clock, every method that needs one takes `now`.

use core::time::Duration;

/// Nanoseconds of a monotonic clock since an origin that the caller chose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Instant(u64);

impl Instant {
    /// An instant that does not come.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The instant `after` later; saturates, so "never" stays in the future.
    #[must_use]
    pub const fn saturating_add(self, after: Duration) -> Self {
        let nanos = after.as_nanos();
        if nanos > u64::MAX as u128 { Self(u64::MAX) } else { Self(self.0.saturating_add(nanos as u64)) }
    }

    /// How long ago `earlier` was; zero if it lies in the future.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
