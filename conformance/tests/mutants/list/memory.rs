//! Devices that are wrong about what they hold: memory, callables, and what a shutdown leaves.

use crate::device::Wrong;
use crate::list::HBG;
use crate::{Fault, Suspect};

pub(super) const SUSPECTS: &[Suspect] = &[
    Suspect {
        fault: Fault::Device(Wrong::LeaksABank),
        profile: HBG,
        caught_by: &[
            "device/callables/two_slots_hold_one_payload_independently",
            "device/launch/a_run_that_was_never_launched_leaves_nothing",
            "device/prepare/arguments_that_do_not_fit_are_refused",
            "device/results/many_runs_give_the_same_answer_and_leave_nothing",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::LeaksRefusedArguments),
        profile: HBG,
        caught_by: &["device/prepare/arguments_that_do_not_fit_are_refused"],
    },
    Suspect {
        fault: Fault::Device(Wrong::LeaksCode),
        profile: HBG,
        caught_by: &[
            "device/callables/every_one_of_64_slots_works",
            "device/callables/two_slots_hold_one_payload_independently",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::ForgetsToFree),
        profile: HBG,
        caught_by: &[
            "device/memory/a_host_pointer_is_no_device_memory",
            "device/memory/dead_memory_is_not_copied",
            "device/memory/free_gives_everything_back",
            "device/memory/free_takes_the_base_of_a_live_allocation",
            "frame/control/a_failed_control_leaves_the_frame_usable",
            "frame/control/device_memory_is_reached_through_controls",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::FreesTwice),
        profile: HBG,
        caught_by: &["device/memory/free_takes_the_base_of_a_live_allocation"],
    },
    Suspect {
        fault: Fault::Device(Wrong::FreesFromInside),
        profile: HBG,
        caught_by: &["device/memory/free_takes_the_base_of_a_live_allocation"],
    },
    Suspect {
        fault: Fault::Device(Wrong::RegistersDuringARun),
        profile: HBG,
        caught_by: &["device/callables/callables_stay_while_a_run_needs_them"],
    },
    Suspect {
        fault: Fault::Device(Wrong::UnregistersDuringARun),
        profile: HBG,
        caught_by: &[
            "device/callables/callables_stay_while_a_run_needs_them",
            "device/order/a_refused_launch_leaves_the_run_prepared",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::OverwritesACallable),
        profile: HBG,
        caught_by: &["device/callables/a_slot_holds_one_callable", "file/a_failed_unregister_keeps_the_callable"],
    },
    Suspect {
        fault: Fault::Device(Wrong::TakesAnyCallable),
        profile: HBG,
        caught_by: &["device/callables/a_callable_that_is_none_is_refused"],
    },
    Suspect {
        fault: Fault::Device(Wrong::IsOffByOneAtTheEnd),
        profile: HBG,
        caught_by: &["device/memory/ranges_stay_inside_an_allocation"],
    },
    Suspect {
        fault: Fault::Device(Wrong::ReadsDeadMemory),
        profile: HBG,
        caught_by: &["device/memory/dead_memory_is_not_copied"],
    },
    Suspect {
        fault: Fault::Device(Wrong::TakesHostPointers),
        profile: HBG,
        caught_by: &[
            "device/memory/a_host_pointer_is_no_device_memory",
            "frame/control/a_failed_control_leaves_the_frame_usable",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::CopiesAByteTooFew),
        profile: HBG,
        caught_by: &[
            "device/memory/a_copy_touches_its_bytes_alone",
            "device/memory/bytes_come_back_from_the_device",
            "device/memory/device_tensors_are_used_where_they_are",
            "device/memory/live_allocations_are_apart",
            "device/memory/ranges_stay_inside_an_allocation",
            "device/results/an_output_may_be_an_input",
            "device/results/every_kernel_agrees_with_plain_arithmetic",
            "frame/control/device_memory_is_reached_through_controls",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::CopiesAByteTooMany),
        profile: HBG,
        caught_by: &[
            "device/memory/a_copy_touches_its_bytes_alone",
            "device/memory/bytes_come_back_from_the_device",
            "device/memory/device_tensors_are_used_where_they_are",
            "device/memory/live_allocations_are_apart",
            "device/results/an_output_may_be_an_input",
            "device/results/every_kernel_agrees_with_plain_arithmetic",
            "frame/control/device_memory_is_reached_through_controls",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::OverlapsAllocations),
        profile: HBG,
        caught_by: &[
            "device/launch/shutdown_ends_what_runs",
            "device/memory/device_tensors_are_used_where_they_are",
            "device/memory/live_allocations_are_apart",
            "device/results/every_kernel_agrees_with_plain_arithmetic",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::AllocatesNothing),
        profile: HBG,
        caught_by: &["device/memory/free_gives_everything_back"],
    },
    Suspect {
        fault: Fault::Device(Wrong::AllocatesAfterTheLoss),
        profile: HBG,
        caught_by: &[
            "device/lost/a_launch_that_fails_half_way_proves_nothing",
            "device/lost/a_poll_that_fails_proves_nothing",
            "device/lost/a_wait_that_fails_proves_nothing",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::AllocatesAfterTheEnd),
        profile: HBG,
        caught_by: &["device/launch/shutdown_ends_what_runs"],
    },
    Suspect {
        fault: Fault::Device(Wrong::LeaksAtShutdown),
        profile: HBG,
        caught_by: &[
            "device/launch/shutdown_ends_what_runs",
            "device/lost/a_launch_that_fails_half_way_proves_nothing",
            "device/lost/a_poll_that_fails_proves_nothing",
            "device/lost/a_wait_that_fails_proves_nothing",
            "file/a_failed_finalize_ends_its_run",
            "file/a_failed_prepare_leaves_the_device_usable",
            "file/a_failed_register_registers_nothing",
            "file/a_failed_unregister_keeps_the_callable",
            "file/a_failed_wait_loses_the_device",
            "file/a_late_finalize_is_no_failure",
            "file/a_refused_launch_fails_its_run_alone",
            "file/a_skipped_acceptance_changes_no_result",
            "file/an_incompatible_prepare_is_no_failure",
            "file/delays_change_no_result",
            "file/half_a_launch_loses_the_device",
            "file/several_failures_in_a_row_are_several_failures",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::FailsASecondShutdown),
        profile: HBG,
        caught_by: &["device/launch/shutdown_ends_what_runs"],
    },
    Suspect {
        fault: Fault::Device(Wrong::MakesUpMemory),
        profile: HBG,
        caught_by: &["device/memory/running_out_is_an_error_and_leaves_the_device_usable"],
    },
    Suspect {
        fault: Fault::Device(Wrong::RoundsAllocationsUp),
        profile: HBG,
        caught_by: &[
            "device/memory/a_device_tensor_stays_inside_its_allocation",
            "device/memory/ranges_stay_inside_an_allocation",
            "device/memory/running_out_is_an_error_and_leaves_the_device_usable",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::HasMemoryAfterAll),
        profile: HBG,
        caught_by: &["device/memory/a_device_without_memory_refuses_every_call_about_it"],
    },
];
