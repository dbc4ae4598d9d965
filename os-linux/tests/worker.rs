//! The worker through its public API, with real SUB children: processes, and once more threads.

#[path = "worker/closing.rs"]
mod closing;
#[path = "worker/dying.rs"]
mod dying;
#[path = "worker/forking.rs"]
mod forking;
#[path = "worker/graphs.rs"]
mod graphs;
mod harness;
#[path = "worker/keeping.rs"]
mod keeping;
#[path = "worker/lending.rs"]
mod lending;
#[path = "worker/looking.rs"]
mod looking;
#[path = "worker/naming.rs"]
mod naming;
#[path = "worker/odd.rs"]
mod odd;
#[path = "worker/placing.rs"]
mod placing;
#[path = "worker/refused.rs"]
mod refused;
#[path = "worker/runs.rs"]
mod runs;
#[path = "worker/starting.rs"]
mod starting;
#[path = "worker/support.rs"]
mod support;
#[path = "worker/threads.rs"]
mod threads;

use closing::*;
use dying::*;
use forking::*;
use graphs::*;
use keeping::*;
use lending::*;
use looking::*;
use naming::*;
use odd::*;
use placing::*;
use refused::*;
use runs::*;
use starting::*;
use threads::*;

fn main() -> std::process::ExitCode {
    harness::main_in_both_modes(
        harness::cases![
            a_chain_runs_in_the_order_of_its_data,
            a_reader_of_the_whole_waits_for_the_writers_of_its_rows,
            independent_tasks_run_on_distinct_children_at_the_same_time,
            scratch_memory_is_never_handed_out_while_a_task_names_it,
            an_output_without_an_address_is_allocated_at_submit,
            a_full_ring_is_waited_for_and_a_tensor_larger_than_it_is_refused,
            a_full_task_window_is_waited_for,
            a_group_runs_on_distinct_children,
            scalars_and_strided_views_arrive_as_they_were_given,
            the_error_of_a_callable_arrives_with_its_text,
            a_long_error_arrives_whole,
            a_panic_fails_its_task_and_the_child_lives_on,
            the_consumers_of_a_failed_task_never_run,
            a_callback_that_fails_fails_its_run_and_the_next_run_works,
            a_callback_that_panics_fails_its_run_and_the_next_run_works,
            a_callback_may_wait_for_part_of_its_graph,
            a_mapping_of_the_program_itself_can_be_lent_to_its_tasks,
            a_snapshot_can_be_read_by_tasks_and_is_never_written,
            ranges_that_overlap_are_refused_by_init_and_nothing_is_left,
            a_run_is_waited_for_again_and_from_other_threads,
            a_wait_with_a_time_limit_leaves_the_run_as_it_was,
            a_run_that_nobody_waits_for_ends_too,
            a_cancelled_run_ends_and_the_next_one_works,
            threads_submit_and_wait_side_by_side,
            an_orchestration_takes_arguments_and_config,
            a_submit_inside_a_callback_is_an_error,
            a_worker_without_children_is_refused,
            an_unknown_worker_id_is_named_before_the_kind_of_the_callable,
            a_failed_task_names_its_callable_behind_the_text_of_the_child,
            a_failed_task_names_its_callable_however_long_name_and_text_are,
            a_refused_callable_is_called_by_its_name,
            bad_arguments_are_refused_before_anything_is_submitted,
            a_plain_heap_pointer_is_refused,
            a_view_of_another_element_type_names_the_argument,
            a_handle_of_another_worker_is_refused,
            a_closure_registered_after_init_is_refused,
            calls_in_the_wrong_state_name_the_state,
            a_second_worker_starts_beside_the_first,
            settings_out_of_range_are_refused,
            close_leaves_nothing_behind,
            a_panic_of_what_a_callable_captured_ends_init_and_close,
            cycles_of_open_and_close_leave_nothing_behind,
            close_waits_for_accepted_runs,
            close_that_times_out_changes_nothing,
            close_now_ends_what_was_never_sent,
            dropping_an_open_worker_closes_it,
            an_idle_tree_uses_no_cpu,
            an_error_that_cannot_be_printed_fails_its_run_and_nothing_else,
            a_callback_that_polls_a_tensor_sees_its_tasks_end,
            a_worker_captured_by_a_callable_is_refused_in_the_child,
            close_inside_a_callback_is_refused_while_another_thread_closes,
            close_now_cuts_the_drain_of_another_thread_short,
            a_wait_with_a_time_limit_returns_while_the_graph_keeps_going,
            health_says_what_each_child_is_doing,
            tensors_made_before_init_are_used_by_children,
            ten_thousand_buffers_leave_no_memory_behind,
            memory_dropped_in_use_goes_back_when_its_task_has_ended,
            a_closed_worker_makes_no_tensors,
            a_buffer_dropped_while_a_task_names_it_is_freed_later,
            a_kept_handle_answers_after_close_and_holds_nothing,
            a_kept_handle_of_a_run_that_was_cut_short_says_so_after_close,
            a_kept_tensor_keeps_its_region_alone,
            a_child_runs_on_the_cpus_that_it_was_given,
            cpus_that_cannot_be_used_fail_init_with_both_sets,
            an_overlap_is_reported_and_an_error_where_cpus_are_exclusive,
            populated_regions_are_committed_before_init_returns,
            populating_more_than_there_is_fails_init_with_both_numbers,
            nothing_is_dispatched_before_every_child_is_ready,
            a_worker_that_came_through_a_fork_of_the_host_is_refused_and_the_original_goes_on,
            a_callback_that_forks_builds_its_run_in_the_original_alone,
            a_callable_that_forks_and_returns_on_both_sides_ends_its_task_once,
            a_start_that_forks_and_returns_on_both_sides_is_told_of_once,
            any_spin_window_works,
        ],
        harness::cases![
            init_in_a_process_with_threads_is_refused,
            a_child_killed_in_the_middle_of_a_task_is_reported_at_once,
            a_death_says_that_the_task_ran_and_which_callable_it_was,
            a_death_before_the_task_began_does_not_say_that_it_ran,
            a_missed_deadline_says_that_the_task_ran,
            the_other_children_go_on_after_a_death,
            work_for_the_dead_is_refused_not_queued,
            an_idle_child_that_dies_is_noticed,
            a_child_that_exits_in_a_task_is_reported_with_its_status,
            a_stopped_child_does_not_hold_up_close_for_ever,
            a_killed_parent_takes_its_tree,
            what_a_dead_child_left_behind_does_not_hold_up_its_run_for_ever,
            health_is_not_ready_within_ten_milliseconds_of_a_death,
            thread_children_start_in_a_process_with_threads_and_share_what_they_captured,
            a_worker_that_forks_is_refused_beside_thread_children,
            close_reports_a_thread_that_never_returns_and_keeps_its_memory,
            a_thread_past_the_deadline_of_its_task_is_stuck,
            a_panic_outside_user_code_poisons_the_endpoint_of_a_thread,
            a_thread_that_is_late_fails_init_and_leaves_when_it_can,
            a_thread_child_is_kept_on_its_cpus_and_its_host_is_not,
            a_sigkill_from_elsewhere_reads_as_out_of_memory_with_the_limit,
            regions_come_before_forks_and_forks_before_threads,
            close_reports_a_child_that_cannot_be_reaped_within_its_budget,
            a_callable_that_executes_another_program_loses_its_child_at_once,
            a_callable_that_closes_all_descriptors_loses_its_child_at_once,
            a_worker_of_a_host_without_standard_streams_uses_none_of_their_numbers,
        ],
    )
}
