//! Bounded texts that never fail to be written, and show that they were cut.

use core::fmt;

use super::frame::cut;

/// What stands at the end of a text that was cut off.
const ELLIPSIS: &str = "…";

/// The longest head of `text` that fits `max` bytes together with what follows it: nothing after the whole text, an
/// ellipsis after one that is cut on a character boundary, if there is room for one.
#[must_use]
pub(crate) fn fit(text: &str, max: usize) -> (&str, &'static str) {
    match max.checked_sub(ELLIPSIS.len()) {
        _ if text.len() <= max => (text, ""),
        Some(room) => (cut(text, room), ELLIPSIS),
        None => (cut(text, max), ""),
    }
}

/// A message in a buffer of `N` bytes. What does not fit is cut off on a character boundary and an ellipsis stands for it, so
/// formatting into it never fails and never allocates.
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
        if self.cut || self.text.push_str(more).is_ok() {
            return;
        }
        self.cut = true;
        let room = N.saturating_sub(self.text.len());
        // No more than the room that is left is pushed; then as much goes as the ellipsis takes.
        let _ = self.text.push_str(cut(more, room));
        while self.text.len() > N.saturating_sub(ELLIPSIS.len()) && self.text.pop().is_some() {}
        let _ = self.text.push_str(ELLIPSIS);
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
    fn what_does_not_fit_is_cut_on_a_character_boundary_and_an_ellipsis_stands_for_it() {
        let cuts = [
            (["abcdé€", "x"], "abcd…"),
            (["abcdefg", "h"], "abcd…"),
            (["abcé", "éé"], "abc…"),
            (["ab", "cdefgh"], "abcd…"),
            (["", "€€€"], "€…"),
        ];
        for (parts, shown) in cuts {
            let mut text = Text::<7>::new();
            parts.iter().for_each(|part| text.push_str(part));
            assert_eq!(text.as_str(), shown, "{parts:?}");
            assert!(text.is_cut());
            text.push_str("x");
            assert_eq!(text.as_str(), shown, "nothing follows");
            text.clear();
            assert!(text.is_empty() && !text.is_cut());
        }
        let mut text = Text::<7>::new();
        text.push_str("abcdé");
        text.push_str("f");
        assert_eq!((text.as_str(), text.is_cut()), ("abcdéf", false), "it fits exactly");
    }

    #[test]
    fn a_text_of_any_length_fits_with_its_mark() {
        let text = "aé€𝄞aé€𝄞";
        for max in 0..=text.len() {
            let (head, mark) = fit(text, max);
            assert!(text.starts_with(head) && head.len() + mark.len() <= max, "{max}: {head}{mark}");
            assert_eq!(mark.is_empty(), head == text || max < ELLIPSIS.len());
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut text = Text::<32>::new();
        text.push_lossy(b"a\xff\xc3b");
        assert_eq!(text.as_str(), "a\u{fffd}\u{fffd}b");
    }
}
