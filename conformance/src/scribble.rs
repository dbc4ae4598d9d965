//! What a simulated chip child writes when its fault plan says `scribble`: garbage into its own mailbox.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use laneway_core::mailbox::Words;
use laneway_core::wire::frame::{self, FRAME_BYTES, NARROW_WORDS, REGION_BYTES};
use laneway_linux::sys::words::MappedWords;

use crate::numbers::Dice;

/// Words of each kind that one call writes.
const WRITES: u32 = 48;

/// Where a mailbox is mapped in this process. A chip child has one: those of its siblings are unmapped before it starts.
fn mailbox() -> Option<MappedWords> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let range = maps.lines().filter(|line| line.contains("/memfd:laneway")).find_map(|line| {
        let (start, end) = line.split_whitespace().next()?.split_once('-')?;
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        (end - start == REGION_BYTES).then_some(start)
    })?;
    let base = NonNull::new(std::ptr::with_exposed_provenance_mut(range))?;
    // SAFETY: mapped readable and writable, as the kernel says; it stays so for the child's life, and both sides reach it by
    // atomics alone.
    Some(unsafe { MappedWords::from_raw(base, REGION_BYTES) })
}

/// Writes garbage over what a task frame holds: identity, lease, digest, arguments, texts, acceptance, and at last the state.
pub(crate) fn scribble(dice: &mut Dice) {
    let Some(words) = mailbox() else { return };
    let start = FRAME_BYTES * (1 + dice.roll(2) as usize);
    for _ in 0..WRITES {
        let field = match dice.roll(5) {
            0 => frame::TRAILER + 8 * dice.roll(5) as usize,
            1 => frame::LEASE + 8 * dice.roll(2) as usize,
            2 => frame::DIGEST + 8 * dice.roll(4) as usize,
            3 => frame::ARGS + 8 * dice.roll(400) as usize,
            _ => frame::MESSAGE + 8 * dice.roll(32) as usize,
        };
        words.write(start + field, dice.next());
    }
    let narrow = NARROW_WORDS[dice.roll(NARROW_WORDS.len() as u32) as usize];
    words.store(start + narrow, dice.roll(14) as i32 - 1);
}
