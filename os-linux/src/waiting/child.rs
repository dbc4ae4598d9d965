//! The waits of a child.

use std::cell::Cell;
use std::time::Duration;

use laneway_core::mailbox::extension::{self, Side};

use super::LONGEST_WAKE;
use crate::sys::cpu;
use crate::sys::spin::{PauseCost, SpinWindow};
use crate::sys::words::MappedWords;

/// How a child waits for its parent.
pub(crate) struct ChildWait {
    words: MappedWords,
    window: SpinWindow,
    cost: PauseCost,
    /// The CPU that this child last said it runs on.
    told: Cell<Option<u16>>,
    /// The next window is longer by this: the parent paid for a wake.
    extra: Cell<Duration>,
}

impl ChildWait {
    pub(crate) fn new(words: MappedWords, window: SpinWindow) -> Self {
        let cost = PauseCost::measured();
        Self { words, window, cost, told: Cell::new(None), extra: Cell::new(Duration::ZERO) }
    }

    /// The window for the next wait: none while the parent was last seen on this CPU, where it could not run beside a spinner.
    pub(crate) fn next_window(&self) -> SpinWindow {
        let here = self.show_cpu();
        if here.is_some() && Side::Parent.cpu_hint(&self.words) == here {
            return SpinWindow::NONE;
        }
        match self.extra.take() {
            Duration::ZERO => self.window,
            extra => self.window.longer(extra, self.cost),
        }
    }

    /// Turns of the plain window, for a device that no word tells of.
    pub(crate) fn turns(&self) -> u32 {
        self.window.turns()
    }

    /// Nanoseconds of `turns` turns.
    pub(crate) const fn nanos(&self, turns: u32) -> u64 {
        self.cost.nanos(turns)
    }

    /// The parent rang, or somebody did: where this runs may have changed, and the wake is made use of.
    pub(crate) fn woken(&self) {
        self.show_cpu();
        self.extra.set(extension::wake_cost(&self.words, LONGEST_WAKE));
    }

    fn show_cpu(&self) -> Option<u16> {
        let here = cpu::current();
        if let Some(cpu) = here
            && self.told.replace(here) != here
        {
            Side::Child.show_cpu(&self.words, cpu);
        }
        here
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::region::{Region, Sharing};
    use laneway_core::wire::frame::REGION_BYTES;

    #[expect(unsafe_code, reason = "memory becomes words")]
    fn wait(region: &Region) -> ChildWait {
        // SAFETY: the region outlives the words.
        let words = unsafe { MappedWords::new(region) };
        ChildWait::new(words, SpinWindow::new(Duration::from_micros(6), PauseCost::measured()))
    }

    fn pinned() -> u16 {
        let here = cpu::current().unwrap();
        cpu::pin(&[usize::from(here)]).unwrap();
        here
    }

    #[test]
    fn a_child_does_not_spin_for_a_parent_on_its_own_cpu() {
        let region = Region::new("test", REGION_BYTES, Sharing::Given).unwrap();
        let (wait, here) = (wait(&region), pinned());
        assert_eq!(wait.next_window(), wait.window, "a parent that says nothing");
        Side::Parent.show_cpu(&wait.words, here + 1);
        assert_eq!(wait.next_window(), wait.window);
        Side::Parent.show_cpu(&wait.words, here);
        assert_eq!(wait.next_window(), SpinWindow::NONE);
        assert_eq!(Side::Child.cpu_hint(&wait.words), Some(here));
    }

    #[test]
    fn a_wake_makes_one_window_longer_by_what_it_costs_and_no_lie_makes_it_long() {
        let region = Region::new("test", REGION_BYTES, Sharing::Given).unwrap();
        let wait = wait(&region);
        for (told, counted) in [(7_000, 7_000), (u32::MAX / 2, 25_000), (0, 0)] {
            extension::show_wake_cost(&wait.words, Duration::from_nanos(told.into()));
            wait.woken();
            let expected = wait.window.longer(Duration::from_nanos(counted), wait.cost);
            assert_eq!(wait.next_window(), expected);
            assert_eq!(wait.next_window(), wait.window, "once");
        }
    }
}
