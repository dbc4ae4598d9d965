//! What waiting costs.

use std::time::Duration;

use laneway_linux::TaskArgs;
use laneway_sim::Profile;

use crate::harness::{self, children, cpu_time};
use crate::support::{Bench, HBG};

/// CPU time of this process and all its children in a while. There is no event to wait for: that is the point.
fn used_in(window: Duration) -> Duration {
    let tree: Vec<i32> = children().into_iter().chain([std::process::id() as i32]).collect();
    let used = || tree.iter().map(|&pid| cpu_time(pid)).sum::<Duration>();
    let before = used();
    std::thread::sleep(window);
    used() - before
}

/// T-29, L-32: the device is looked at now and then, not all the time.
pub(crate) fn a_long_kernel_costs_no_cpu_in_any_process() {
    let bench = Bench::new(&[HBG, Profile::A5HostBuildGraph], 1);
    let run = bench
        .worker
        .submit(|orch| {
            for &chip in &bench.chips {
                orch.submit_next_level(&bench.wait, chip, TaskArgs::new().scalar(2_000_000_000))?;
            }
            Ok(())
        })
        .unwrap();
    run.wait_accepted().unwrap();
    let used = used_in(Duration::from_secs(1));
    harness::in_time("CPUs, in a second of waiting for two kernels,", used, Duration::from_millis(100));
    assert!(!run.is_done(), "measured while both ran");
    run.wait().unwrap();
    bench.worker.close().unwrap();
}

/// L-33: nothing is polled while nothing runs.
pub(crate) fn an_idle_tree_with_chips_uses_no_cpu() {
    let bench = Bench::new(&[HBG, Profile::A2a3TensormapAndRingbuffer], 1);
    let (a, c) = (bench.vector(8, |_| 1.0), bench.vector(8, |_| 0.0));
    bench
        .worker
        .run(|orch| {
            let args = &mut TaskArgs::new();
            Ok(orch.submit_next_level(&bench.add, bench.chips[0], args.input(&a).input(&a).output(&c))?)
        })
        .unwrap();
    let used = used_in(Duration::from_secs(2));
    assert!(used <= Duration::from_millis(20), "{used:?} of CPU in two idle seconds");
}
