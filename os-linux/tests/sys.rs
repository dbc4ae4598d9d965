//! The system floor, with real processes.

#[path = "sys/deaths.rs"]
mod deaths;
#[path = "sys/entry.rs"]
mod entry;
mod harness;
#[path = "sys/memory.rs"]
mod memory;
#[path = "sys/reaping.rs"]
mod reaping;
#[path = "sys/support.rs"]
mod support;
#[path = "sys/threads.rs"]
mod threads;
#[path = "sys/waking.rs"]
mod waking;

use deaths::*;
use entry::*;
use memory::*;
use reaping::*;
use threads::*;
use waking::*;

fn main() -> std::process::ExitCode {
    harness::main(harness::cases![
        a_killed_parent_takes_a_child_that_sleeps,
        a_killed_parent_takes_a_child_that_spins_in_foreign_code,
        a_killed_parent_takes_a_child_that_is_blocked_in_a_system_call,
        a_killed_parent_takes_a_child_that_blocks_every_signal,
        a_child_that_looks_leaves_in_order_when_its_parent_is_killed,
        a_child_that_looks_is_ended_inside_a_call_that_may_block,
        a_parent_that_died_before_the_first_look_is_noticed,
        a_child_outlives_a_sibling_but_not_its_own_line,
        the_subtree_pipe_hangs_up_only_when_the_grandchild_is_gone,
        a_group_dies_with_its_head,
        exits_are_reported_as_they_happened,
        a_host_that_ignores_sigchld_loses_no_child,
        a_host_that_reaps_everything_loses_no_child,
        a_child_without_a_pidfd_is_signalled_and_reaped,
        a_reaped_child_is_never_signalled,
        children_that_stay_are_killed_when_one_shared_time_is_over,
        without_pidfds_the_lifeline_tells_of_a_death_both_ways,
        everything_works_for_the_first_process_of_a_container,
        a_subreaper_reaps_the_orphans_of_its_dead_child,
        a_death_is_noticed_within_a_millisecond,
        two_hundred_children_leave_no_descriptor_and_no_zombie,
        a_region_cannot_be_resized_by_a_child,
        a_read_only_page_cannot_be_written_by_a_child,
        a_fork_is_not_slowed_by_resident_regions,
        limits_in_the_way_of_a_region_are_named,
        no_name_appears_under_dev_shm,
        a_child_keeps_its_own_region_and_the_trees_and_no_other,
        a_child_keeps_the_users_descriptors_and_none_made_for_others,
        a_child_can_be_asked_to_close_foreign_descriptors,
        ten_thousand_descriptors_slow_no_child_down,
        signal_handlers_of_the_host_do_not_reach_a_child,
        a_panic_ends_a_child_and_the_hosts_hook_stays_silent,
        a_child_with_closed_streams_never_unwinds_into_its_parents_frames,
        a_child_stays_on_the_cpus_that_it_was_given,
        buffered_text_is_printed_once,
        numeric_libraries_are_told_to_use_one_thread_unless_the_user_says_more,
        foreign_threads_are_counted_and_the_librarys_are_not,
        a_fork_waits_until_the_librarys_threads_are_parked,
        a_hundred_thousand_wakes_and_none_is_lost,
    ])
}
