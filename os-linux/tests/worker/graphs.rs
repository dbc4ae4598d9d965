//! Order, memory and arguments.

use laneway_linux::{ChipTensor, EngineError, Error, TaskArgs, unallocated};

use crate::support::{Bench, Gate};

/// E-16, E-17: each INOUT orders after the one before it.
pub(crate) fn a_chain_runs_in_the_order_of_its_data() {
    let bench = Bench::new(3);
    let (x, y) = (bench.tensor(64), bench.tensor(64));
    for round in 0..20 {
        bench
            .worker
            .run(|orch| {
                for _ in 0..10 {
                    orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(3))?;
                }
                orch.submit_sub(&bench.copy, TaskArgs::new().input(&x).output(&y))?;
                Ok(())
            })
            .unwrap();
        assert_eq!(y.to_vec().unwrap(), vec![30 * (round + 1); 64]);
    }
    bench.worker.close().unwrap();
}

/// E-15, T-1: disjoint rows do not wait for each other, a reader of all of them waits for both.
pub(crate) fn a_reader_of_the_whole_waits_for_the_writers_of_its_rows() {
    let bench = Bench::new(2);
    let (x, y) = (bench.worker.tensor::<i32>(&[2, 32]).unwrap(), bench.worker.tensor::<i32>(&[2, 32]).unwrap());
    let rows: Vec<ChipTensor> = (0..2).map(|i| x.as_arg().slice(0, i, i + 1, 1).unwrap()).collect();
    for round in 1..50 {
        bench
            .worker
            .run(|orch| {
                for row in &rows {
                    orch.submit_sub(&bench.add, TaskArgs::new().inout(*row).scalar(1))?;
                }
                orch.submit_sub(&bench.copy, TaskArgs::new().input(&x).output(&y))?;
                Ok(())
            })
            .unwrap();
        assert_eq!(y.to_vec().unwrap(), vec![round; 64]);
    }
}

/// E-30, E-32: the second task opens the gate that the first waits for, so both must run at once.
pub(crate) fn independent_tasks_run_on_distinct_children_at_the_same_time() {
    let bench = Bench::new(2);
    let gate = Gate::new(&bench);
    let start = gate.arg();
    bench
        .worker
        .run(|orch| {
            orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(start))?;
            orch.submit_sub(&bench.add, TaskArgs::new().no_dep(start).scalar(1))?;
            Ok(())
        })
        .unwrap();
}

/// E-27: allocate, pass as OUTPUT, leave the scope while the task still runs, allocate again.
pub(crate) fn scratch_memory_is_never_handed_out_while_a_task_names_it() {
    let bench = Bench::new(2);
    let gate = Gate::new(&bench);
    bench
        .worker
        .run(|orch| {
            let held = orch.scope(|orch| {
                let scratch = orch.alloc::<i32>(&[256])?;
                orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg()).output(scratch))?;
                Ok::<_, Error>(scratch)
            })?;
            // The task runs, its scope is gone; the same ring must not give the same bytes to anybody.
            for _ in 0..1000 {
                let other = orch.scope(|orch| orch.alloc::<i32>(&[256]))?;
                assert!(!other.byte_range().overlaps(held.byte_range()), "{other:?} lies in {held:?}");
            }
            gate.open();
            orch.wait(&[held])?;
            Ok(())
        })
        .unwrap();
}

/// E-3 of the submit table: an OUTPUT with address 0 is given memory, and the submit says where.
pub(crate) fn an_output_without_an_address_is_allocated_at_submit() {
    let bench = Bench::new(1);
    let (x, y) = (bench.tensor(8), bench.tensor(8));
    x.copy_from(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    bench
        .worker
        .run(|orch| {
            let nowhere = unallocated::<i32>(&[8])?;
            let placed = orch.submit_sub(&bench.copy, TaskArgs::new().input(&x).output(nowhere))?;
            assert_eq!(placed.len(), 1);
            assert!(placed[0].addr() != 0 && placed[0].addr() % 1024 == 0);
            orch.submit_sub(&bench.copy, TaskArgs::new().input(placed[0]).output(&y))?;
            Ok(())
        })
        .unwrap();
    assert_eq!(y.to_vec().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
}

/// E-13, E-25, E-26
pub(crate) fn a_full_ring_is_waited_for_and_a_tensor_larger_than_it_is_refused() {
    let bench = Bench::of(crate::harness::builder!().subs(1).heap_ring_bytes(64 << 10).build().unwrap());
    let x = bench.tensor(4096);
    bench
        .worker
        .run(|orch| {
            for _ in 0..100 {
                // 16 KiB each: the ring holds four, so later ones wait for earlier tasks.
                orch.scope(|orch| {
                    let scratch = orch.alloc::<i32>(&[4096])?;
                    orch.submit_sub(&bench.copy, TaskArgs::new().input(&x).output(scratch))?;
                    Ok::<_, Error>(())
                })?;
            }
            let error = orch.alloc::<i32>(&[32 << 10]).unwrap_err();
            assert!(matches!(error, Error::Engine(EngineError::TooLarge { .. })), "{error}");
            Ok(())
        })
        .unwrap();
}

/// E-13
pub(crate) fn a_full_task_window_is_waited_for() {
    let bench = Bench::of(crate::harness::builder!().subs(2).task_window(8).build().unwrap());
    let x = bench.tensor(1);
    bench
        .worker
        .run(|orch| {
            for _ in 0..500 {
                orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?;
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(x.to_vec().unwrap(), [500]);
}

/// E-24, E-32
pub(crate) fn a_group_runs_on_distinct_children() {
    let bench = Bench::new(3);
    let pids: Vec<_> = (0..3).map(|_| bench.tensor(1)).collect();
    let mut lists: Vec<TaskArgs> = Vec::new();
    for pid in &pids {
        let mut list = TaskArgs::new();
        list.output(pid);
        lists.push(list);
    }
    let members: Vec<&TaskArgs> = lists.iter().collect();
    bench.worker.run(|orch| Ok(orch.submit_sub_group(&bench.pid, &members)?)).unwrap();
    let mut seen: Vec<i32> = pids.iter().map(|pid| pid.to_vec().unwrap()[0]).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 3, "three members ran in {seen:?}");
    let four = [&members[..], &members[..1]].concat();
    let error = bench.worker.run(|orch| Ok(orch.submit_sub_group(&bench.pid, &four)?)).unwrap_err();
    assert!(error.to_string().contains('4') && error.to_string().contains('3'), "both numbers: {error}");
}

/// P-19: the view of a transposed slice counts elements in its own order.
pub(crate) fn scalars_and_strided_views_arrive_as_they_were_given() {
    let bench = Bench::new(1);
    let x = bench.worker.tensor::<i32>(&[4, 6]).unwrap();
    x.fill_with(|i| i as i32).unwrap();
    let turned = x.as_arg().slice(1, 1, 4, 1).unwrap().transpose(0, 1).unwrap();
    let y = bench.worker.tensor::<i32>(&[3, 4]).unwrap();
    bench.worker.run(|orch| Ok(orch.submit_sub(&bench.copy, TaskArgs::new().input(turned).output(&y))?)).unwrap();
    assert_eq!(y.to_vec().unwrap(), [1, 7, 13, 19, 2, 8, 14, 20, 3, 9, 15, 21]);
    bench.worker.close().unwrap();
}
