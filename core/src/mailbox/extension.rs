//! The extension block in the base frame (W-6): who speaks our dialect, and who sleeps.
//!
//! Each word has one writer, except the child's parked word: the child announces with 0 → 1, the parent takes the
//! announcement back with 1 → 0 *after* its publish and *before* the kernel wake. The other way round the sleeper could
//! announce again in between and that announcement would be lost.

use super::Words;
use crate::wire::extension as at;

/// Whether the other side showed its magic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Peer {
    /// It did: it writes nothing in a task frame but what belongs to it, knows the detail area and announces its sleep.
    Known,
    /// It did not: it polls, and nothing may be taken for granted.
    Stranger,
}

/// Parent, before the fork: shows the parent's magic.
pub fn show_parent<W: Words>(words: &W) {
    words.write(at::PARENT, at::PARENT_MAGIC);
}

/// Child, before INIT_READY: shows the child's magic.
pub fn show_child<W: Words>(words: &W) {
    words.write(at::CHILD, at::CHILD_MAGIC);
}

/// Child: what the parent is.
pub fn parent<W: Words>(words: &W) -> Peer {
    peer(words.read(at::PARENT) == at::PARENT_MAGIC)
}

/// Parent, after INIT_READY: what the child is.
pub fn child<W: Words>(words: &W) -> Peer {
    peer(words.read(at::CHILD) == at::CHILD_MAGIC)
}

const fn peer(known: bool) -> Peer {
    if known { Peer::Known } else { Peer::Stranger }
}

/// Child: announces that it is about to sleep. It must look for work once more after this and before it sleeps.
pub fn announce_sleep<W: Words>(words: &W) {
    words.store_relaxed(at::PARKED, 1);
    words.fence();
}

/// Child: takes the announcement back, awake again for whatever reason.
pub fn announce_awake<W: Words>(words: &W) {
    words.store_relaxed(at::PARKED, 0);
}

/// Parent, after a publish: fences, looks whether the child sleeps, and takes its announcement back. `true` obliges the
/// caller to wake the child in the kernel.
pub fn take_sleeper<W: Words>(words: &W) -> bool {
    words.fence();
    words.load_relaxed(at::PARKED) == 1 && words.compare_exchange(at::PARKED, 1, 0).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::ArrayWords;
    use crate::wire::frame::REGION_BYTES;

    /// W-6
    #[test]
    fn a_region_of_zeros_is_a_stranger_and_never_asks_for_a_wake() {
        let words = ArrayWords::new(REGION_BYTES);
        assert_eq!((parent(&words), child(&words)), (Peer::Stranger, Peer::Stranger));
        assert!(!take_sleeper(&words));
        show_parent(&words);
        assert_eq!((parent(&words), child(&words)), (Peer::Known, Peer::Stranger));
        show_child(&words);
        assert_eq!(child(&words), Peer::Known);
    }

    #[test]
    fn an_announcement_is_taken_once() {
        let words = ArrayWords::new(REGION_BYTES);
        announce_sleep(&words);
        assert!(take_sleeper(&words));
        assert!(!take_sleeper(&words));
        announce_sleep(&words);
        announce_awake(&words);
        assert!(!take_sleeper(&words));
    }
}
