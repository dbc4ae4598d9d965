//! Devices that are wrong about runs: their phases, tokens, order and acceptance, and what a failure means.

use crate::device::Wrong;
use crate::list::{A5_HBG, HBG};
use crate::{Fault, Suspect};

pub(super) const SUSPECTS: &[Suspect] = &[
    Suspect {
        fault: Fault::Device(Wrong::FinalizesTwice),
        profile: HBG,
        caught_by: &["device/launch/a_token_is_good_until_its_finalize"],
    },
    Suspect {
        fault: Fault::Device(Wrong::LaunchesEarly),
        profile: HBG,
        caught_by: &[
            "device/callables/callables_stay_while_a_run_needs_them",
            "device/launch/a_run_that_was_never_launched_leaves_nothing",
            "device/launch/acceptance_comes_with_the_launch_and_goes_with_the_run",
            "device/launch/an_acceptance_that_never_came_stays_away",
            "device/launch/no_call_is_taken_in_the_wrong_phase",
            "device/launch/shutdown_ends_what_runs",
            "device/lost/a_launch_that_fails_half_way_proves_nothing",
            "device/order/a_prepared_run_is_given_up_beside_one_that_executes",
            "device/order/a_refused_launch_leaves_the_run_prepared",
            "device/order/a_second_run_launches_after_the_first_was_finalized",
            "device/order/banks_of_two_runs_are_apart",
            "device/order/direct_runs_wait_for_room_and_drive_each_other",
            "device/prepare/nothing_runs_before_the_launch",
            "file/a_refused_launch_fails_its_run_alone",
            "file/several_failures_in_a_row_are_several_failures",
            "frame/beside/a_successor_is_prepared_natively_where_that_may_be",
            "frame/beside/a_successor_is_withdrawn_while_its_predecessor_runs",
            "frame/beside/a_successor_launches_after_its_predecessor_was_finalized",
            "frame/one_frame/a_failed_task_was_never_accepted",
            "frame/stop/every_published_frame_gets_its_terminal_state",
            "frame/two_frames/the_earlier_dispatch_runs_first",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::ForgetsAcceptance),
        profile: HBG,
        caught_by: &[
            "device/launch/a_run_that_hangs_is_never_ready",
            "device/launch/acceptance_comes_with_the_launch_and_goes_with_the_run",
            "device/launch/an_acceptance_that_never_came_stays_away",
            "frame/beside/a_successor_launches_after_its_predecessor_was_finalized",
            "frame/one_frame/a_failed_task_was_never_accepted",
            "frame/one_frame/acceptance_comes_before_the_end",
            "frame/two_frames/acceptance_comes_with_the_launch",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::AcceptsFromPrepareOn),
        profile: HBG,
        caught_by: &[
            "device/launch/acceptance_comes_with_the_launch_and_goes_with_the_run",
            "device/launch/an_acceptance_that_never_came_stays_away",
            "device/order/a_refused_launch_leaves_the_run_prepared",
            "device/order/a_second_run_launches_after_the_first_was_finalized",
            "device/prepare/nothing_runs_before_the_launch",
            "frame/one_frame/a_skipped_acceptance_leaves_the_word_zero",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::KeepsAcceptance),
        profile: HBG,
        caught_by: &[
            "device/launch/acceptance_comes_with_the_launch_and_goes_with_the_run",
            "device/launch/an_acceptance_that_never_came_stays_away",
            "frame/one_frame/a_skipped_acceptance_leaves_the_word_zero",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::TakesStaleTokens),
        profile: HBG,
        caught_by: &[
            "device/launch/a_token_is_good_until_its_finalize",
            "device/prepare/every_prepare_has_an_epoch_of_its_own",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::UsesASlotBeyondTheDepth),
        profile: A5_HBG,
        caught_by: &["device/prepare/a_run_slot_beyond_the_depth_is_unsupported"],
    },
    Suspect {
        fault: Fault::Device(Wrong::ClaimsADeeperContract),
        profile: A5_HBG,
        caught_by: &[
            "device/order/a_prepare_beside_another_run_is_incompatible",
            "device/prepare/a_run_slot_beyond_the_depth_is_unsupported",
            "frame/beside/a_failed_prepare_of_a_successor_fails_it_alone",
            "frame/beside/a_successor_is_validated_where_nothing_is_prepared_beside",
            "frame/beside/a_successor_is_withdrawn_while_its_predecessor_runs",
            "frame/beside/a_successor_launches_after_its_predecessor_was_finalized",
            "frame/one_frame/both_pipeline_slots_come_through_one_frame",
            "frame/two_frames/a_successor_that_is_activated_before_it_is_staged_runs_once",
            "frame/two_frames/a_successor_waits_for_its_activation",
            "frame/two_frames/a_withdrawn_successor_fails_and_the_child_goes_on",
            "frame/two_frames/acceptance_comes_with_the_launch",
            "frame/two_frames/the_earlier_dispatch_runs_first",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::CallsUnsupportedAFailure),
        profile: A5_HBG,
        caught_by: &["device/prepare/a_run_slot_beyond_the_depth_is_unsupported"],
    },
    Suspect {
        fault: Fault::Device(Wrong::HidesFailuresOfTheDevice),
        profile: HBG,
        caught_by: &[
            "device/lost/a_launch_that_fails_half_way_proves_nothing",
            "device/lost/a_poll_that_fails_proves_nothing",
            "device/lost/a_wait_that_fails_proves_nothing",
            "file/a_failed_wait_loses_the_device",
            "file/half_a_launch_loses_the_device",
            "frame/one_frame/a_lost_device_is_reported_and_then_left",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::PreparesBesideWhereItMayNot),
        profile: HBG,
        caught_by: &["device/order/a_prepare_beside_another_run_is_incompatible"],
    },
    Suspect {
        fault: Fault::Device(Wrong::PreparesDiagnosticsBeside),
        profile: HBG,
        caught_by: &["device/order/a_diagnostic_run_is_prepared_alone"],
    },
    Suspect {
        fault: Fault::Device(Wrong::OverlapsTwoRuns),
        profile: HBG,
        caught_by: &["device/order/a_second_run_launches_after_the_first_was_finalized"],
    },
    Suspect {
        fault: Fault::Device(Wrong::CallsIncompatibleAFailure),
        profile: HBG,
        caught_by: &[
            "device/order/a_diagnostic_run_is_prepared_alone",
            "file/an_incompatible_prepare_is_no_failure",
            "frame/beside/an_incompatible_prepare_is_deferred",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::ForgetsCodes),
        profile: HBG,
        caught_by: &[
            "device/order/a_refused_launch_leaves_the_run_prepared",
            "file/a_failed_finalize_ends_its_run",
            "file/a_failed_prepare_leaves_the_device_usable",
            "file/a_failed_register_registers_nothing",
            "file/a_failed_unregister_keeps_the_callable",
            "file/a_refused_launch_fails_its_run_alone",
            "file/several_failures_in_a_row_are_several_failures",
            "frame/beside/a_failed_prepare_of_a_successor_fails_it_alone",
            "frame/one_frame/a_failed_task_is_done_with_an_error",
            "frame/one_frame/a_failed_task_was_never_accepted",
            "frame/two_frames/a_failed_task_ends_in_task_failed",
        ],
    },
    Suspect {
        fault: Fault::Device(Wrong::GivesUpARefusedLaunch),
        profile: HBG,
        caught_by: &["device/order/a_refused_launch_leaves_the_run_prepared"],
    },
    Suspect {
        fault: Fault::Device(Wrong::LosesTheDeviceOnAnyFailure),
        profile: HBG,
        caught_by: &[
            "file/a_failed_prepare_leaves_the_device_usable",
            "file/several_failures_in_a_row_are_several_failures",
            "frame/beside/a_failed_prepare_of_a_successor_fails_it_alone",
            "frame/one_frame/a_failed_task_is_done_with_an_error",
            "frame/two_frames/a_failed_task_ends_in_task_failed",
        ],
    },
];
