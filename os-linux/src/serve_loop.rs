//! The loop of every child.

use laneway_core::serve::{Child, Runner, Served};
use laneway_core::wire::extension;

use crate::progress::ParentRing;
use crate::sys::park::{Backoff, Bed, Woke};
use crate::sys::spin::SpinWindow;
use crate::sys::words::MappedWords;

/// Serves until the parent asks the child to leave or is gone; the exit status.
pub(crate) fn serve<R: Runner>(
    child: &mut Child<MappedWords, R>,
    ring: &mut ParentRing<'_>,
    mut bed: Bed,
    window: SpinWindow,
) -> i32 {
    let words = *child.words();
    let mut looks = 0;
    let mut backoff = Backoff::new();
    loop {
        let served = child.step(ring);
        match served {
            Served::Exit(status) => return status.into(),
            Served::Worked => {
                looks = 0;
                backoff = Backoff::new();
                continue;
            }
            // No word tells when a device is done: looked at for as long as a spin lasts, then now and then.
            Served::Running if looks < window.turns() => {
                looks += 1;
                core::hint::spin_loop();
                continue;
            }
            Served::Running => {}
            Served::Idle => {
                if window.until(|| child.has_work()) {
                    continue;
                }
            }
        }
        let nap = (served == Served::Running).then(|| backoff.next_nap());
        if bed.park(&words, extension::PARKED, nap, || child.has_work()) == Woke::ParentGone {
            child.orphaned();
        }
    }
}
