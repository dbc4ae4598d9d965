//! How long a thread wants to run at a time, where others want its CPU too.
#![allow(unsafe_code)]

use std::time::Duration;

/// Asks the scheduler for slices of this length for the calling thread, and returns what it had. Its share of a CPU stays the
/// same: it runs more seldom and for longer, and gives way to whoever wakes with a shorter slice. What it starts from here on
/// inherits the slice. `None`, and nothing asked, where its policy is not the default one, which its owner chose then, and where
/// the kernel has no such thing (before Linux 6.12) or refuses it.
pub fn request(slice: Duration) -> Option<Duration> {
    let mut attr = with_slice()?;
    let had = Duration::from_nanos(attr.sched_runtime);
    attr.sched_runtime = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: reads one initialised structure that says how long it is.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    (result == 0).then_some(had)
}

/// The slice that the calling thread has; `None` as for [`request`].
#[must_use]
pub fn current() -> Option<Duration> {
    with_slice().map(|attr| Duration::from_nanos(attr.sched_runtime))
}

/// What the scheduler knows of the calling thread, if a slice is part of it.
fn with_slice() -> Option<libc::sched_attr> {
    get().filter(|attr| attr.sched_policy == libc::SCHED_OTHER as u32 && attr.sched_runtime > 0)
}

fn get() -> Option<libc::sched_attr> {
    const SIZE: u32 = size_of::<libc::sched_attr>() as u32;
    let mut attr = libc::sched_attr {
        size: SIZE,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: writes at most as many bytes as it is told, all of which make valid integers.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, SIZE, 0) };
    (result == 0).then_some(attr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_the_slice_it_asks_for_and_its_niceness_stays() {
        std::thread::spawn(|| {
            let Some(usual) = current() else { return println!("skipped: this kernel knows of no slices") };
            let nice = get().unwrap().sched_nice;
            let long = Duration::from_millis(10);
            assert_eq!(request(long), Some(usual));
            assert_eq!(current(), Some(long));
            assert_eq!(request(usual), Some(long));
            assert_eq!((current(), get().unwrap().sched_nice), (Some(usual), nice));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_policy_that_somebody_chose_is_left_alone() {
        std::thread::spawn(|| {
            let param = libc::sched_param { sched_priority: 0 };
            // SAFETY: reads one initialised structure.
            assert_eq!(unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const param) }, 0);
            assert_eq!(request(Duration::from_millis(10)), None);
            assert_eq!(get().unwrap().sched_policy, libc::SCHED_BATCH as u32);
        })
        .join()
        .unwrap();
    }
}
