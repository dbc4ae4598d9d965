//! The loop of every child.

use laneway_core::lane::EXIT_CUT_OFF;
use laneway_core::serve::{Child, Runner, Served};
use laneway_core::wire::extension;

use crate::child_entry::leave;
use crate::progress::ParentRing;
use crate::sys::clock;
use crate::sys::park::{Backoff, Bed, Woke};
use crate::sys::words::MailboxWords;
use crate::waiting::{ChildWait, Slices, Status};

const CUT_OFF: &str =
    "something that ran in this child closed descriptors that it had not opened; its parent can ring it no more";

/// Serves until the parent asks the child to leave or is gone; the exit status.
pub(crate) fn serve<R: Runner>(
    child: &mut Child<MailboxWords, R>,
    ring: &mut ParentRing<'_>,
    mut bed: Bed,
    wait: &ChildWait,
    status: &Status,
    slices: Option<Slices>,
) -> i32 {
    let words = *child.words();
    let mut looks = 0;
    let mut backoff = Backoff::new();
    loop {
        let served = child.step(ring);
        match served {
            Served::Exit(status) => return status.into(),
            Served::Worked => {
                if let (Some(task), Some(slices)) = (status.worked(clock::now()), &slices) {
                    slices.ended(task);
                }
                looks = 0;
                backoff = Backoff::new();
                continue;
            }
            // No word tells when a device is done: looked at for as long as a spin lasts, then now and then.
            Served::Running if looks < wait.turns() => {
                looks += 1;
                core::hint::spin_loop();
                continue;
            }
            Served::Running => {}
            Served::Idle => {
                let spun = wait.next_window(status.last_task()).spin(|| child.spots_work());
                status.spun(wait.nanos(spun.turns));
                if spun.ready {
                    wait.caught(spun.turns);
                    slices.iter().for_each(Slices::waited);
                    continue;
                }
            }
        }
        status.parks();
        let nap = (served == Served::Running).then(|| backoff.next_nap());
        let woke = bed.park(&words, extension::PARKED, nap, || child.has_work());
        wait.slept(status.woke(clock::now()));
        slices.iter().for_each(Slices::waited);
        match woke {
            Woke::ParentGone => child.orphaned(),
            Woke::CutOff => {
                // Its parent hears nothing of it any more but its end.
                child.orphaned();
                while !matches!(child.step(ring), Served::Exit(_)) {}
                if bed.is_in_own_process() {
                    leave(CUT_OFF, EXIT_CUT_OFF.into());
                }
                return EXIT_CUT_OFF.into();
            }
            Woke::Bell => {
                wait.show_cpu();
            }
            Woke::Work | Woke::TimedOut => {}
        }
    }
}
