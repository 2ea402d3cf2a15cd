//! Cases of [`crate::budget::JournaledLedger`] and [`crate::budget::RecoverJournals`] over a store and a machine, with
//! lost answers, an absent store, and processes that die.

mod exceeding;
mod fixture;
mod folding;
mod forgetting;
mod recovering;
mod renewing;
mod sharing;
mod shortening;

pub use exceeding::excess_script;
pub use fixture::{LedgerMachine, StoreBackup, hold_request, insert_payer, limit_payer, payer, usage_record};

use self::{
    exceeding::{
        amounts_freed_after_an_excess_are_returned_and_not_held_again,
        client_in_sequence_stops_at_the_charge_that_exceeds_the_limit, excess_counts_after_a_change_of_the_limit,
        grant_with_a_lost_answer_is_returned_after_an_excess, limit_is_exceeded_by_excesses_in_flight_alone,
        open_excess_of_a_dead_process_is_counted_once,
    },
    folding::{
        answered_request_does_not_wait_for_the_draw_of_a_later_one, any_lost_answer_is_made_up_for,
        callers_that_wait_together_for_a_failing_store_get_one_error,
        charge_that_waits_for_the_disk_is_an_error_and_is_charged_once,
        closed_process_has_folded_everything_and_returned_its_allowances,
        draw_fills_a_counter_ahead_by_the_holds_of_the_last_second, draw_with_a_lost_answer_is_granted_once,
        fold_and_return_with_lost_answers_take_effect_once, folding_of_a_long_journal_leaves_turns_to_requests,
        full_journal_rejects_a_request_before_it_costs_anything,
        hold_fails_as_unavailable_while_the_store_is_away_and_never_as_a_limit,
        known_limits_are_used_after_a_second_without_response, pending_records_are_stored_on_demand,
        released_hold_is_free_at_once_and_journaled, request_does_not_queue_behind_a_store_that_failed_and_hangs,
        request_in_flight_when_a_limit_begins_counts_when_it_is_charged, request_that_nothing_limits_needs_no_store,
        request_that_waits_for_a_round_fails_with_it, request_waits_for_the_store_only_while_its_counter_is_cold,
    },
    forgetting::{
        allowances_of_a_lost_process_return_where_unknown_usage_is_free,
        command_forgets_only_processes_that_are_silent_and_have_no_journal,
        journal_of_a_lost_process_that_turns_up_is_folded_and_the_rest_returns,
        journal_of_a_lost_process_without_unfolded_charges_returns_everything,
        process_is_not_lost_because_the_store_was_away,
        silent_process_without_journal_is_lost_and_its_allowances_count_as_spent,
    },
    recovering::{
        allowances_become_adjustments_where_the_power_was_lost,
        attempts_of_a_later_stage_are_charged_once_it_has_begun,
        charges_of_a_dead_process_are_folded_once_and_open_requests_charged_by_their_bounds,
        gap_is_counted_and_nothing_behind_it_is_lost,
        journal_copied_back_from_an_older_backup_frees_nothing_that_may_be_spent,
        journal_that_is_newer_than_a_restored_store_is_folded_again,
        journal_that_was_closed_returns_its_allowances_after_a_loss_of_power,
        limits_of_a_restored_store_are_followed_although_its_feed_fell,
        living_process_over_an_older_store_loses_no_charge, more_charges_than_a_batch_are_folded_once,
        open_requests_are_free_where_unknown_usage_is, recovery_is_repeated_when_the_store_was_away,
        recovery_with_any_answer_lost_is_finished_by_the_next_one,
    },
    renewing::{
        charge_that_waits_for_the_disk_of_a_sealed_journal_is_charged_once,
        dead_journals_are_folded_again_into_an_older_store, idle_process_notices_the_older_store_by_its_declaration,
        open_request_of_a_sealed_journal_is_charged_by_its_bound_until_its_charge,
        process_over_an_older_store_folds_again_and_continues, process_that_the_older_store_never_knew_loses_no_charge,
    },
    sharing::{
        idle_process_is_seen_by_its_heartbeat, key_at_its_limit_is_refused_from_memory_for_a_moment,
        limit_holds_over_processes_and_its_whole_room_can_be_used, process_that_lacks_gets_what_others_have_free,
        process_that_was_paused_keeps_its_money_and_charges_afterwards,
        refusal_is_uncertain_while_a_holder_is_silent_and_certain_once_it_has_answered,
        request_behind_one_that_does_not_fit_is_not_held_up, request_is_answered_when_the_one_that_draws_for_it_leaves,
        sixty_four_requests_at_once_get_exactly_what_fits,
    },
    shortening::{
        charge_of_any_size_is_recorded_and_ends_its_hold, hold_is_rejected_when_its_end_cannot_fit_into_the_journal,
        records_go_without_their_trace_above_half_of_the_journal,
    },
};

suite! {
    /// Every case of the ledger on a machine.
    ledger_machine_cases as ledger_machine_contract over LedgerMachine {
        // exceeding
        client_in_sequence_stops_at_the_charge_that_exceeds_the_limit,
        amounts_freed_after_an_excess_are_returned_and_not_held_again,
        grant_with_a_lost_answer_is_returned_after_an_excess,
        excess_counts_after_a_change_of_the_limit,
        open_excess_of_a_dead_process_is_counted_once,
        limit_is_exceeded_by_excesses_in_flight_alone,
        // folding
        request_waits_for_the_store_only_while_its_counter_is_cold,
        hold_fails_as_unavailable_while_the_store_is_away_and_never_as_a_limit,
        answered_request_does_not_wait_for_the_draw_of_a_later_one,
        callers_that_wait_together_for_a_failing_store_get_one_error,
        request_does_not_queue_behind_a_store_that_failed_and_hangs,
        known_limits_are_used_after_a_second_without_response,
        request_that_waits_for_a_round_fails_with_it,
        draw_fills_a_counter_ahead_by_the_holds_of_the_last_second,
        draw_with_a_lost_answer_is_granted_once,
        fold_and_return_with_lost_answers_take_effect_once,
        released_hold_is_free_at_once_and_journaled,
        full_journal_rejects_a_request_before_it_costs_anything,
        charge_that_waits_for_the_disk_is_an_error_and_is_charged_once,
        pending_records_are_stored_on_demand,
        request_that_nothing_limits_needs_no_store,
        closed_process_has_folded_everything_and_returned_its_allowances,
        request_in_flight_when_a_limit_begins_counts_when_it_is_charged,
        any_lost_answer_is_made_up_for,
        folding_of_a_long_journal_leaves_turns_to_requests,
        // shortening
        records_go_without_their_trace_above_half_of_the_journal,
        charge_of_any_size_is_recorded_and_ends_its_hold,
        hold_is_rejected_when_its_end_cannot_fit_into_the_journal,
        // recovering
        attempts_of_a_later_stage_are_charged_once_it_has_begun,
        charges_of_a_dead_process_are_folded_once_and_open_requests_charged_by_their_bounds,
        open_requests_are_free_where_unknown_usage_is,
        allowances_become_adjustments_where_the_power_was_lost,
        gap_is_counted_and_nothing_behind_it_is_lost,
        more_charges_than_a_batch_are_folded_once,
        journal_that_is_newer_than_a_restored_store_is_folded_again,
        living_process_over_an_older_store_loses_no_charge,
        limits_of_a_restored_store_are_followed_although_its_feed_fell,
        journal_copied_back_from_an_older_backup_frees_nothing_that_may_be_spent,
        journal_that_was_closed_returns_its_allowances_after_a_loss_of_power,
        recovery_is_repeated_when_the_store_was_away,
        recovery_with_any_answer_lost_is_finished_by_the_next_one,
        // renewing
        process_over_an_older_store_folds_again_and_continues,
        process_that_the_older_store_never_knew_loses_no_charge,
        open_request_of_a_sealed_journal_is_charged_by_its_bound_until_its_charge,
        charge_that_waits_for_the_disk_of_a_sealed_journal_is_charged_once,
        dead_journals_are_folded_again_into_an_older_store,
        idle_process_notices_the_older_store_by_its_declaration,
        // sharing
        limit_holds_over_processes_and_its_whole_room_can_be_used,
        process_that_lacks_gets_what_others_have_free,
        sixty_four_requests_at_once_get_exactly_what_fits,
        request_behind_one_that_does_not_fit_is_not_held_up,
        request_is_answered_when_the_one_that_draws_for_it_leaves,
        process_that_was_paused_keeps_its_money_and_charges_afterwards,
        key_at_its_limit_is_refused_from_memory_for_a_moment,
        refusal_is_uncertain_while_a_holder_is_silent_and_certain_once_it_has_answered,
        idle_process_is_seen_by_its_heartbeat,
        // forgetting
        allowances_of_a_lost_process_return_where_unknown_usage_is_free,
        silent_process_without_journal_is_lost_and_its_allowances_count_as_spent,
        journal_of_a_lost_process_that_turns_up_is_folded_and_the_rest_returns,
        journal_of_a_lost_process_without_unfolded_charges_returns_everything,
        process_is_not_lost_because_the_store_was_away,
        command_forgets_only_processes_that_are_silent_and_have_no_journal,
    }
}
