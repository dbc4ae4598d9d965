//! Devices that are wrong below a worker, and workers that are built wrong.

use crate::device::Wrong;
use crate::list::HBG;
use crate::{Fault, Lax, Suspect};

pub(super) const SUSPECTS: &[Suspect] = &[
    Suspect {
        fault: Fault::Tree(Wrong::ForgetsToFree),
        profile: HBG,
        caught_by: &["tree/memory/bytes_come_back_from_a_chip"],
    },
    Suspect {
        fault: Fault::Tree(Wrong::HidesFailuresOfTheDevice),
        profile: HBG,
        caught_by: &["tree/deaths/a_device_that_is_lost_in_launch", "tree/deaths/a_device_that_is_lost_in_poll"],
    },
    Suspect {
        fault: Fault::Tree(Wrong::CallsIncompatibleAFailure),
        profile: HBG,
        caught_by: &["tree/chips/an_incompatible_prepare_is_no_error_of_its_task"],
    },
    Suspect {
        fault: Fault::Tree(Wrong::ForgetsCodes),
        profile: HBG,
        caught_by: &["tree/chips/a_failed_call_is_the_failure_of_its_task_alone"],
    },
    Suspect {
        fault: Fault::Tree(Wrong::SkipsCopyBackOfViews),
        profile: HBG,
        caught_by: &["tree/chips/every_kernel_is_right_through_the_whole_stack"],
    },
    Suspect {
        fault: Fault::Tree(Wrong::CopiesAByteTooFew),
        profile: HBG,
        caught_by: &[
            "tree/kinds/a_level_2_worker_runs_a_device_without_a_child",
            "tree/memory/bytes_come_back_from_a_chip",
            "tree/memory/device_memory_belongs_to_the_worker_it_came_from",
            "tree/memory/device_memory_that_a_task_names_is_in_use",
        ],
    },
    Suspect {
        fault: Fault::Tree(Wrong::ForgetsAcceptance),
        profile: HBG,
        caught_by: &[
            "tree/chips/acceptance_is_seen_while_the_device_works",
            "tree/chips/an_incompatible_prepare_is_no_error_of_its_task",
            "tree/memory/device_memory_that_a_task_names_is_in_use",
        ],
    },
    Suspect {
        fault: Fault::Tree(Wrong::CrashesOnDiagnostics),
        profile: HBG,
        caught_by: &["tree/chips/diagnostic_runs_compute_the_same"],
    },
    Suspect {
        fault: Fault::Tree(Wrong::MakesUpAddresses),
        profile: HBG,
        caught_by: &["tree/controls/a_control_that_fails_leaves_its_chip_usable"],
    },
    Suspect {
        fault: Fault::Tree(Wrong::LosesTheDeviceOnAnyFailure),
        profile: HBG,
        caught_by: &["tree/chips/a_failed_call_is_the_failure_of_its_task_alone"],
    },
    Suspect {
        fault: Fault::Worker(Lax::ForksBesideThreads),
        profile: HBG,
        caught_by: &["tree/guest/init_refuses_a_process_with_threads"],
    },
    Suspect {
        fault: Fault::Worker(Lax::StartsThreads),
        profile: HBG,
        caught_by: &[
            "tree/guest/a_child_begins_with_plain_signals",
            "tree/guest/a_child_keeps_the_descriptors_of_the_user_unless_told_otherwise",
            "tree/guest/a_child_sees_no_mailbox_but_its_own",
            "tree/guest/a_host_that_reaps_whatever_ends_loses_no_child",
            "tree/guest/a_subreaper_keeps_no_zombie_of_what_a_dead_child_started",
            "tree/guest/an_interrupt_from_the_terminal_does_not_reach_the_children",
            "tree/guest/init_refuses_a_process_with_threads",
            "tree/looking/a_child_runs_on_the_cpus_that_it_was_given",
            "tree/looking/a_sigkill_from_elsewhere_reads_as_out_of_memory",
            "tree/looking/health_is_not_ready_soon_after_a_death_and_says_why",
        ],
    },
];
