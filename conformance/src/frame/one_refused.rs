//! Frames that must be refused.

use laneway_core::ids::PipelineSlot::Zero;
use laneway_core::wire::FrameState;
use laneway_sim::Kernel;

use super::Desk;
use super::desk::{FIRST, Sheet};
use crate::case::Case;
use crate::device::VectorAdd;
use crate::expect::{Verdict, equal, holds, mentions};

const ADD: &[Kernel] = &[Kernel::Add];

pub(super) fn cases() -> Vec<Case> {
    let case = |name, rules, says, run| Case::one_frame(name, rules, says, run).kernels(ADD);
    vec![
        case(
            "refused/another_protocol",
            &["L-5", "W-1"],
            "A child serves one protocol version, and names both when it refuses another.",
            protocol,
        ),
        case(
            "refused/an_identity_with_a_zero",
            &["L-5"],
            "Run id, generation and dispatch id 0 are refused, each by its name.",
            zeros,
        ),
        case(
            "refused/a_slot_beyond_the_depth",
            &["L-5", "L-34"],
            "A pipeline slot that the child did not publish is refused.",
            slot,
        ),
        case(
            "refused/a_lease_that_disagrees_with_the_trailer",
            &["L-1", "L-5"],
            "Slot, reserved word and generation of the lease must agree with the trailer.",
            lease,
        ),
        case(
            "refused/a_stale_lease",
            &["C-5"],
            "A generation below the highest one seen is refused; the same one and later ones are not.",
            stale,
        ),
        case(
            "refused/an_unknown_callable",
            &["L-5", "R-3", "R-10"],
            "A digest that is not installed is refused, and named.",
            callable,
        ),
        case(
            "refused/a_config_out_of_range",
            &["L-5", "W-7"],
            "A config that is not legal is refused, by the field.",
            config,
        ),
        case(
            "refused/an_argument_list_that_lies",
            &["W-7", "W-8"],
            "Negative counts, counts over the caps and tensors that leave their buffer are refused.",
            list,
        ),
        case(
            "refused/the_first_failure_in_order_is_the_one_reported",
            &["L-5"],
            "Of several failures the earliest in the order of validation is reported: the protocol before an identity, an \
             identity before a callable, a callable before a config.",
            order,
        ),
        case(
            "refused/a_tensor_of_no_memory",
            &["C-13", "L-5"],
            "A tensor in device memory that is not live fails its task alone.",
            dead_tensor,
        ),
    ]
}

/// Publishes a frame that must be refused with a text that mentions `parts`; nothing may be computed, and a good frame must
/// work afterwards.
fn refuses(desk: &mut Desk<'_>, what: &str, parts: &[&str], spoil: impl FnOnce(&mut Sheet)) -> Verdict {
    let work = VectorAdd::new();
    let good = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    let mut bad = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    spoil(&mut bad);
    desk.publish(FIRST, &bad, FrameState::TaskReady);
    let ending = desk.ends(FIRST)?;
    equal(format_args!("the state after {what}"), ending.state, FrameState::TaskDone.raw())?;
    holds(format_args!("{what} is an error"), ending.error != 0, || "error 0")?;
    mentions(format_args!("the message about {what}"), &ending.message, parts)?;
    equal(format_args!("acceptance after {what}"), ending.accepted, 0)?;
    work.is_untouched()?;
    let mut good = good;
    good.trailer.dispatch += 1;
    desk.succeeds(FIRST, &good)?;
    work.is_done()
}

fn protocol(desk: &mut Desk<'_>) -> Verdict {
    refuses(desk, "protocol 3", &["3", "2"], |sheet| sheet.trailer.protocol = 3)?;
    refuses(desk, "protocol 0", &["0", "2"], |sheet| sheet.trailer.protocol = 0)
}

fn zeros(desk: &mut Desk<'_>) -> Verdict {
    refuses(desk, "run id 0", &["run"], |sheet| sheet.trailer.run = 0)?;
    refuses(desk, "generation 0", &["generation"], |sheet| {
        (sheet.trailer.generation, sheet.lease.generation) = (0, 0);
    })?;
    refuses(desk, "dispatch id 0", &["dispatch"], |sheet| sheet.trailer.dispatch = 0)
}

fn slot(desk: &mut Desk<'_>) -> Verdict {
    let depth = desk.depth as u32;
    refuses(desk, "a slot beyond the depth", &["slot"], |sheet| {
        (sheet.trailer.slot, sheet.lease.slot_id) = (depth.into(), depth);
    })?;
    refuses(desk, "slot 2^32", &["slot"], |sheet| sheet.trailer.slot = 1 << 32)
}

fn lease(desk: &mut Desk<'_>) -> Verdict {
    refuses(desk, "another slot in the lease", &["lease"], |sheet| sheet.lease.slot_id = 1)?;
    refuses(desk, "a reserved word of 1", &["reserved"], |sheet| sheet.lease.reserved = 1)?;
    refuses(desk, "another generation in the lease", &["lease", "generation"], |sheet| sheet.lease.generation = 2)
}

fn stale(desk: &mut Desk<'_>) -> Verdict {
    let leased = |desk: &mut Desk<'_>, generation: u64| {
        let work = VectorAdd::new();
        let mut sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
        (sheet.trailer.generation, sheet.lease.generation) = (generation, generation);
        desk.publish(FIRST, &sheet, FrameState::TaskReady);
        let ending = desk.ends(FIRST)?;
        if ending.error == 0 {
            work.is_done()?
        } else {
            work.is_untouched()?
        }
        Ok(ending)
    };
    for (generation, admitted) in [(5, true), (4, false), (5, true), (1, false), (6, true), (5, false)] {
        let ending = leased(desk, generation)?;
        equal(format_args!("whether generation {generation} is admitted"), ending.error == 0, admitted)?;
        if !admitted {
            mentions("the refusal", &ending.message, &["generation", &generation.to_string()])?;
        }
    }
    Ok(())
}

fn callable(desk: &mut Desk<'_>) -> Verdict {
    refuses(desk, "an unknown digest", &["sha256:aaaaaaaa"], |sheet| sheet.digest.0 = [0xaa; 32])?;
    refuses(desk, "the digest of nothing", &["sha256:00000000"], |sheet| sheet.digest.0 = [0; 32])
}

fn config(desk: &mut Desk<'_>) -> Verdict {
    refuses(desk, "one thread", &["aicpu_thread_num"], |sheet| sheet.config.aicpu_thread_num = 1)?;
    refuses(desk, "swim lane 5", &["enable_chip_swimlane"], |sheet| sheet.config.enable_chip_swimlane = 5)?;
    refuses(desk, "diagnostics without a prefix", &["output_prefix"], |sheet| sheet.config.enable_pmu = 1)
}

fn list(desk: &mut Desk<'_>) -> Verdict {
    let word = |sheet: &mut Sheet, at: usize, value: i32| sheet.blob[at..at + 4].copy_from_slice(&value.to_le_bytes());
    refuses(desk, "−1 tensors", &["-1"], |sheet| word(sheet, 0, -1))?;
    refuses(desk, "257 tensors", &["257", "256"], |sheet| word(sheet, 0, 257))?;
    refuses(desk, "129 scalars", &["129", "128"], |sheet| word(sheet, 4, 129))?;
    refuses(desk, "the most negative count", &["scalar"], |sheet| word(sheet, 4, i32::MIN))?;
    // The first tensor is at 8: its number of dimensions at 36, its element type at 40, its shape from 44 on.
    refuses(desk, "six dimensions", &["6"], |sheet| word(sheet, 8 + 36, 6))?;
    refuses(desk, "element type 99", &["99"], |sheet| sheet.blob[8 + 40] = 99)?;
    refuses(desk, "a shape that leaves its buffer", &[], |sheet| word(sheet, 8 + 44, 1_000_000))
}

fn order(desk: &mut Desk<'_>) -> Verdict {
    refuses(desk, "protocol, run and callable", &["protocol"], |sheet| {
        sheet.trailer.protocol = 9;
        sheet.trailer.run = 0;
        sheet.digest.0 = [0xaa; 32];
    })?;
    refuses(desk, "dispatch and callable", &["dispatch"], |sheet| {
        sheet.trailer.dispatch = 0;
        sheet.digest.0 = [0xaa; 32];
    })?;
    refuses(desk, "callable and config", &["sha256:aaaaaaaa"], |sheet| {
        sheet.digest.0 = [0xaa; 32];
        sheet.config.aicpu_thread_num = 1;
    })?;
    refuses(desk, "config and list", &["aicpu_thread_num"], |sheet| {
        sheet.config.aicpu_thread_num = 1;
        sheet.blob[..4].copy_from_slice(&(-1_i32).to_le_bytes());
    })
}

fn dead_tensor(desk: &mut Desk<'_>) -> Verdict {
    // `address_space`, at 43 of the first tensor.
    refuses(desk, "a host address as device memory", &["device memory"], |sheet| sheet.blob[8 + 43] = 1)
}
