//! A bounded text that never fails to be written.

use core::fmt;

/// A message in a buffer of `N` bytes. What does not fit is cut off on a character boundary, so formatting into it never
/// fails and never allocates.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Text<const N: usize> {
    text: heapless::String<N>,
    cut: bool,
}

impl<const N: usize> Text<N> {
    /// An empty text.
    #[must_use]
    pub const fn new() -> Self {
        Self { text: heapless::String::new(), cut: false }
    }

    /// What was written so far.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether something did not fit.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Forgets what was written.
    pub fn clear(&mut self) {
        self.text.clear();
        self.cut = false;
    }

    /// Appends `more`, or as much of it as fits. Once something was cut off nothing follows it.
    pub fn push_str(&mut self, more: &str) {
        if self.cut {
            return;
        }
        let mut end = more.len().min(N - self.text.len());
        while !more.is_char_boundary(end) {
            end -= 1;
        }
        self.cut = end < more.len();
        // No more than the room that is left is pushed.
        let _ = self.text.push_str(&more[..end]);
    }

    /// Appends bytes of another process: what is not UTF-8 becomes U+FFFD.
    pub fn push_lossy(&mut self, bytes: &[u8]) {
        for chunk in bytes.utf8_chunks() {
            self.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                self.push_str("\u{fffd}");
            }
        }
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        self.push_str(more);
        Ok(())
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_on_a_character_boundary() {
        let mut text = Text::<7>::new();
        text.push_str("abcdé€");
        assert_eq!(text.as_str(), "abcdé");
        assert!(text.is_cut());
        text.push_str("x");
        assert_eq!(text.as_str(), "abcdé");
        text.clear();
        assert!(text.is_empty() && !text.is_cut());
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut text = Text::<32>::new();
        text.push_lossy(b"a\xff\xc3b");
        assert_eq!(text.as_str(), "a\u{fffd}\u{fffd}b");
    }
}
