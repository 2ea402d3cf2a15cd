//! Cases of [`crate::budget::Ledger`].

mod admitting;
pub(super) mod fixtures;
mod limits;
mod periods;
mod pruning;
mod racing;
mod script;
mod settling;

pub use script::{LedgerStep, ledger_script};

use self::fixtures::adds_up;
use self::{
    admitting::{
        amount_out_of_range_fails_alone, increase_raises_a_hold, invalid_call_fails_alone_among_concurrent_calls,
        limit_statuses_returns_all_limits, reserve_accepts_amounts_up_to_the_limit, reserve_fails_for_unknown_payer,
        reserve_returns_existing_hold,
    },
    limits::{
        credit_is_spent_and_added, each_limit_binds_independently, guardrail_budgets_count_per_key,
        limit_binds_its_owner_only, limit_can_be_lowered_below_holds, limit_can_change_at_any_time,
    },
    periods::{
        charge_belongs_to_the_period_of_its_hold, day_ends_at_midnight, month_begins_on_its_first_day,
        week_begins_on_monday,
    },
    pruning::{
        concurrent_prunes_remove_each_record_once, prune_keeps_records_of_current_periods,
        prune_removes_old_records_and_keeps_totals,
    },
    racing::{
        concurrent_charges_make_room, concurrent_increases_share_the_room, concurrent_reads_never_exceed_the_limit,
        concurrent_reserves_are_admitted_up_to_the_limit, concurrent_reserves_of_one_id_return_one_hold,
    },
    settling::{
        audit_reports_cost_that_differs_from_tokens, charge_enqueues_messages_once, charge_may_exceed_its_hold,
        charge_replaces_its_hold, deleted_payer_is_still_charged, real_charge_replaces_an_abandoned_one,
        record_bytes_are_counted_by_workspace_and_day, release_frees_the_hold, second_charge_changes_nothing,
    },
};
use super::Stores;

suite! {
    /// Every case of the port's contract but the death of the process. The ledger is audited after each.
    ledger_cases as ledger_contract over Stores then adds_up {
        // admitting
        reserve_accepts_amounts_up_to_the_limit,
        reserve_returns_existing_hold,
        increase_raises_a_hold,
        reserve_fails_for_unknown_payer,
        invalid_call_fails_alone_among_concurrent_calls,
        amount_out_of_range_fails_alone,
        limit_statuses_returns_all_limits,
        // limits
        each_limit_binds_independently,
        limit_binds_its_owner_only,
        credit_is_spent_and_added,
        limit_can_be_lowered_below_holds,
        limit_can_change_at_any_time,
        guardrail_budgets_count_per_key,
        // settling
        charge_replaces_its_hold,
        second_charge_changes_nothing,
        charge_may_exceed_its_hold,
        release_frees_the_hold,
        deleted_payer_is_still_charged,
        charge_enqueues_messages_once,
        record_bytes_are_counted_by_workspace_and_day,
        real_charge_replaces_an_abandoned_one,
        // periods
        day_ends_at_midnight,
        week_begins_on_monday,
        month_begins_on_its_first_day,
        charge_belongs_to_the_period_of_its_hold,
        // racing
        concurrent_reserves_are_admitted_up_to_the_limit,
        concurrent_reads_never_exceed_the_limit,
        concurrent_charges_make_room,
        concurrent_increases_share_the_room,
        concurrent_reserves_of_one_id_return_one_hold,
        // pruning
        prune_removes_old_records_and_keeps_totals,
        prune_keeps_records_of_current_periods,
        concurrent_prunes_remove_each_record_once,
    }
}

suite! {
    /// The cases of a ledger that folds charges from a journal into the store. The ledger is audited after each.
    journaled_ledger_cases as journaled_ledger_contract over Stores then adds_up {
        // admitting
        reserve_accepts_amounts_up_to_the_limit,
        reserve_returns_existing_hold,
        increase_raises_a_hold,
        reserve_fails_for_unknown_payer,
        invalid_call_fails_alone_among_concurrent_calls,
        limit_statuses_returns_all_limits,
        // limits
        each_limit_binds_independently,
        credit_is_spent_and_added,
        limit_can_be_lowered_below_holds,
        guardrail_budgets_count_per_key,
        // settling
        charge_replaces_its_hold,
        second_charge_changes_nothing,
        charge_may_exceed_its_hold,
        release_frees_the_hold,
        deleted_payer_is_still_charged,
        charge_enqueues_messages_once,
        record_bytes_are_counted_by_workspace_and_day,
        real_charge_replaces_an_abandoned_one,
        // periods
        day_ends_at_midnight,
        week_begins_on_monday,
        month_begins_on_its_first_day,
        charge_belongs_to_the_period_of_its_hold,
        // racing
        concurrent_reserves_are_admitted_up_to_the_limit,
        concurrent_reads_never_exceed_the_limit,
        concurrent_charges_make_room,
        concurrent_increases_share_the_room,
        // pruning
        prune_removes_old_records_and_keeps_totals,
        prune_keeps_records_of_current_periods,
        concurrent_prunes_remove_each_record_once,
    }
}

suite! {
    /// Cases of [`crate::budget::LedgerMaintenance`] that leave discrepancies.
    ledger_audit_cases as ledger_audit_contract over Stores {
        audit_reports_cost_that_differs_from_tokens,
    }
}
