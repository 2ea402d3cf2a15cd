//! Cases of [`crate::budget::Ledger`].

mod admitting;
pub(super) mod furniture;
mod limits;
mod periods;
mod pruning;
mod racing;
mod script;
mod settling;

pub use script::{LedgerStep, ledger_script};

use self::furniture::adds_up;
use self::{
    admitting::{
        a_job_at_fault_fails_alone, a_reservation_is_extended, reserving_again_returns_what_is_there,
        what_fits_is_reserved_and_no_more, what_is_standing_is_told, what_leaves_the_range_of_money_fails_alone,
        who_pays_has_to_be_there,
    },
    limits::{
        a_limit_binds_only_whom_it_is_for, a_limit_may_be_changed_at_any_time,
        a_limit_may_be_lowered_below_what_is_reserved, budgets_of_guardrails_count_for_each_key,
        credit_is_used_up_and_added, each_limit_refuses_on_its_own,
    },
    periods::{
        a_charge_belongs_to_the_period_of_its_reservation, a_day_ends_at_midnight, a_month_begins_on_its_first,
        a_week_begins_on_monday,
    },
    pruning::{what_is_old_goes_and_the_totals_stay, what_is_pruned_is_pruned_once, what_still_counts_stays},
    racing::{
        extensions_share_what_is_left, nobody_sees_more_than_the_limit,
        of_sixty_four_at_once_as_many_are_admitted_as_fit, rivals_of_one_id_are_one, what_is_settled_makes_room,
    },
    settling::{
        a_charge_takes_the_place_of_its_reservation, a_cost_that_is_not_that_of_its_tokens_is_told,
        bytes_of_records_are_counted_by_workspace_and_day, messages_are_put_out_once,
        more_than_was_reserved_is_charged_all_the_same, real_charge_replaces_an_abandoned_one,
        settling_again_changes_nothing, what_is_released_is_there_again, whoever_is_gone_is_charged_all_the_same,
    },
};
use super::Stores;

suite! {
    /// Every case of the port's contract, but for the death of the process. After each, everything adds up.
    ledger_cases as ledger_contract over Stores then adds_up {
        // admitting
        what_fits_is_reserved_and_no_more,
        reserving_again_returns_what_is_there,
        a_reservation_is_extended,
        who_pays_has_to_be_there,
        a_job_at_fault_fails_alone,
        what_leaves_the_range_of_money_fails_alone,
        what_is_standing_is_told,
        // limits
        each_limit_refuses_on_its_own,
        a_limit_binds_only_whom_it_is_for,
        credit_is_used_up_and_added,
        a_limit_may_be_lowered_below_what_is_reserved,
        a_limit_may_be_changed_at_any_time,
        budgets_of_guardrails_count_for_each_key,
        // settling
        a_charge_takes_the_place_of_its_reservation,
        settling_again_changes_nothing,
        more_than_was_reserved_is_charged_all_the_same,
        what_is_released_is_there_again,
        whoever_is_gone_is_charged_all_the_same,
        messages_are_put_out_once,
        bytes_of_records_are_counted_by_workspace_and_day,
        real_charge_replaces_an_abandoned_one,
        // periods
        a_day_ends_at_midnight,
        a_week_begins_on_monday,
        a_month_begins_on_its_first,
        a_charge_belongs_to_the_period_of_its_reservation,
        // racing
        of_sixty_four_at_once_as_many_are_admitted_as_fit,
        nobody_sees_more_than_the_limit,
        what_is_settled_makes_room,
        extensions_share_what_is_left,
        rivals_of_one_id_are_one,
        // pruning
        what_is_old_goes_and_the_totals_stay,
        what_still_counts_stays,
        what_is_pruned_is_pruned_once,
    }
}

suite! {
    /// The cases of a ledger whose charges reach the store later: in a journal first, then folded. After each,
    /// everything adds up.
    journaled_ledger_cases as journaled_ledger_contract over Stores then adds_up {
        // admitting
        what_fits_is_reserved_and_no_more,
        reserving_again_returns_what_is_there,
        a_reservation_is_extended,
        who_pays_has_to_be_there,
        a_job_at_fault_fails_alone,
        what_is_standing_is_told,
        // limits
        each_limit_refuses_on_its_own,
        credit_is_used_up_and_added,
        a_limit_may_be_lowered_below_what_is_reserved,
        budgets_of_guardrails_count_for_each_key,
        // settling
        a_charge_takes_the_place_of_its_reservation,
        settling_again_changes_nothing,
        more_than_was_reserved_is_charged_all_the_same,
        what_is_released_is_there_again,
        whoever_is_gone_is_charged_all_the_same,
        messages_are_put_out_once,
        bytes_of_records_are_counted_by_workspace_and_day,
        real_charge_replaces_an_abandoned_one,
        // periods
        a_day_ends_at_midnight,
        a_week_begins_on_monday,
        a_month_begins_on_its_first,
        a_charge_belongs_to_the_period_of_its_reservation,
        // racing
        of_sixty_four_at_once_as_many_are_admitted_as_fit,
        nobody_sees_more_than_the_limit,
        what_is_settled_makes_room,
        extensions_share_what_is_left,
        // pruning
        what_is_old_goes_and_the_totals_stay,
        what_still_counts_stays,
        what_is_pruned_is_pruned_once,
    }
}

suite! {
    /// Cases of [`crate::budget::LedgerAuditor`] that leave behind what does not add up.
    ledger_audit_cases as ledger_audit_contract over Stores {
        a_cost_that_is_not_that_of_its_tokens_is_told,
    }
}
