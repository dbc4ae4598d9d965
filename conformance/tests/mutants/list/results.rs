//! Devices whose results are wrong, or come too early, too late or to the wrong place.

use crate::device::Wrong;
use crate::list::HBG;
use crate::{Fault, Suspect};

pub(super) const SUSPECTS: &[Suspect] = &[
    Suspect {
        fault: Fault::Device(Wrong::SpoilsTheLastElement),
        profile: HBG,
        caught_by: &[
            "device/results/every_kernel_agrees_with_plain_arithmetic",
            "device/results/gaps_between_elements_are_not_touched",
            "device/results/the_last_element_of_a_strided_view_counts",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::WritesBehindTheLastElement),
        profile: HBG,
        caught_by: &[
            "device/results/every_kernel_agrees_with_plain_arithmetic",
            "device/results/gaps_between_elements_are_not_touched",
            "device/results/the_last_element_of_a_strided_view_counts",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::CopiesInputsBack),
        profile: HBG,
        caught_by: &[
            "device/results/an_input_is_never_written_back",
            "device/results/steps_of_a_program_see_each_others_results",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::SkipsCopyBackOfViews),
        profile: HBG,
        caught_by: &[
            "device/results/every_kernel_agrees_with_plain_arithmetic",
            "device/results/gaps_between_elements_are_not_touched",
            "device/results/the_last_element_of_a_strided_view_counts",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::CopiesBackWhatWasGivenUp),
        profile: HBG,
        caught_by: &[
            "device/launch/a_run_that_was_never_launched_leaves_nothing",
            "device/order/a_prepared_run_is_given_up_beside_one_that_executes",
            "file/a_refused_launch_fails_its_run_alone",
            "file/several_failures_in_a_row_are_several_failures",
            "frame/beside/a_successor_is_withdrawn_while_its_predecessor_runs",
            "frame/one_frame/a_failed_task_was_never_accepted",
            "frame/stop/every_published_frame_gets_its_terminal_state",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::CopiesBackTheUnproven),
        profile: HBG,
        caught_by: &[
            "device/launch/no_call_is_taken_in_the_wrong_phase",
            "device/lost/a_launch_that_fails_half_way_proves_nothing",
            "device/lost/a_poll_that_fails_proves_nothing",
            "device/lost/a_wait_that_fails_proves_nothing",
            "device/order/a_refused_launch_leaves_the_run_prepared",
            "device/order/a_second_run_launches_after_the_first_was_finalized",
            "file/a_failed_wait_loses_the_device",
            "file/a_refused_launch_fails_its_run_alone",
            "file/half_a_launch_loses_the_device",
            "file/several_failures_in_a_row_are_several_failures",
            "frame/one_frame/a_failed_task_was_never_accepted",
            "frame/one_frame/a_lost_device_is_reported_and_then_left",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::CompletesEarly),
        profile: HBG,
        caught_by: &[
            "device/launch/a_run_is_ready_no_sooner_than_the_device_is",
            "device/launch/a_run_that_hangs_is_never_ready",
            "frame/beside/a_diagnostic_successor_is_validated_only",
            "frame/beside/a_successor_is_prepared_natively_where_that_may_be",
            "frame/beside/a_successor_is_withdrawn_while_its_predecessor_runs",
            "frame/beside/a_successor_launches_after_its_predecessor_was_finalized",
            "frame/beside/a_successor_of_a_diagnostic_task_is_validated_only",
            "frame/beside/an_incompatible_prepare_is_deferred",
            "frame/control/a_control_is_served_beside_a_task_in_a_two_frame_child",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::HangsOnNothing),
        profile: HBG,
        caught_by: &[
            "device/results/a_view_without_elements_is_legal",
            "device/results/every_kernel_agrees_with_plain_arithmetic",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::CrashesOnDiagnostics),
        profile: HBG,
        caught_by: &[
            "device/order/a_diagnostic_run_computes_the_same",
            "device/order/a_diagnostic_run_is_prepared_alone",
            "frame/beside/a_diagnostic_successor_is_validated_only",
            "frame/beside/a_successor_of_a_diagnostic_task_is_validated_only",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::TruncatesBf16),
        profile: HBG,
        caught_by: &["device/results/bf16_is_rounded_to_the_nearest_even"],
    },
    Suspect {
        fault: Fault::Device(Wrong::SaturatesWholeNumbers),
        profile: HBG,
        caught_by: &["device/results/whole_numbers_wrap"],
    },
    Suspect {
        fault: Fault::Device(Wrong::TruncatesF16),
        profile: HBG,
        caught_by: &["device/results/f16_is_rounded_to_the_nearest_even"],
    },
    Suspect {
        fault: Fault::Device(Wrong::KeepsTheFirstSize),
        profile: HBG,
        caught_by: &[
            "device/results/every_kernel_agrees_with_plain_arithmetic",
            "device/results/tensors_larger_than_the_ones_before_are_staged",
        ],
    },
];
