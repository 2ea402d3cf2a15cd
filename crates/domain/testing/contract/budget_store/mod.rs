//! Cases of [`crate::budget::BudgetStore`].

mod alerting;
mod drawing;
mod ending;
mod folding;
mod limits;
mod racing;
mod recalling;
mod reporting;
mod setup;
mod usage_script;

use self::setup::adds_up;
use self::usage_script::sums_and_pages_equal_records_after_any_steps;
pub use self::usage_script::usage_script;
use self::{
    alerting::{
        alert_is_published_once_with_its_messages, alerts_are_of_every_account_and_period,
        alerts_of_credit_follow_its_base, concurrent_folds_alert_once, end_alerts_when_allowances_count_as_spent,
        fold_alerts_anew_after_change_of_limit, fold_alerts_once_per_threshold_and_period,
        prune_removes_published_alerts_of_past_periods,
    },
    drawing::{
        draw_counts_credit_from_its_base, draw_counts_each_period_on_its_own,
        draw_fills_counters_ahead_within_its_share, draw_grants_all_counters_or_none,
        draw_grants_no_more_than_each_limit_leaves, draw_grants_nothing_while_processes_fold_again,
        draw_is_corrupt_for_unknown_payer, draw_is_corrupt_when_a_sum_leaves_the_range,
        draw_rejects_processes_that_are_not_live, draw_rejects_unexpected_numbers,
        draw_returns_first_reply_when_repeated, draw_serves_asks_in_order, return_makes_room_once,
    },
    ending::{
        end_counts_allowances_as_spent_when_adjusted, end_returns_allowances, fold_takes_adjustments_after_end,
        lost_process_gives_up_its_adjustments_when_its_journal_was_folded,
    },
    folding::{
        fold_adds_messages_and_bytes_once, fold_adds_nothing_for_known_ids, fold_charges_and_takes_allowances,
        fold_counts_periods_of_the_charge, fold_is_corrupt_when_a_sum_leaves_the_range, fold_is_idempotent,
        fold_raises_credit_base_for_late_charges, fold_replaces_abandoned_records, fold_takes_many_entries,
    },
    limits::{limits_follow_changes, limits_list_every_account},
    racing::{concurrent_draws_never_exceed_a_limit, concurrent_repetitions_take_effect_once},
    recalling::{
        answer_counts_for_three_seconds, draw_exact_while_recalled, draw_recalls_allowances_of_others,
        live_processes_are_listed_with_their_silence, own_allowances_are_not_recalled, recall_ends_after_five_seconds,
        refusal_is_uncertain_until_every_holder_has_answered,
    },
    reporting::{
        audit_counts_what_it_compares, audit_names_records_whose_cost_is_not_that_of_their_tokens,
        concurrent_prunes_remove_each_record_once, key_spend_is_that_of_current_periods, prune_keeps_totals,
        prune_keeps_what_still_counts, prune_removes_adjustments_of_periods_that_are_over,
        statuses_show_spent_and_allotted_amounts,
    },
};
use super::Stores;

suite! {
    /// Every case of the port's contract. The ledger is audited after each.
    budget_store_cases as budget_store_contract over Stores then adds_up {
        // drawing
        draw_grants_no_more_than_each_limit_leaves,
        draw_grants_nothing_while_processes_fold_again,
        draw_counts_credit_from_its_base,
        draw_counts_each_period_on_its_own,
        draw_grants_all_counters_or_none,
        draw_serves_asks_in_order,
        draw_fills_counters_ahead_within_its_share,
        draw_returns_first_reply_when_repeated,
        draw_rejects_unexpected_numbers,
        draw_rejects_processes_that_are_not_live,
        draw_is_corrupt_for_unknown_payer,
        draw_is_corrupt_when_a_sum_leaves_the_range,
        return_makes_room_once,
        // folding
        fold_charges_and_takes_allowances,
        fold_counts_periods_of_the_charge,
        fold_is_idempotent,
        fold_adds_nothing_for_known_ids,
        fold_replaces_abandoned_records,
        fold_raises_credit_base_for_late_charges,
        fold_adds_messages_and_bytes_once,
        fold_takes_many_entries,
        fold_is_corrupt_when_a_sum_leaves_the_range,
        sums_and_pages_equal_records_after_any_steps,
        // ending
        end_returns_allowances,
        end_counts_allowances_as_spent_when_adjusted,
        fold_takes_adjustments_after_end,
        lost_process_gives_up_its_adjustments_when_its_journal_was_folded,
        // recalling
        refusal_is_uncertain_until_every_holder_has_answered,
        answer_counts_for_three_seconds,
        live_processes_are_listed_with_their_silence,
        draw_recalls_allowances_of_others,
        own_allowances_are_not_recalled,
        draw_exact_while_recalled,
        recall_ends_after_five_seconds,
        // limits
        limits_list_every_account,
        limits_follow_changes,
        // alerting
        fold_alerts_once_per_threshold_and_period,
        fold_alerts_anew_after_change_of_limit,
        alerts_are_of_every_account_and_period,
        alerts_of_credit_follow_its_base,
        end_alerts_when_allowances_count_as_spent,
        concurrent_folds_alert_once,
        alert_is_published_once_with_its_messages,
        prune_removes_published_alerts_of_past_periods,
        // racing
        concurrent_draws_never_exceed_a_limit,
        concurrent_repetitions_take_effect_once,
    }
}

suite! {
    /// Every case of the ports that read the ledger: [`crate::budget::LedgerReader`] and
    /// [`crate::budget::LedgerMaintenance`].
    ledger_reports_cases as ledger_reports_contract over Stores then adds_up {
        statuses_show_spent_and_allotted_amounts,
        key_spend_is_that_of_current_periods,
        audit_counts_what_it_compares,
        prune_keeps_totals,
        prune_keeps_what_still_counts,
        prune_removes_adjustments_of_periods_that_are_over,
        concurrent_prunes_remove_each_record_once,
    }
}

suite! {
    /// Cases of [`crate::budget::LedgerMaintenance`] that leave discrepancies.
    ledger_reports_audit_cases as ledger_reports_audit_contract over Stores {
        audit_names_records_whose_cost_is_not_that_of_their_tokens,
    }
}
