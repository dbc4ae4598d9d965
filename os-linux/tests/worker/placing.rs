//! CPUs and memory that a worker is given at its start.

use laneway_linux::{CpuOverlap, Error, Label, SubId, TaskArgs, WorkerBuilder};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::children;
use crate::support::{Bench, until};

fn sub(index: u32) -> Label {
    Label::Sub(SubId(index))
}

fn two() -> WorkerBuilder {
    crate::harness::builder!().subs(2).heap_ring_bytes(1 << 20).buffer_bytes(1 << 20)
}

/// CPUs that this process may use.
fn allowed() -> Vec<usize> {
    laneway_linux::sys::cpu::CpuBudget::read().cpus
}

/// P-21
pub(crate) fn a_child_runs_on_the_cpus_that_it_was_given() {
    let all = allowed();
    let (one, last) = (vec![all[0]], vec![all[all.len() - 1]]);
    let builder = two().child_cpus(sub(0), one.clone()).child_cpus(sub(1), last.clone());
    let worker = builder.build().unwrap();
    let cpus = worker.register("cpus", |args| {
        let found = laneway_linux::sys::cpu::CpuBudget::read().cpus;
        let (count, first) = (args.tensor::<i32>(0)?, args.tensor::<i32>(1)?);
        count.set(0, found.len() as i32)?;
        Ok(first.set(0, found[0] as i32)?)
    });
    let cpus = cpus.unwrap();
    worker.init().unwrap();
    assert_eq!(allowed(), all, "the parent stays where it was");
    let cells: Vec<_> = (0..4).map(|_| worker.tensor::<i32>(&[1]).unwrap()).collect();
    let list = |i: usize| TaskArgs::new().output(&cells[i]).output(&cells[i + 1]).clone();
    let (a, b) = (list(0), list(2));
    // A group of two runs on both.
    worker.run(|orch| Ok(orch.submit_sub_group(&cpus, &[&a, &b]).map(drop)?)).unwrap();
    let value = |i: usize| cells[i].to_vec().unwrap()[0];
    assert_eq!((value(0), value(2)), (1, 1), "one CPU each");
    let mut found = [value(1) as usize, value(3) as usize];
    found.sort_unstable();
    assert_eq!(found, [one[0], last[0]]);
    worker.close().unwrap();
}

/// P-21
pub(crate) fn cpus_that_cannot_be_used_fail_init_with_both_sets() {
    let worker = two().child_cpus(sub(1), [all_but()]).build().unwrap();
    let error = worker.init().unwrap_err();
    assert_eq!(error, Error::Cpus { asked: vec![all_but()], allowed: allowed() });
    assert_eq!(children(), []);
    let nobody = two().child_cpus(sub(2), [0]).build().unwrap().init().unwrap_err();
    assert!(nobody.to_string().contains("sub 2"), "{nobody}");
    assert!(matches!(two().child_cpus(sub(0), []).build().unwrap().init(), Err(Error::Cpus { .. })), "none at all");
}

/// A CPU that this process may not use.
fn all_but() -> usize {
    allowed().last().unwrap() + 1
}

/// P-21
pub(crate) fn an_overlap_is_reported_and_an_error_where_cpus_are_exclusive() {
    let cpu = allowed()[0];
    let both = || two().child_cpus(sub(0), [cpu]).child_cpus(sub(1), vec![cpu, cpu]);
    let overlap = CpuOverlap { one: sub(0), other: sub(1), cpus: vec![cpu] };
    let error = both().exclusive_cpus(true).build().unwrap().init().unwrap_err();
    assert_eq!(error, Error::CpusShared { overlap: overlap.clone() });
    assert!(error.to_string().contains(&format!("sub 0 and sub 1 were both given CPUs [{cpu}]")), "{error}");
    let bench = Bench::of(both().build().unwrap());
    let health = bench.worker.health();
    assert_eq!(health.cpu_overlaps, [overlap]);
    assert!(health.to_string().contains("sub 0 and sub 1 share CPUs"), "{health}");
    bench.worker.close().unwrap();
}

/// P-33
pub(crate) fn populated_regions_are_committed_before_init_returns() {
    let bench = Bench::of(two().build().unwrap());
    let lazy = bench.worker.health().committed_bytes;
    bench.worker.close().unwrap();
    let bench = Bench::of(two().populate(true).build().unwrap());
    let all = bench.worker.health().committed_bytes;
    assert!(lazy < 1 << 20 && all == 5 << 20, "{lazy} bytes without, {all} with");
    let x = bench.tensor(1024);
    bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
    assert_eq!(bench.worker.health().committed_bytes, all, "nothing more is touched");
    bench.worker.close().unwrap();
}

/// P-33: the kernel would kill this process where its control group has no more, so what can never fit is refused before.
pub(crate) fn populating_more_than_there_is_fails_init_with_both_numbers() {
    let worker = two().buffer_bytes(1 << 42).populate(true).build().unwrap();
    let error = worker.init().unwrap_err();
    assert!(matches!(error, Error::MemoryLimit { needed, limit, .. } if needed > 1 << 42 && limit < needed), "{error}");
    assert_eq!(children(), []);
}

/// P-33: what nobody here sent is most likely the kernel's own.
pub(crate) fn a_sigkill_from_elsewhere_reads_as_out_of_memory_with_the_limit() {
    let bench = Bench::new(2);
    let victim = bench.worker.health().children[0].pid;
    kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
    until("the death is noticed", || !bench.worker.health().ready);
    let text = bench.worker.health().children[0].to_string();
    for part in ["SIGKILL", "nobody in this tree sent", "likely out of memory", "may use ", " bytes"] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    bench.worker.close().unwrap();
}
