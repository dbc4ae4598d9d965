//! What a graph computes.

use laneway_core::engine::EngineError;
use laneway_linux::{Error, TaskArgs, unallocated};

use super::Grove;
use super::grove::Subs;
use super::signal::until;
use crate::case::Case;
use crate::expect::{Must, Verdict, equal, holds, mentions, refused};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::tree(
            "graph/a_chain_runs_in_order",
            &["E-14", "E-18", "E-21"],
            "Tasks that read and write one tensor run one after the other, in the order of their submits.",
            chain,
        ),
        Case::tree(
            "graph/a_reader_waits_for_every_writer",
            &["E-15", "E-17", "E-18"],
            "A task that reads what several wrote runs after all of them, and its own readers after it.",
            diamond,
        ),
        Case::tree(
            "graph/tiles_of_one_tensor_are_independent",
            &["E-16", "E-2"],
            "A task on one tile of a tensor does not wait for a task on another.",
            tiles,
        ),
        Case::tree(
            "graph/a_pure_overwrite_waits_for_nobody_unless_it_is_told_to",
            &["E-19"],
            "A task that only overwrites does not wait for an earlier reader, and does so with strict_war.",
            overwrite,
        ),
        Case::tree(
            "graph/an_output_without_an_address_is_allocated",
            &["E-25", "E-27"],
            "An OUTPUT at address 0 is given a slab at a multiple of 1,024, and the submit says where.",
            allocated,
        ),
        Case::tree(
            "graph/scratch_lives_until_its_last_reader",
            &["E-27", "E-28"],
            "Memory from alloc outlives its scope until no task names it any more.",
            scratch,
        ),
        Case::tree(
            "graph/a_group_runs_on_distinct_children",
            &["E-24", "E-32"],
            "Members of a SUB group run in as many processes; a group larger than the pool is refused with both numbers.",
            group,
        )
        .processes(),
        Case::tree(
            "graph/a_full_ring_is_waited_for",
            &["E-13", "E-25", "E-26"],
            "A submit that finds no room waits for earlier tasks; what is larger than the ring fails at once.",
            ring,
        ),
        Case::tree(
            "graph/a_full_window_is_waited_for",
            &["E-13"],
            "More tasks than the window holds can be submitted in one run.",
            window,
        ),
        Case::tree(
            "graph/a_strided_view_arrives_as_it_was_given",
            &["P-19", "W-7"],
            "A transposed slice is seen in a SUB child element by element in its own order.",
            views,
        ),
    ]
}

fn chain(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(2)?;
    let x = subs.tensor(16)?;
    subs.worker
        .run(|orch| {
            for _ in 0..100 {
                orch.submit_sub(&subs.add, TaskArgs::new().inout(&x).scalar(1))?;
            }
            Ok(())
        })
        .must("the run")?;
    equal("a hundred additions", x.to_vec().must("the tensor")?, [100; 16])?;
    subs.close()
}

fn diamond(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(2)?;
    let both = subs.worker.tensor::<i32>(&[2, 8]).must("a tensor")?;
    let half = |row| both.as_arg().slice(0, row, row + 1, 1).must("a row");
    let (upper, lower) = (half(0)?, half(1)?);
    let (x, out) = (subs.tensor(8)?, subs.worker.tensor::<i32>(&[2, 8]).must("a tensor")?);
    for round in 1..=20 {
        subs.worker
            .run(|orch| {
                orch.submit_sub(&subs.add, TaskArgs::new().inout(&x).scalar(1))?;
                orch.submit_sub(&subs.copy, TaskArgs::new().input(&x).output(upper))?;
                orch.submit_sub(&subs.copy, TaskArgs::new().input(&x).output(lower))?;
                orch.submit_sub(&subs.add, TaskArgs::new().inout(lower).scalar(100))?;
                // Reads what the last three wrote.
                orch.submit_sub(&subs.copy, TaskArgs::new().input(&both).output(&out))?;
                orch.submit_sub(&subs.add, TaskArgs::new().inout(&out).scalar(1000))?;
                Ok(())
            })
            .must("the run")?;
        let expected = [[1000 + round; 8], [1100 + round; 8]].concat();
        equal(format_args!("the result of round {round}"), out.to_vec().must("the tensor")?, expected)?;
    }
    subs.close()
}

fn tiles(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(2)?;
    let x = subs.worker.tensor::<i32>(&[4, 4]).must("a tensor")?;
    let tile = |from| x.as_arg().slice(1, from, from + 2, 1).must("a slice");
    let (left, right) = (tile(0)?, tile(2)?);
    subs.worker
        .run(|orch| {
            orch.submit_sub(&subs.hold, TaskArgs::new().inout(left))?;
            orch.submit_sub(&subs.add, TaskArgs::new().inout(right).scalar(7))?;
            // It ends although the task on the other tile is held.
            orch.wait(&[right])?;
            refused("looking at bytes that a task names", x.to_vec(), "InUse", |error| {
                matches!(error, Error::InUse { .. })
            })?;
            Ok(subs.gate.send()?)
        })
        .must("the run")?;
    equal("the tensor", x.to_vec().must("the tensor")?, [[0, 0, 7, 7]; 4].concat())?;
    subs.close()
}

fn overwrite(grove: &mut Grove<'_>) -> Verdict {
    for strict in [false, true] {
        let subs = Subs::start(grove.builder().subs(2).strict_war(strict).build().must("a worker")?)?;
        let (x, y) = (subs.tensor(4)?, subs.tensor(4)?);
        y.fill_with(|_| 7).must("fill")?;
        let run = subs.worker.submit(|orch| {
            orch.submit_sub(&subs.hold, TaskArgs::new().input(&x))?;
            orch.submit_sub(&subs.copy, TaskArgs::new().input(&y).output(&x))?;
            Ok(())
        });
        let run = run.must("submit")?;
        subs.running.wait().must("the reader runs")?;
        let completed = || subs.worker.metrics().tasks.completed;
        if strict {
            for _ in 0..1000 {
                std::thread::yield_now();
            }
            equal("tasks that have ended beside the reader, with strict_war", completed(), 0_u64)?;
        } else {
            until("the overwrite has ended beside the reader", || completed() == 1)?;
        }
        subs.gate.send().must("the gate")?;
        run.wait().must("the run")?;
        equal("what was written", x.to_vec().must("the tensor")?, [7; 4])?;
        subs.close()?;
    }
    Ok(())
}

fn allocated(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let (x, y) = (subs.tensor(8)?, subs.tensor(8)?);
    x.copy_from(&[1, 2, 3, 4, 5, 6, 7, 8]).must("copy_from")?;
    subs.worker
        .run(|orch| {
            let placed = orch.submit_sub(&subs.copy, TaskArgs::new().input(&x).output(unallocated::<i32>(&[8])?))?;
            equal("tensors that the submit returned", placed.len(), 1)?;
            holds("its address", placed[0].addr() != 0 && placed[0].addr() % 1024 == 0, || placed[0].addr())?;
            orch.submit_sub(&subs.copy, TaskArgs::new().input(placed[0]).output(&y))?;
            Ok(())
        })
        .must("the run")?;
    equal("what came through it", y.to_vec().must("the tensor")?, [1, 2, 3, 4, 5, 6, 7, 8])?;
    subs.close()
}

fn scratch(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let outs: Vec<_> = (0..20).map(|_| subs.tensor(16)).collect::<Result<_, _>>()?;
    subs.worker
        .run(|orch| {
            for (number, out) in outs.iter().enumerate() {
                orch.scope(|orch| {
                    let scratch = orch.alloc::<i32>(&[16])?;
                    orch.submit_sub(&subs.copy, TaskArgs::new().input(&outs[0]).output(scratch))?;
                    orch.submit_sub(&subs.add, TaskArgs::new().inout(scratch).scalar(number as u64))?;
                    orch.submit_sub(&subs.copy, TaskArgs::new().input(scratch).output(out))?;
                    Ok::<_, Error>(())
                })?;
            }
            Ok(())
        })
        .must("the run")?;
    for (number, out) in outs.iter().enumerate() {
        equal(format_args!("result {number}"), out.to_vec().must("the tensor")?, [number as i32; 16])?;
    }
    subs.close()
}

fn group(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(3)?;
    let cells = [subs.tensor(1)?, subs.tensor(1)?, subs.tensor(1)?];
    let lists: Vec<TaskArgs> = cells.iter().map(|cell| TaskArgs::new().output(cell).clone()).collect();
    let members: Vec<&TaskArgs> = lists.iter().collect();
    subs.worker.run(|orch| Ok(orch.submit_sub_group(&subs.pid, &members).map(drop)?)).must("the run")?;
    let mut seen = Vec::new();
    for cell in &cells {
        seen.push(cell.to_vec().must("a process id")?[0]);
    }
    seen.sort_unstable();
    seen.dedup();
    equal(format_args!("how many processes ran three members ({seen:?})"), seen.len(), 3)?;
    let four = [&members[..], &members[..1]].concat();
    let error = subs.worker.run(|orch| Ok(orch.submit_sub_group(&subs.pid, &four).map(drop)?));
    let error = refused("a group of four on three", error, "an error", |_| true)?;
    mentions("the refusal", &error.to_string(), &["4", "3"])?;
    subs.close()
}

fn ring(grove: &mut Grove<'_>) -> Verdict {
    let subs = Subs::start(grove.builder().subs(1).heap_ring_bytes(64 << 10).build().must("a worker")?)?;
    let x = subs.tensor(4096)?;
    subs.worker
        .run(|orch| {
            for _ in 0..40 {
                // 16 KiB each: the ring holds four, so later ones wait for earlier tasks.
                orch.scope(|orch| {
                    let scratch = orch.alloc::<i32>(&[4096])?;
                    orch.submit_sub(&subs.copy, TaskArgs::new().input(&x).output(scratch))?;
                    Ok::<_, Error>(())
                })?;
            }
            refused("an allocation larger than the ring", orch.alloc::<i32>(&[32 << 10]), "TooLarge", |error| {
                matches!(error, Error::Engine(EngineError::TooLarge { .. }))
            })?;
            Ok(())
        })
        .must("the run")?;
    subs.close()
}

fn window(grove: &mut Grove<'_>) -> Verdict {
    let subs = Subs::start(grove.builder().subs(2).task_window(8).build().must("a worker")?)?;
    let x = subs.tensor(1)?;
    subs.worker
        .run(|orch| {
            for _ in 0..100 {
                orch.submit_sub(&subs.add, TaskArgs::new().inout(&x).scalar(1))?;
            }
            Ok(())
        })
        .must("the run")?;
    equal("a hundred additions", x.to_vec().must("the tensor")?, [100])?;
    subs.close()
}

fn views(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let x = subs.worker.tensor::<i32>(&[4, 6]).must("a tensor")?;
    x.fill_with(|i| i as i32).must("fill")?;
    let turned = x.as_arg().slice(1, 1, 4, 1).and_then(|slice| slice.transpose(0, 1)).must("a view")?;
    let y = subs.worker.tensor::<i32>(&[3, 4]).must("a tensor")?;
    subs.one(&subs.copy, TaskArgs::new().input(turned).output(&y)).must("the run")?;
    equal("the elements", y.to_vec().must("the tensor")?, [1, 7, 13, 19, 2, 8, 14, 20, 3, 9, 15, 21])?;
    subs.close()
}
