//! Chips, nested workers and controls.

use laneway_linux::TaskArgs;

use super::super::Failure;
use super::super::case::Case;
use super::super::slice::Slice;
use super::super::trees::{ChipTree, NestedTree, Trees};

/// Tasks of a run on a chip.
const CHIP_TASKS: usize = 500;
/// Bytes that a control asks a chip for.
const BYTES: u64 = 4096;

pub(super) fn cases(trees: &Trees) -> Vec<Case<'_>> {
    let (one, two, nested) = (&trees.one_frame, &trees.two_frames, &trees.nested);
    vec![
        Case::free("chip_1_run", "chip, one frame: run of 1 task", move |slice| chip(one, slice, 1)),
        Case::free("chip_1_each", "chip, one frame: 500 tasks, each", move |slice| chip(one, slice, CHIP_TASKS)),
        Case::free("chip_2_run", "chip, two frames: run of 1 task", move |slice| chip(two, slice, 1)),
        Case::free("chip_2_each", "chip, two frames: 500 tasks, each", move |slice| chip(two, slice, CHIP_TASKS)),
        Case::free("nested", "L4, L3, SUB: run of 1 task", move |slice| through_levels(nested, slice)),
        Case::free("control", "control of a chip child there and back", move |slice| control(one, slice)),
    ]
}

fn chip(tree: &ChipTree, slice: &mut Slice, tasks: usize) -> Result<(), Failure> {
    let args = TaskArgs::new();
    slice.repeat(tasks as u64, || {
        Ok(tree.worker.run(|orch| {
            for _ in 0..tasks {
                orch.submit_next_level(&tree.noop, tree.chip, &args)?;
            }
            Ok(())
        })?)
    })
}

fn through_levels(tree: &NestedTree, slice: &mut Slice) -> Result<(), Failure> {
    let args = TaskArgs::new();
    slice.repeat(1, || {
        Ok(tree.worker.run(|orch| Ok(orch.submit_next_level(&tree.pass_on, tree.below, &args).map(drop)?))?)
    })
}

/// Two controls: memory is asked for and given back.
fn control(tree: &ChipTree, slice: &mut Slice) -> Result<(), Failure> {
    slice.repeat(2, || {
        let memory = tree.worker.malloc(tree.chip, BYTES)?;
        Ok(tree.worker.free(tree.chip, memory)?)
    })
}
