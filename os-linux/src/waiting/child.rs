//! The waits of a child.

use std::cell::Cell;

use laneway_core::mailbox::extension::{self, Side};

use super::parent::CROWDED;
use crate::sys::cpu;
use crate::sys::spin::{PauseCost, SpinWindow};
use crate::sys::words::MailboxWords;

/// A child moves away after so many waits beside its parent on one CPU. The kernel puts whoever is woken beside its waker when other
/// CPUs seem busy, and two that wait for each other are never runnable at once, so it sees no reason to part them.
const PATIENCE: u32 = 8;

/// That is, where its sleeps were shorter than this many windows: awake on another CPU it would have spun for most of them. Whoever
/// sleeps for longer is woken sooner beside its waker than on a CPU that first has to be told.
const SHORT_SLEEP: u64 = 4;

/// Where nothing comes of it, as on a machine that others keep busy, or where its parent waits for others too, it is tried less and
/// less often.
const LONGEST_PATIENCE: u32 = 4_096;

/// How a child waits for its parent.
pub(crate) struct ChildWait {
    words: MailboxWords,
    window: SpinWindow,
    cost: PauseCost,
    /// The CPU that this child last said it runs on.
    told: Cell<Option<u16>>,
    /// How long it slept last, nanoseconds.
    slept: Cell<u64>,
    /// Waits on the parent's CPU since the last one elsewhere.
    beside: Cell<u32>,
    /// Spins since the last wait there that saw their task come.
    caught: Cell<u32>,
    /// Move away after so many.
    patience: Cell<u32>,
}

impl ChildWait {
    pub(crate) fn new(words: MailboxWords, window: SpinWindow) -> Self {
        let cost = PauseCost::measured();
        let (told, slept) = (Cell::new(None), Cell::new(u64::MAX));
        let (beside, caught, patience) = (Cell::new(0), Cell::new(0), Cell::new(PATIENCE));
        Self { words, window, cost, told, slept, beside, caught, patience }
    }

    /// The window for the next wait: none while the parent was last seen on this CPU, where it could not run beside a spinner;
    /// after some of those the child moves to another CPU. Small where more want to run than CPUs are there, and none if the last
    /// task, which took `task` nanoseconds, was longer than a window: others could do theirs meanwhile.
    pub(crate) fn next_window(&self, task: u64) -> SpinWindow {
        let here = self.show_cpu();
        let crowded = extension::is_crowded(&self.words);
        if let Some(cpu) = here
            && Side::Parent.cpu_hint(&self.words) == here
        {
            // Not in a crowd: all would leave the one CPU for the other.
            if !crowded {
                self.stays_beside(cpu);
            }
            return SpinWindow::NONE;
        }
        self.beside.set(0);
        match crowded {
            false => self.window,
            true if task > self.nanos(self.window.turns()) => SpinWindow::NONE,
            true => self.window.divided(CROWDED),
        }
    }

    fn stays_beside(&self, cpu: u16) {
        self.caught.set(0);
        let is_short = self.slept.get() < SHORT_SLEEP * self.nanos(self.window.turns());
        self.beside.set(if is_short { self.beside.get() + 1 } else { 0 });
        if self.beside.get() >= self.patience.get() {
            self.beside.set(0);
            self.patience.set((self.patience.get() * 2).min(LONGEST_PATIENCE));
            cpu::leave(cpu);
            self.show_cpu();
        }
    }

    /// A spin of so many turns saw its task come.
    pub(crate) fn caught(&self, turns: u32) {
        if turns > 0 {
            self.caught.set(self.caught.get().saturating_add(1));
            if self.caught.get() >= self.patience.get() {
                self.patience.set(PATIENCE);
            }
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

    /// It slept for so many nanoseconds.
    pub(crate) fn slept(&self, nanos: u64) {
        self.slept.set(nanos);
    }

    /// Says where this runs, if that changed: so after a wake.
    pub(crate) fn show_cpu(&self) -> Option<u16> {
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
    use std::time::Duration;

    use super::*;
    use crate::sys::region::{Region, Sharing};
    use laneway_core::wire::frame::REGION_BYTES;

    #[expect(unsafe_code, reason = "memory becomes words")]
    fn wait(region: &Region) -> ChildWait {
        // SAFETY: the region outlives the words.
        let words = unsafe { crate::sys::words::MappedWords::new(region) }.of_mailbox().unwrap();
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
        assert_eq!(wait.next_window(0), wait.window, "a parent that says nothing");
        Side::Parent.show_cpu(&wait.words, here + 1);
        assert_eq!(wait.next_window(0), wait.window);
        Side::Parent.show_cpu(&wait.words, here);
        assert_eq!(wait.next_window(0), SpinWindow::NONE);
        assert_eq!(Side::Child.cpu_hint(&wait.words), Some(here));
    }

    #[test]
    fn a_child_leaves_its_parents_cpu_after_a_few_short_sleeps_and_less_and_less_often() {
        let allowed = cpu::CpuBudget::read().cpus;
        let region = Region::new("test", REGION_BYTES, Sharing::Given).unwrap();
        let wait = wait(&region);
        let waits_until_it_left = |nanos: u64| {
            (0..100).find(|_| {
                // Beside it wherever the kernel puts this test.
                Side::Parent.show_cpu(&wait.words, cpu::current().unwrap());
                wait.slept(nanos);
                wait.next_window(0);
                wait.patience.get() > PATIENCE
            })
        };
        assert_eq!(waits_until_it_left(1_000_000), None, "long sleeps");
        assert!(waits_until_it_left(1_000).is_some());
        assert_eq!(wait.patience.get(), 2 * PATIENCE);
        assert_eq!(cpu::CpuBudget::read().cpus, allowed, "where it may run stays as it was");
    }

    #[test]
    fn a_child_spins_a_little_in_a_crowd() {
        let region = Region::new("test", REGION_BYTES, Sharing::Given).unwrap();
        let wait = wait(&region);
        extension::show_crowd(&wait.words, true);
        assert_eq!(wait.next_window(0), wait.window.divided(CROWDED));
        assert_eq!(wait.next_window(1_000_000), SpinWindow::NONE, "after a long task");
        extension::show_crowd(&wait.words, false);
        assert_eq!(wait.next_window(0), wait.window);
    }
}
