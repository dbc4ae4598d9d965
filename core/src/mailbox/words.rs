//! The only way to the memory of a mailbox.

/// Word access to one mailbox region, at byte offsets from its start.
///
/// Mapped memory, a plain cloneable array, loom's atomics and a tripwire that dies after the k-th store all implement
/// this, so the same machine code runs in production, under the model checker and under the fuzzer.
///
/// Every byte of a region has one access width (W-8): the 32-bit words that the wire names (`state`, `error`,
/// `shutdown`, `accepted`, `preparation` and the named words of the extension block) are reached by the `i32` methods
/// alone, everything else by whole `u64` words.
///
/// # Panics
/// Every method may panic on an offset that is misaligned or outside the region. Offsets come from constants and from
/// counts that were already judged, never from the other side.
pub trait Words {
    /// Reads a hand-over word with acquire order.
    fn load(&self, at: usize) -> i32;

    /// Reads a word with relaxed order: hints, and hand-shakes that use [`Words::fence`].
    fn load_relaxed(&self, at: usize) -> i32;

    /// Writes a hand-over word with release order.
    fn store(&self, at: usize, value: i32);

    /// Writes a word with relaxed order: what a later release store publishes, and hand-shakes that use [`Words::fence`].
    fn store_relaxed(&self, at: usize, value: i32);

    /// Replaces `expected` by `new` in one step (acquire and release on success, acquire on failure).
    ///
    /// # Errors
    /// The value found, if it was not `expected`; nothing was written then.
    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32>;

    /// A sequentially consistent fence: announce, *fence*, re-check on the side that sleeps; publish, *fence*, look on
    /// the side that wakes.
    fn fence(&self);

    /// Reads one payload word with relaxed order.
    fn read(&self, at: usize) -> u64;

    /// Writes one payload word with relaxed order.
    fn write(&self, at: usize, value: u64);

    /// Copies private bytes into the region by relaxed `u64` writes; the length is a multiple of 8.
    fn copy_in(&self, at: usize, from: &[u8]) {
        let (words, rest) = from.as_chunks::<8>();
        assert!(rest.is_empty(), "payload is copied in whole words of 8 bytes, not {} bytes", from.len());
        for (index, word) in words.iter().enumerate() {
            self.write(at + 8 * index, u64::from_le_bytes(*word));
        }
    }

    /// Copies private bytes into the region as [`copy_in`](Self::copy_in) does, but writes only the words that differ.
    fn copy_in_changed(&self, at: usize, from: &[u8]) {
        let (words, rest) = from.as_chunks::<8>();
        assert!(rest.is_empty(), "payload is copied in whole words of 8 bytes, not {} bytes", from.len());
        for (index, word) in words.iter().enumerate() {
            let (here, value) = (at + 8 * index, u64::from_le_bytes(*word));
            if self.read(here) != value {
                self.write(here, value);
            }
        }
    }

    /// Whether the region holds these bytes, read by relaxed `u64` reads; the length is a multiple of 8.
    fn holds(&self, at: usize, bytes: &[u8]) -> bool {
        let (words, rest) = bytes.as_chunks::<8>();
        assert!(rest.is_empty(), "payload is compared in whole words of 8 bytes, not {} bytes", bytes.len());
        words.iter().enumerate().all(|(index, word)| self.read(at + 8 * index) == u64::from_le_bytes(*word))
    }

    /// Copies bytes of the region into private memory by relaxed `u64` reads; the length is a multiple of 8.
    fn copy_out(&self, at: usize, into: &mut [u8]) {
        let len = into.len();
        let (words, rest) = into.as_chunks_mut::<8>();
        assert!(rest.is_empty(), "payload is copied in whole words of 8 bytes, not {len} bytes");
        for (index, word) in words.iter_mut().enumerate() {
            *word = self.read(at + 8 * index).to_le_bytes();
        }
    }
}

impl<W: Words + ?Sized> Words for &W {
    #[inline]
    fn load(&self, at: usize) -> i32 {
        (**self).load(at)
    }
    #[inline]
    fn load_relaxed(&self, at: usize) -> i32 {
        (**self).load_relaxed(at)
    }
    #[inline]
    fn store(&self, at: usize, value: i32) {
        (**self).store(at, value);
    }
    #[inline]
    fn store_relaxed(&self, at: usize, value: i32) {
        (**self).store_relaxed(at, value);
    }
    #[inline]
    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        (**self).compare_exchange(at, expected, new)
    }
    #[inline]
    fn fence(&self) {
        (**self).fence();
    }
    #[inline]
    fn read(&self, at: usize) -> u64 {
        (**self).read(at)
    }
    #[inline]
    fn write(&self, at: usize, value: u64) {
        (**self).write(at, value);
    }
    #[inline]
    fn copy_in(&self, at: usize, from: &[u8]) {
        (**self).copy_in(at, from);
    }
    #[inline(always)]
    fn copy_in_changed(&self, at: usize, from: &[u8]) {
        (**self).copy_in_changed(at, from);
    }
    #[inline(always)]
    fn holds(&self, at: usize, bytes: &[u8]) -> bool {
        (**self).holds(at, bytes)
    }
    #[inline]
    fn copy_out(&self, at: usize, into: &mut [u8]) {
        (**self).copy_out(at, into);
    }
}
