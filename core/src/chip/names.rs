//! New types for the numbers of a device.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u64);

        impl $name {
            /// The address `bytes` further on, or `None` past the end of the number space.
            #[must_use]
            pub const fn checked_add(self, bytes: u64) -> Option<Self> {
                match self.0.checked_add(bytes) {
                    Some(address) => Some(Self(address)),
                    None => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    };
}

address! {
    /// An address in the memory of a device. Means nothing to another device, and nothing to the host.
    DeviceAddress
}
address! {
    /// An address in the memory of the calling process.
    HostAddress
}

/// Where a callable is registered in a device: 0..=63 (C-8). Private to the process that drives the device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallableSlot(u8);

impl CallableSlot {
    /// How many callables a device holds.
    pub const COUNT: usize = 64;

    /// `None` from [`CallableSlot::COUNT`] on.
    #[must_use]
    pub const fn new(raw: usize) -> Option<Self> {
        if raw < Self::COUNT { Some(Self(raw as u8)) } else { None }
    }

    /// The slot as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CallableSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The identity of one prepared run, unique in this process (C-7). A lease may dispatch several runs, so it is not one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RunEpoch(u64);

impl RunEpoch {
    /// An epoch that this process has not used before. Starts at 1.
    pub(crate) fn mint() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The number that a run descriptor carries.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for RunEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
