"""Which tests prove that a kind of fault, as harnesses like this one had it in public, is not ours.

Each kind is named by what goes wrong, and proven where the code is that keeps it from happening;
what no other test tries is tried in this folder. `proofs` gives the node ids of every kind, and
`main` prints them.
"""

from __future__ import annotations

from collections.abc import Mapping

_Files = Mapping[str, tuple[str, ...]]

KINDS: Mapping[str, _Files] = {
    "absence is read as success": {
        "hazards/test_absent_checks_are_no_success.py": (
            "test_a_demand_that_nothing_answers_fails",
            "test_a_selection_of_nothing_is_no_success",
            "test_tasks_that_vanished_are_told",
            "test_checks_that_could_not_run_have_not_passed",
            "test_a_task_cannot_lose_its_checks_unnoticed",
        ),
        "grading/sandboxed/test_run_check.py": (
            "test_only_a_test_that_ran_to_its_end_has_a_verdict",
        ),
        "grading/test_records.py": ("test_exactly_one_test_has_to_run_and_to_end",),
        "counting/test_outcome.py": ("test_what_was_not_run_is_null_and_never_a_failure",),
        "counting/test_audit.py": ("test_no_mutants_is_no_success",),
        "tasks/test_load.py": ("test_a_task_without_checks_needs_something_to_expect",),
        "tasks/test_checkfiles.py": ("test_anything_but_one_test_is_told_with_its_line",),
        "plugin/test_gating.py": ("test_a_partial_benchmark_decides_no_gate",),
    },
    "a process leaves early with status 0": {
        "hazards/test_leaving_early_is_no_success.py": (
            "test_a_module_that_ends_the_build_has_not_been_built",
            "test_tests_of_its_own_that_end_their_run_have_not_passed",
            "test_a_check_that_was_left_has_not_passed",
        ),
        "grading/sandboxed/test_run_check.py": ("test_attacks_lose",),
        "grading/test_records.py": (
            "test_whatever_is_wrong_after_ready_is_the_submissions_failure",
            "test_without_ready_it_is_an_infrastructure_error",
        ),
        "grading/toolchains/test_node.py": (
            "TestWhatACheckReports::test_a_submission_gets_what_it_earned",
        ),
        "grading/toolchains/test_rust.py": (
            "TestWhatACheckReports::test_a_submission_gets_what_it_earned",
        ),
    },
    "a result is planted in advance": {
        "runs/test_trial.py": ("test_results_planted_by_a_client_change_nothing",),
        "plugin/test_resume.py": (
            "test_foreign_files_among_the_results_are_left_alone",
            "test_an_edited_result_is_told_and_its_trial_never_run_again",
        ),
        "reporting/test_verify.py": (
            "test_nothing_that_an_agent_left_is_taken_for_a_document",
            "test_a_trial_cannot_be_edited_into_a_success",
        ),
        "grading/test_records.py": ("test_records_hold_only_in_the_order_they_were_sent",),
        "grading/test_cache.py": ("test_what_is_no_entry_is_a_miss_and_is_removed",),
        "treatments/test_witness.py": ("test_without_a_place_for_evidence_the_hook_still_runs",),
    },
    "the grader is edited by what it grades": {
        "hazards/test_rewritten_checks_judge_nothing.py": (
            "test_no_trial_is_judged_by_what_a_session_wrote",
            "test_behind_a_boundary_there_is_nothing_to_rewrite",
            "test_a_task_that_is_edited_during_a_grading_excludes_its_trial",
            "test_what_tools_leave_beside_a_check_changes_nothing",
            "test_controls_that_different_checks_have_judged_give_no_score",
        ),
        "grading/test_grade.py": (
            "test_no_submission_makes_itself_an_exclusion",
            "test_the_digest_of_the_checks_tells_every_byte",
        ),
        "grading/test_cache_key.py": ("test_what_was_edited_while_it_was_graded_is_not_kept",),
        "plugin/test_session.py": ("test_a_task_that_has_changed_ends_its_batch",),
    },
    "the submission configures the runner": {
        "hazards/test_submission_configures_no_runner.py": (
            "test_a_setting_of_the_submission_is_data",
            "test_no_module_of_the_submission_stands_in_for_one_of_the_runner",
        ),
        "grading/sandboxed/test_run_check.py": (
            "test_attacks_lose",
            "test_a_submission_may_have_modules_called_like_ours",
        ),
        "adversarial/test_submissions.py": (
            "test_an_unprotected_grader_is_fooled",
            "test_ours_sees_what_it_is",
            "test_what_shares_a_process_with_its_check_is_told_apart",
        ),
        "grading/test_submission.py": ("test_planted_byte_code_does_not_run",),
        "grading/toolchains/test_python.py": (
            "test_the_starters_settings_decide_what_is_formatted",
        ),
        "grading/toolchains/test_node.py": (
            "TestWhatACheckReports::test_node_is_run_without_options_of_the_environment",
        ),
        "clients/embedded/test_player.py": ("test_the_project_cannot_change_how_the_player_runs",),
    },
    "the agent succeeds without working, or never ends": {
        "runs/test_command.py": (
            "test_status_0_without_work_is_a_completed_session_that_failed_its_checks",
            "test_an_agent_that_hangs_runs_into_its_deadline",
            "test_a_client_that_delivered_its_end_and_hangs_counts_as_completed",
        ),
        "runs/test_trial.py": (
            "test_a_client_that_hangs_is_a_timeout_and_is_graded_all_the_same",
            "test_what_the_client_says_decides_how_it_ended_and_its_status_nothing",
        ),
        "isolation/test_supervise.py": (
            "test_each_bound_ends_a_process_and_is_named",
            "test_a_delivered_result_is_kept_although_the_process_hangs",
            "test_a_result_counts_that_came_before_the_deadline",
            "test_a_first_word_ends_the_startup_deadline",
        ),
        "clients/test_stream.py": (
            "test_words_of_success_without_a_completion_event_complete_nothing",
        ),
        "clients/claude/test_fault.py": (
            "test_a_client_that_says_nothing_at_all_is_its_own_fault",
        ),
        "clients/codex/test_reader.py": ("test_a_client_that_said_nothing_is_told_so",),
    },
    "hardening breaks honest checks": {
        "hazards/test_honest_checks_work_when_hardened.py": (
            "test_a_check_does_what_checks_do",
            "test_a_variable_of_the_user_reaches_no_check",
        ),
        "grading/sandboxed/test_run_check.py": ("test_what_pytest_offers_is_there",),
        "grading/test_grade.py": (
            "test_the_reference_passes_everything",
            "test_the_local_sandbox_gives_the_same_rows",
        ),
        "runs/test_trial.py": ("test_a_grading_process_has_exactly_the_documented_environment",),
        "isolation/test_bwrap.py": ("test_a_local_network_of_its_own_works",),
    },
    "a broken machine is written as a score of 0": {
        "grading/test_grade.py": (
            "test_what_is_missing_of_ours_is_an_infrastructure_error",
            "test_a_slow_machine_is_not_the_submissions_fault",
        ),
        "runs/test_trial.py": (
            "test_a_grader_that_breaks_excludes_the_trial_and_keeps_the_submission",
            "test_a_broken_grading_does_not_move_an_unfinished_session_out_of_the_count",
        ),
        "grading/test_session.py": (
            "test_a_program_that_is_not_there_is_our_own_fault",
            "test_a_sandbox_that_does_not_come_up_is_our_own_fault",
        ),
        "counting/test_score.py": ("test_a_spoilt_case_makes_the_score_null_and_not_lower",),
        "counting/test_validity.py": (
            "test_a_fault_of_ours_is_told_with_where_it_happened",
            "test_what_a_submission_does_is_never_a_fault_of_ours",
        ),
        "plugin/test_packs.py": ("test_an_environment_that_fails_gives_nulls_and_fails_the_run",),
        "clients/claude/test_fault.py": (
            "test_a_request_that_failed_says_whose_fault_it_was",
            "test_a_deadline_that_was_used_up_by_retries_is_not_the_agent_s",
        ),
    },
    "the rate has the wrong denominator": {
        "hazards/test_every_surface_counts_alike.py": (
            "test_trials_that_broke_are_in_no_rate_and_on_every_surface",
        ),
        "counting/test_benchmark.py": (
            "test_infrastructure_errors_are_neither_failures_nor_forgotten",
            "test_every_planned_trial_ends_in_exactly_one_place",
            "test_a_planned_trial_without_a_result_was_not_reached",
            "test_a_partial_benchmark_has_no_verdict",
        ),
        "counting/test_outcome.py": (
            "test_an_unfinished_session_fails_whatever_its_grading_says",
            "test_one_spoilt_row_or_step_excludes_a_completed_session",
        ),
        "reporting/page/test_page.py": (
            "test_every_number_of_a_benchmark_is_that_of_its_json",
            "test_a_trial_of_every_outcome_is_shown",
        ),
        "plugin/test_reports.py": ("test_the_summary_is_a_table_a_person_can_read",),
        "runs/test_trial.py": ("test_every_planned_trial_ends_in_exactly_one_place",),
    },
    "descendants outlive their deadline": {
        "isolation/test_supervise.py": (
            "test_nothing_that_a_command_leaves_behind_lives",
            "test_who_does_not_listen_is_killed",
            "test_a_process_that_forks_and_ends_for_ever_is_caught",
            "test_a_process_that_stops_itself_is_ended",
            "test_nothing_outlives_a_harness_that_is_killed",
        ),
        "isolation/test_keeper.py": (
            "test_descendants_are_found_whatever_they_are_called",
            "test_a_process_that_has_just_ended_is_no_error",
            "test_signals_to_the_group_do_not_end_the_keeper",
        ),
        "isolation/test_engine_sessions.py": ("test_what_forks_and_leaves_its_session_ends_too",),
        "system/test_boundaries.py": ("test_a_deadline_leaves_no_process_and_loses_no_usage",),
    },
    "a pipe blocks, never ends or floods": {
        "isolation/test_supervise.py": (
            "test_a_flood_on_both_streams_is_counted_and_cut",
            "test_a_flood_on_stderr_alone_blocks_nothing",
            "test_a_huge_flood_costs_no_memory",
            "test_input_that_nobody_reads_harms_nobody",
            "test_a_program_that_reads_gets_an_end_of_input",
        ),
        "isolation/test_capture.py": ("test_memory_is_bounded_however_small_the_chunks",),
        "grading/sandboxed/test_submission.py": (
            "test_a_process_left_behind_holds_nobody_up",
            "test_requests_and_answers_may_be_large",
        ),
        "runs/test_trial.py": ("test_a_client_that_floods_is_ended_and_its_trial_counted",),
    },
    "a cut takes the result with it": {
        "hazards/test_noise_costs_no_verdict.py": (
            "test_a_check_may_print_as_much_as_its_bound",
            "test_the_end_of_a_long_reason_is_kept",
            "test_more_than_the_bound_is_a_failure_that_says_so",
        ),
        "grading/sandboxed/test_submission.py": ("test_what_a_call_prints_is_no_answer",),
        "files/test_text.py": ("test_a_cut_keeps_both_ends_and_says_how_much_is_gone",),
        "clients/test_lines.py": (
            "test_bytes_that_the_capture_dropped_count_as_a_lost_part",
            "test_a_giant_line_is_lost_as_one_and_never_held_whole",
        ),
        "clients/claude/test_reader.py": ("test_what_the_capture_dropped_is_missed",),
    },
    "an odd byte ends the run": {
        "hazards/test_locale_decides_nothing.py": (
            "test_results_are_the_same_in_every_locale",
            "test_a_tree_of_names_in_no_encoding_is_kept_and_graded",
        ),
        "files/test_text.py": ("test_any_text_can_be_stored_everywhere",),
        "files/test_strict.py": ("test_a_document_with_a_lone_surrogate_is_written_all_the_same",),
        "clients/test_lines.py": (
            "test_a_half_surrogate_is_replaced_and_the_rest_of_its_line_kept",
        ),
        "clients/embedded/test_player.py": ("test_no_locale_and_no_bytes_spoil_the_report",),
        "isolation/test_supervise.py": ("test_a_character_split_across_writes_arrives_whole",),
        "files/test_manifest.py": ("test_names_that_are_not_utf8_survive",),
    },
    "foreign text steers terminals and reports": {
        "plugin/test_reports.py": ("test_hostile_text_reaches_no_report_raw",),
        "reporting/exports/test_github.py": ("test_a_message_stays_one_command_whatever_it_holds",),
        "reporting/page/test_page.py": (
            "test_hostile_text_stays_text",
            "test_no_page_holds_what_steers_a_reader",
        ),
        "reporting/page/test_trial.py": ("test_data_cannot_end_its_element",),
        "system/test_page.py": ("test_hostile_text_is_shown_and_does_not_run",),
        "reporting/test_transcripts.py": ("test_what_a_client_says_cannot_steer_the_terminal",),
        "cli/test_main.py": (
            "test_a_hostile_path_neither_styles_the_terminal_nor_ends_in_a_traceback",
        ),
        "runs/test_findings.py": ("test_a_target_with_a_nul_names_no_file",),
    },
    "numbers that JSON or a machine cannot hold": {
        "files/test_strict.py": (
            "test_json_that_readers_would_not_read_alike_is_refused_with_its_place",
            "test_an_unknown_number_is_never_written",
        ),
        "grading/test_session.py": (
            "test_a_reply_that_readers_would_read_differently_is_a_protocol_error",
            "test_numbers_that_every_reader_can_hold_or_round_are_replies",
        ),
        "counting/test_benchmark.py": ("test_with_nothing_eligible_every_rate_and_mean_is_null",),
        "clients/test_stream.py": ("test_a_count_that_is_none_is_not_taken_for_one",),
        "runs/test_trial.py": ("test_no_stream_keeps_a_result_from_being_written",),
        "hazards/test_bounds_beyond_the_machine_are_refused.py": (
            "test_more_than_any_machine_has_is_told_with_its_line",
        ),
    },
    "a coin is flipped, and a retry launders its fall": {
        "counting/test_audit.py": (
            "test_a_verdict_that_changes_on_the_reference_is_flaky",
            "test_a_starter_or_repeat_that_the_harness_broke_voids_the_audit",
        ),
        "plugin/test_coexistence.py": (
            "test_a_rerun_never_runs_a_trial_again",
            "test_misses_are_not_rerun",
        ),
        "plugin/test_cache.py": ("test_the_repeat_is_never_the_reference_itself",),
        "grading/test_settled.py": ("test_what_a_loaded_machine_may_have_caused_is_not",),
        "counting/test_regrade.py": ("test_a_trial_that_counts_keeps_everything",),
        "clients/test_stream.py": ("test_a_second_completion_does_not_overrule_the_first",),
    },
    "a key is there twice": {
        "files/test_strict.py": (
            "test_json_that_readers_would_not_read_alike_is_refused_with_its_place",
            "test_what_has_no_single_meaning_is_refused_in_the_layout_of_this_package_too",
        ),
        "grading/test_session.py": (
            "test_a_reply_that_readers_would_read_differently_is_a_protocol_error",
        ),
        "grading/sandboxed/test_submission.py": (
            "test_an_answer_that_is_not_one_strict_json_object_is_none",
        ),
        "clients/test_lines.py": ("test_a_line_without_one_clear_meaning_is_no_event",),
        "tasks/test_toml.py": ("test_no_key_or_table_is_there_twice",),
    },
    "two names become one": {
        "tasks/test_load.py": (
            "test_two_tasks_that_differ_by_case_alone_collide",
            "test_checks_that_differ_by_case_alone_collide",
            "test_unicode_forms_of_one_name_collide",
            "test_a_task_folder_with_a_reserved_name_is_told",
        ),
        "tasks/test_names.py": (
            "test_words_of_ours_and_of_windows_are_reserved",
            "test_paths_that_some_file_system_takes_for_one_are_twins",
        ),
        "model/test_plain.py": ("test_what_no_document_could_hold_is_no_name",),
        "runs/test_request.py": ("test_a_label_that_cannot_be_a_folder_of_its_own_is_refused",),
        "treatments/test_skills.py": (
            "test_two_plugins_with_one_skill_folder_are_refused_by_name",
        ),
        "registry/test_registry.py": ("test_a_name_offered_twice_is_told_with_both_plugins",),
    },
    "a task file is read leniently": {
        "tasks/test_load.py": (
            "test_a_broken_key_is_one_sentence_with_its_line",
            "test_a_file_that_is_no_toml_is_one_sentence",
            "test_an_empty_file_tells_what_a_task_needs",
            "test_windows_line_ends_change_nothing",
        ),
        "tasks/test_toml.py": ("test_no_key_or_table_is_there_twice",),
        "hazards/test_bounds_beyond_the_machine_are_refused.py": (
            "test_more_than_any_machine_has_is_told_with_its_line",
            "test_less_than_a_machine_can_grant_is_told",
            "test_a_check_s_own_deadline_has_the_same_bound",
            "test_a_timer_can_wait_for_the_longest_deadline",
            "test_the_widest_bounds_run",
        ),
        "plugin/test_options.py": ("test_a_wrong_ini_value_ends_the_session_in_one_sentence",),
    },
    "a link leads out of the tree": {
        "files/test_manifest.py": (
            "test_a_link_is_recorded_by_its_text_and_never_followed",
            "test_a_root_that_is_a_link_or_missing_is_refused",
            "test_a_file_swapped_after_it_was_listed_is_not_read",
        ),
        "files/test_tree.py": (
            "test_links_and_special_files_are_left_out",
            "test_no_link_at_the_destination_is_followed",
            "test_no_written_path_leads_outside",
        ),
        "grading/test_submission.py": (
            "test_only_files_and_folders_are_graded",
            "test_a_link_above_an_editable_path_is_refused",
            "test_nothing_that_is_kept_leads_anywhere",
        ),
        "isolation/test_bwrap.py": (
            "test_a_planted_symbolic_link_leads_outside_where_nothing_guards",
        ),
        "isolation/test_command.py": ("test_a_symbolic_link_does_not_hide_that_a_path_is_below",),
        "tasks/test_load.py": ("test_no_tree_of_a_task_holds_links_special_files_or_a_history",),
        "treatments/test_left.py": ("test_names_behind_a_link_are_none",),
    },
    "a pipe, socket or device is opened": {
        "hazards/test_a_task_file_of_any_kind_is_told.py": (
            "test_what_stands_in_place_of_a_task_file_is_a_failed_validation",
            "test_a_prompt_without_end_is_told",
            "test_a_pipe_in_a_plugin_voids_no_trial_without_it",
        ),
        "files/test_manifest.py": ("test_special_files_are_recorded_and_never_opened",),
        "clients/embedded/test_player.py": ("test_what_is_no_regular_file_is_not_opened",),
        "treatments/test_left.py": ("test_nothing_but_a_regular_file_is_ever_opened",),
        "treatments/test_synced.py": ("test_a_pipe_for_a_record_does_not_block",),
        "clients/codex/test_session_file.py": ("test_what_is_no_file_is_not_waited_for",),
        "grading/test_submission.py": (
            "test_links_and_special_files_elsewhere_do_no_harm",
            "test_grading_never_breaks_over_what_was_submitted",
        ),
        "runs/test_evidence.py": (
            "test_what_a_session_planted_in_place_of_a_log_is_not_kept_but_told",
        ),
    },
    "sparse, countless or endless files fill the disk": {
        "hazards/test_paths_too_long_to_open_are_graded.py": (
            "test_a_path_longer_than_the_system_takes_ends_as_an_outcome",
        ),
        "files/test_manifest.py": (
            "test_a_sparse_terabyte_is_refused_before_it_is_read",
            "test_too_many_files_are_refused_before_any_is_opened",
            "test_four_thousand_levels_are_refused_at_the_limit",
            "test_a_file_that_grows_while_it_is_hashed_is_refused",
        ),
        "files/test_tree.py": (
            "test_holes_stay_holes",
            "test_a_full_disk_is_ours_and_leaves_no_partial_file",
        ),
        "files/test_atomic.py": ("test_a_full_disk_leaves_what_was_there",),
        "plugin/test_resume.py": (
            "test_a_full_disk_is_one_sentence_and_the_trial_is_counted_later",
        ),
        "runs/test_trial.py": ("test_whatever_a_session_leaves_ends_as_an_outcome",),
        "isolation/test_limits.py": ("test_a_file_cannot_grow_beyond_its_limit",),
    },
    "the sandbox was not there": {
        "isolation/test_preflight.py": (
            "test_every_promised_barrier_holds",
            "test_a_sandbox_that_merely_runs_the_command_is_unmasked",
            "test_a_sandbox_that_does_not_start_is_told_in_one_sentence",
            "test_a_shared_network_is_named",
        ),
        "runs/test_batch.py": ("test_a_barrier_that_does_not_hold_stops_everything",),
        "isolation/test_host.py": ("test_one_that_is_too_old_or_broken_is_passed_over",),
        "isolation/test_srt.py": (
            "test_a_host_that_is_not_allowed_is_refused",
            "test_a_proxy_that_leads_to_this_machine_is_named",
        ),
        "isolation/test_bwrap.py": (
            "test_no_port_of_the_host_can_be_reached",
            "test_the_record_names_program_and_enforcers",
        ),
        "counting/test_benchmark.py": ("test_only_enforced_trials_are_compared",),
        "runs/test_request.py": ("test_no_sandbox_without_trust_is_refused",),
    },
    "the answers can be seen": {
        "hazards/test_histories_stay_out_of_tasks.py": (
            "test_a_history_of_any_tool_is_refused",
            "test_a_bare_repository_is_known_by_what_is_in_it",
            "test_a_folder_that_is_itself_a_bare_repository_is_told",
            "test_what_git_itself_writes_is_refused",
            "test_what_only_looks_like_a_history_is_welcome",
        ),
        "runs/test_trial.py": ("test_a_session_reads_nothing_but_its_own_trial",),
        "grading/test_lab.py": ("test_nothing_hidden_can_be_read_while_grading",),
        "grading/sandboxed/test_submission.py": (
            "test_a_call_reaches_nothing_of_the_check",
            "test_the_source_of_a_check_is_gone_before_the_first_call",
        ),
        "system/test_boundaries.py": ("test_an_agent_can_read_nothing_around_its_trial",),
        "plugin/test_packs.py": ("test_a_session_cannot_read_the_code_of_its_pack",),
        "plugin/test_cache.py": ("test_no_submission_sees_what_is_kept_of_hidden_checks",),
        "clients/codex/test_sessions.py": ("test_a_repository_around_the_trial_stays_outside",),
    },
    "what builds the submission runs at grading time": {
        "grading/toolchains/test_rust.py": (
            "TestAttacks::test_plain_cargo_is_not_fooled",
            "TestAttacks::test_the_receipt_is_not",
            "TestWhatACheckReports::test_no_step_knows_a_check",
            "TestGrading::test_nothing_that_is_left_buys_an_exclusion",
        ),
        "grading/toolchains/test_node.py": (
            "TestAttacks::test_the_channel_is_not",
            "TestWhatACheckReports::test_no_file_holds_the_check_while_the_submission_runs",
        ),
        "tasks/test_cargo.py": ("test_what_a_build_runs_cannot_be_editable",),
        "grading/toolchains/test_python.py": ("test_the_build_imports_modules_and_no_scripts",),
    },
    "a candidate speaks before it is asked, or for ever": {
        "grading/test_session.py": (
            "test_output_that_lies_in_the_pipe_before_the_request_is_a_fault",
            "test_what_nobody_asked_for_is_a_fault",
            "test_no_whole_line_in_time_is_a_timeout",
            "test_a_flood_is_cut_off_and_not_kept",
            "test_a_last_answer_counts_although_its_process_has_left",
            "test_a_process_that_leaves_before_it_answers_is_at_fault",
        ),
        "packs/test_support_routing.py": (
            "test_work_that_is_not_finished_within_twelve_actions_counts_but_breaks_the_protocol",
            "test_what_breaks_on_our_side_is_no_verdict",
        ),
        "plugin/test_packs.py": (
            "test_a_reference_that_answers_before_it_is_asked_fails_everything",
        ),
        "isolation/test_engine_sessions.py": ("test_a_flood_of_output_is_cut",),
    },
    "the arms are not what they claim": {
        "treatments/test_prelaunch.py": (
            "test_a_home_that_configures_a_client_is_refused_by_name",
            "test_a_baseline_that_could_call_cargo_agents_is_refused",
            "test_what_a_client_takes_from_folders_above_its_trial_is_refused",
        ),
        "runs/test_trial.py": (
            "test_a_client_that_offers_what_nobody_planned_is_excluded",
            "test_a_session_has_exactly_the_documented_environment_in_every_configuration",
            "test_a_starter_with_skills_fails_the_prelaunch_check_in_both_arms",
        ),
        "runs/test_start.py": (
            "test_what_a_client_lists_beyond_its_own_and_the_planned_voids_the_trial",
        ),
        "runs/test_prepare.py": ("test_a_baseline_cannot_reach_the_programs_of_a_treatment",),
        "counting/test_benchmark.py": ("test_arms_that_other_models_answered_are_not_compared",),
        "treatments/test_skills.py": ("test_any_difference_from_the_plan_is_found",),
        "system/test_boundaries.py": (
            "test_a_baseline_reaches_its_treatment_by_no_name_and_no_path",
        ),
    },
    "tokens are counted twice, or not at all": {
        "clients/claude/test_reader.py": (
            "test_the_tokens_that_are_repeated_with_each_answer_are_not_counted",
            "test_tokens_are_those_of_all_models_and_the_cost_that_of_the_session",
        ),
        "clients/claude/test_session_file.py": (
            "test_an_answer_of_several_parts_counts_once_and_with_its_last_count",
            "test_sub_agents_have_files_of_their_own",
            "test_without_an_answer_the_tokens_are_unknown",
            "test_a_count_that_one_answer_lacks_is_unknown",
        ),
        "clients/codex/test_reader.py": (
            "test_no_token_is_counted_twice_and_none_is_made_up",
            "test_the_tokens_of_sub_agents_make_the_sum_unknown",
        ),
        "clients/test_stream.py": ("test_the_last_usage_wins_and_nothing_is_summed",),
        "counting/test_benchmark.py": (
            "test_unknown_usage_is_left_out_of_the_mean_and_never_zero",
        ),
    },
    "a kill is credited to the wrong cause": {
        "hazards/test_exhausted_bounds_catch_no_mutant.py": (
            "test_only_a_wrong_answer_catches_a_mutant",
            "test_an_audit_in_which_everything_was_late_fails",
            "test_a_skipped_check_has_caught_nothing",
        ),
        "counting/test_audit.py": (
            "test_a_crash_or_a_timeout_is_broken_and_no_kill",
            "test_a_mutant_that_does_not_build_is_broken",
            "test_a_failure_elsewhere_only_is_off_target",
            "test_a_timeout_counts_where_the_reference_timed_out_too",
            "test_only_what_the_reference_passed_can_detect",
            "test_a_real_catch_counts_beside_a_crash",
        ),
        "plugin/test_packs.py": ("test_a_mutant_that_cannot_start_is_broken_and_not_detected",),
    },
    "the baseline is red or stale, or a mutant stays applied": {
        "hazards/test_an_interrupt_ends_once.py": (
            "test_a_killed_audit_leaves_the_sources_as_they_were",
        ),
        "hazards/test_rewritten_checks_judge_nothing.py": (
            "test_controls_that_different_checks_have_judged_give_no_score",
        ),
        "counting/test_audit.py": (
            "test_a_red_baseline_gives_no_score",
            "test_no_mutants_is_no_success",
            "test_the_reference_must_pass_under_the_very_seed",
            "test_controls_of_another_audit_are_refused",
        ),
        "plugin/test_cache.py": ("test_a_changed_check_is_put_to_every_control_again",),
        "grading/test_cache_key.py": ("test_a_change_of_anything_that_decides_is_graded_anew",),
        "runs/test_control.py": ("test_a_control_leaves_nothing_in_the_working_folder",),
    },
    "workers lose, double or reorder items": {
        "hazards/test_workers_need_not_agree_on_order.py": (
            "test_a_worker_that_lists_folders_backwards_runs_the_same_items",
        ),
        "hazards/test_reports_carry_plain_data.py": (
            "test_what_a_test_records_of_a_trial_reaches_the_report",
            "test_what_is_plain_stays_what_it_is",
            "test_a_long_text_is_cut_in_its_middle",
        ),
        "plugin/test_scheduling.py": (
            "test_a_worker_that_dies_costs_exactly_its_trial",
            "test_a_trial_runs_once_under_every_distribution",
            "test_a_worker_that_dies_beside_one_with_the_same_items_costs_one_trial",
        ),
        "plugin/test_resume.py": ("test_two_sessions_on_one_batch_run_each_trial_once",),
        "runs/test_once.py": ("test_two_processes_that_ask_at_once_get_one_document",),
    },
    "an interrupt or a crash leaves half a state": {
        "hazards/test_an_interrupt_ends_once.py": ("test_two_signals_within_a_moment_are_one_end",),
        "plugin/test_signals.py": (
            "test_only_the_first_signal_interrupts",
            "test_an_interrupted_trial_is_recorded_and_leaves_no_process",
            "test_a_killed_session_leaves_no_process_and_can_be_counted_later",
        ),
        "plugin/test_resume.py": (
            "test_a_session_killed_in_mid_batch_is_gone_on_with",
            "test_a_damaged_result_is_told_and_its_trial_never_run_again",
        ),
        "reporting/test_batch.py": ("test_a_result_cut_anywhere_is_told_as_a_sentence",),
        "files/test_strict.py": ("test_a_document_cut_anywhere_is_refused",),
        "clients/test_lines.py": ("test_a_torn_last_line_is_lost_and_what_came_before_it_stands",),
        "runs/test_trial.py": (
            "test_an_interrupt_at_any_stage_leaves_a_cancelled_result_and_is_raised",
        ),
        "isolation/test_supervise.py": ("test_an_interrupt_at_any_time_leaves_nothing",),
    },
}
"""By what goes wrong: the tests that prove it does not, by their file below `tests/`."""

DIFFERENCES: Mapping[str, str] = {
    "a result is planted in advance": (
        "A result lies at a path that can be guessed: no session and no grading can reach it, and "
        "where there is no boundary the result says so and is compared with nothing."
    ),
    "the agent succeeds without working, or never ends": (
        "A session without work has no outcome of its own: its checks fail, as they do for a "
        "session that worked on the wrong file."
    ),
    "hardening breaks honest checks": (
        "Trials do not wait for the known-good submission: its audit has items of its own, and a "
        "check that it fails is named there."
    ),
    "the rate has the wrong denominator": (
        "What broke on our side is left out by name and number, and no bounds are shown for it: "
        "they would mix what was drawn by chance with what got lost."
    ),
    "a coin is flipped, and a retry launders its fall": (
        "The known-good submission is graded twice, and a check on which both differ fails its "
        "item; a check that depends on the time of day passes both and shows on another day."
    ),
    "two names become one": (
        "A name that could be taken for another is refused where it is written, so that no folder "
        "needs a suffix which nobody could guess."
    ),
    "a link leads out of the tree": (
        "No link is ever made again, not even one that stays inside: where a submission counts it "
        "invalidates, and elsewhere it is listed by its text."
    ),
    "a candidate speaks before it is asked, or for ever": (
        "Requests carry no token to be echoed: what lies in the pipe before a request is a fault "
        "already, and an answer to what was not yet sent could only be guessed."
    ),
    "a kill is credited to the wrong cause": (
        "A deadline that struck is not tried again alone: it never counts as a catch, so there is "
        "nothing to confirm."
    ),
}
"""What others were asked to show and we show otherwise, with the reason."""


def proofs() -> dict[str, tuple[str, ...]]:
    """Return the node ids of the tests that prove each kind, from the root of the repository."""
    return {
        kind: tuple(f"tests/{file}::{name}" for file, names in files.items() for name in names)
        for kind, files in KINDS.items()
    }


def main() -> None:
    """Print every kind with the tests that prove it."""
    for number, (kind, nodes) in enumerate(proofs().items(), start=1):
        print(f"{number}. {kind}", *(f"   {node}" for node in nodes), sep="\n")


if __name__ == "__main__":
    main()
