//! What a child asks of the scheduler.

use std::cell::Cell;
use std::time::Duration;

use crate::sys::{clock, time_slice};

/// Who computes for so long at a time can as well begin a little later.
const LONG: Duration = Duration::from_millis(1);

/// The slices such a child asks for: longer than those of a thread that asks for nothing, 0.7 to 3 ms. So drivers and the children
/// with short tasks that wake on its CPU run at once, and not after what is left of its slice.
const LONG_SLICE: Duration = Duration::from_millis(10);

/// The slices of one child. Two long tasks in a row make them long, the next short one makes them what they were. A task is judged
/// by the CPU time it took: one that waits, for a device or for other children, shall be woken soon.
#[derive(Default)]
pub(crate) struct Slices {
    /// CPU time of this thread when the wait for the next task was over, if the last one took long.
    computed: Cell<Option<Duration>>,
    /// The slice it had before it asked for long ones, as a number: the kernel does not say whether somebody asked for it.
    usual: Cell<Option<Duration>>,
}

impl Slices {
    /// A task has ended that took so many nanoseconds.
    #[inline]
    pub(crate) fn ended(&self, task: u64) {
        let is_long = u128::from(task) >= LONG.as_nanos();
        if is_long || self.computed.get().is_some() {
            self.judge(is_long);
        }
    }

    /// The child has waited, and what it spun for meanwhile was no task.
    #[inline]
    pub(crate) fn waited(&self) {
        if self.computed.get().is_some() {
            self.computed.set(Some(clock::thread_time()));
        }
    }

    #[cold]
    fn judge(&self, is_long: bool) {
        let now = is_long.then(clock::thread_time);
        let before = self.computed.replace(now);
        let computes = before.zip(now).is_some_and(|(before, now)| now.saturating_sub(before) >= LONG);
        match self.usual.take() {
            None if computes => self.usual.set(time_slice::request(LONG_SLICE)),
            Some(usual) if !computes => _ = time_slice::request(usual),
            usual => self.usual.set(usual),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute() {
        let end = clock::thread_time() + LONG * 2;
        while clock::thread_time() < end {}
    }

    fn on_a_thread(test: impl FnOnce(Slices, Duration) + Send + 'static) {
        let judge = || match time_slice::current() {
            Some(usual) => test(Slices::default(), usual),
            None => println!("skipped: this kernel knows of no slices"),
        };
        std::thread::spawn(judge).join().unwrap();
    }

    const TASK: u64 = 2_000_000;

    #[test]
    fn who_computes_for_long_again_and_again_gets_long_slices_until_a_short_task() {
        on_a_thread(|slices, usual| {
            let mut had = Vec::new();
            for task in [TASK, TASK, TASK, 1_000, TASK, TASK] {
                if task == TASK {
                    compute();
                }
                slices.ended(task);
                had.push(time_slice::current().unwrap());
            }
            assert_eq!(had, [usual, LONG_SLICE, LONG_SLICE, usual, usual, LONG_SLICE]);
        });
    }

    #[test]
    fn who_waits_for_long_keeps_the_usual_slices() {
        on_a_thread(|slices, usual| {
            for _ in 0..3 {
                slices.ended(TASK);
                assert_eq!(time_slice::current(), Some(usual));
            }
        });
    }

    #[test]
    fn who_spins_for_long_between_tasks_keeps_the_usual_slices() {
        on_a_thread(|slices, usual| {
            for _ in 0..3 {
                compute();
                slices.waited();
                slices.ended(TASK);
                assert_eq!(time_slice::current(), Some(usual));
            }
        });
    }
}
