//! Child halves that are wrong about the words of their mailbox.

use crate::child::Slip;
use crate::list::HBG;
use crate::{Fault, Suspect};

pub(super) const SUSPECTS: &[Suspect] = &[
    Suspect {
        fault: Fault::Child(Slip::ForgetsTheAcceptanceWord),
        profile: HBG,
        caught_by: &[
            "frame/beside/a_successor_launches_after_its_predecessor_was_finalized",
            "frame/one_frame/a_failed_task_was_never_accepted",
            "frame/one_frame/acceptance_comes_before_the_end",
            "frame/two_frames/acceptance_comes_with_the_launch",
        ],
    },
    Suspect {
        fault: Fault::Child(Slip::WritesTheAcceptanceTwice),
        profile: HBG,
        caught_by: &[
            "frame/one_frame/acceptance_comes_before_the_end",
            "frame/two_frames/acceptance_comes_with_the_launch",
        ],
    },
    Suspect {
        fault: Fault::Child(Slip::AcceptsWhenItStages),
        profile: HBG,
        caught_by: &[
            "frame/beside/a_successor_launches_after_its_predecessor_was_finalized",
            "frame/two_frames/a_withdrawn_successor_fails_and_the_child_goes_on",
            "frame/two_frames/acceptance_comes_with_the_launch",
        ],
    },
    Suspect {
        fault: Fault::Child(Slip::AcceptsAfterTheEnd),
        profile: HBG,
        caught_by: &[
            "frame/one_frame/acceptance_comes_before_the_end",
            "frame/two_frames/acceptance_comes_with_the_launch",
        ],
    },
    Suspect {
        fault: Fault::Child(Slip::WritesPreparationAfterTheState),
        profile: HBG,
        caught_by: &["frame/two_frames/preparation_is_written_before_the_state"],
    },
    Suspect {
        fault: Fault::Child(Slip::ForgetsThePreparation),
        profile: HBG,
        caught_by: &[
            "frame/beside/a_diagnostic_successor_is_validated_only",
            "frame/beside/a_successor_is_prepared_natively_where_that_may_be",
            "frame/beside/a_successor_of_a_diagnostic_task_is_validated_only",
            "frame/beside/an_incompatible_prepare_is_deferred",
            "frame/two_frames/an_active_task_is_staged_launched_and_done",
            "frame/two_frames/preparation_is_written_before_the_state",
        ],
    },
    Suspect {
        fault: Fault::Child(Slip::WritesTheErrorAfterTheState),
        profile: HBG,
        caught_by: &["frame/one_frame/the_error_is_written_before_the_state"],
    },
    Suspect {
        fault: Fault::Child(Slip::ForgetsTheLongForm),
        profile: HBG,
        caught_by: &["frame/one_frame/the_error_is_written_before_the_state"],
    },
    Suspect {
        fault: Fault::Child(Slip::ForgetsTheMessage),
        profile: HBG,
        caught_by: &[
            "frame/one_frame/a_failed_task_is_done_with_an_error",
            "frame/one_frame/a_lost_device_is_reported_and_then_left",
            "frame/one_frame/the_error_is_written_before_the_state",
            "frame/refused/a_config_out_of_range",
            "frame/refused/a_lease_that_disagrees_with_the_trailer",
            "frame/refused/a_slot_beyond_the_depth",
            "frame/refused/a_stale_lease",
            "frame/refused/a_tensor_of_no_memory",
            "frame/refused/an_argument_list_that_lies",
            "frame/refused/an_identity_with_a_zero",
            "frame/refused/an_unknown_callable",
            "frame/refused/another_protocol",
            "frame/refused/the_first_failure_in_order_is_the_one_reported",
            "frame/two_frames/a_failed_task_ends_in_task_failed",
            "frame/two_frames/a_refused_task_is_never_staged",
            "frame/two_frames/a_state_out_of_place_ends_the_child",
            "frame/two_frames/an_identity_that_changed_is_never_launched",
            "frame/two_frames/the_slot_is_the_index_of_the_frame",
        ],
    },
    Suspect {
        fault: Fault::Child(Slip::WritesIntoTheLease),
        profile: HBG,
        caught_by: &["frame/one_frame/the_child_writes_its_own_words_alone"],
    },
    Suspect {
        fault: Fault::Child(Slip::EndsTwice),
        profile: HBG,
        caught_by: &[
            "frame/one_frame/a_frame_serves_many_tasks",
            "frame/one_frame/a_lost_device_is_reported_and_then_left",
            "frame/one_frame/a_task_goes_from_ready_to_done",
            "frame/one_frame/the_error_is_written_before_the_state",
            "frame/stop/every_published_frame_gets_its_terminal_state",
            "frame/two_frames/a_refused_task_is_never_staged",
            "frame/two_frames/a_successor_that_is_activated_before_it_is_staged_runs_once",
            "frame/two_frames/a_successor_waits_for_its_activation",
            "frame/two_frames/an_active_task_is_staged_launched_and_done",
        ],
    },
    Suspect {
        fault: Fault::Child(Slip::FailsWithTaskDone),
        profile: HBG,
        caught_by: &[
            "frame/beside/a_failed_prepare_of_a_successor_fails_it_alone",
            "frame/beside/a_successor_is_withdrawn_while_its_predecessor_runs",
            "frame/stop/every_published_frame_gets_its_terminal_state",
            "frame/two_frames/a_failed_task_ends_in_task_failed",
            "frame/two_frames/a_refused_task_is_never_staged",
            "frame/two_frames/a_state_out_of_place_ends_the_child",
            "frame/two_frames/a_withdrawn_successor_fails_and_the_child_goes_on",
            "frame/two_frames/an_identity_that_changed_is_never_launched",
            "frame/two_frames/the_slot_is_the_index_of_the_frame",
        ],
    },
    Suspect {
        fault: Fault::Child(Slip::StagesTwice),
        profile: HBG,
        caught_by: &[
            "frame/two_frames/a_successor_waits_for_its_activation",
            "frame/two_frames/an_active_task_is_staged_launched_and_done",
        ],
    },
    Suspect {
        fault: Fault::Child(Slip::StagesInOneFrame),
        profile: HBG,
        caught_by: &[
            "frame/one_frame/a_frame_serves_many_tasks",
            "frame/one_frame/a_lost_device_is_reported_and_then_left",
            "frame/one_frame/a_task_goes_from_ready_to_done",
            "frame/two_frames/a_refused_task_is_never_staged",
            "frame/two_frames/a_successor_waits_for_its_activation",
            "frame/two_frames/an_active_task_is_staged_launched_and_done",
        ],
    },
    Suspect {
        fault: Fault::Child(Slip::HidesTheErrorOfAControl),
        profile: HBG,
        caught_by: &[
            "frame/control/a_failed_control_leaves_the_frame_usable",
            "frame/control/an_unknown_command_is_answered",
            "frame/control/commands_of_a_later_version_are_unsupported",
            "frame/control/prepare_knows_what_is_installed",
        ],
    },
    Suspect {
        fault: Fault::Child(Slip::BelievesTheTrailer),
        profile: HBG,
        caught_by: &["frame/refused/a_lease_that_disagrees_with_the_trailer"],
    },
    Suspect {
        fault: Fault::Child(Slip::TakesAnyGeneration),
        profile: HBG,
        caught_by: &["frame/refused/a_stale_lease", "frame/refused/an_identity_with_a_zero"],
    },
    Suspect {
        fault: Fault::Child(Slip::TakesAnyProtocol),
        profile: HBG,
        caught_by: &["frame/refused/another_protocol"],
    },
    Suspect {
        fault: Fault::Child(Slip::SeesNoWithdrawal),
        profile: HBG,
        caught_by: &[
            "frame/beside/a_successor_is_withdrawn_while_its_predecessor_runs",
            "frame/refused/an_identity_with_a_zero",
            "frame/refused/the_first_failure_in_order_is_the_one_reported",
            "frame/two_frames/a_withdrawn_successor_fails_and_the_child_goes_on",
        ],
    },
    Suspect {
        fault: Fault::Child(Slip::SeesNoChange),
        profile: HBG,
        caught_by: &["frame/two_frames/an_identity_that_changed_is_never_launched"],
    },
    Suspect {
        fault: Fault::Child(Slip::SeesNoShutdown),
        profile: HBG,
        caught_by: &[
            "frame/stop/a_one_frame_child_ends_its_task_first",
            "frame/stop/an_idle_child_leaves_when_it_is_asked",
            "frame/stop/every_published_frame_gets_its_terminal_state",
            "frame/stop/what_was_not_begun_is_failed_with_a_message",
        ],
    },
    Suspect {
        fault: Fault::Child(Slip::WritesALongFormToAStranger),
        profile: HBG,
        caught_by: &[
            "frame/one_frame/a_stranger_is_served_without_the_extension",
            "frame/one_frame/the_error_is_written_before_the_state",
        ],
    },
];
