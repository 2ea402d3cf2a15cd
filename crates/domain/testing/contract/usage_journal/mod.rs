//! Cases of [`crate::budget::UsageJournal`] and [`crate::budget::OrphanedJournals`].

mod appending;
mod folding;
mod machine;
mod orphans;
mod setup;

pub use machine::{JournalMachine, Journals};

use self::{
    appending::{
        append_is_rejected_above_the_payload_bound, append_sent_is_rejected_when_the_journal_is_full,
        concurrent_appends_have_distinct_numbers_in_the_order_of_their_callers, entries_are_numbered_from_one,
        entries_that_the_disk_refused_are_written_later_and_in_order, increase_keeps_the_reservation_of_its_request,
        wait_synced_resolves_after_the_sync,
    },
    folding::{
        folded_entries_make_room, remove_folded_with_an_older_number_changes_nothing,
        segments_with_open_or_unfolded_entries_stay, unfolded_returns_at_least_one_entry,
        unfolded_returns_synced_entries_alone, unfolded_returns_the_oldest_entries_until_they_are_folded,
    },
    orphans::{
        damaged_entry_is_a_named_gap, folded_entries_are_read_back_while_they_are_kept,
        journal_is_found_after_its_process, journal_is_recovered_by_one_finder_at_a_time,
        journals_of_several_processes_are_kept_apart, orphan_holds_every_appended_entry,
        orphan_keeps_zeros_at_the_end_of_its_last_entry, power_loss_takes_unsynced_entries_alone,
        recovered_journal_is_removed_once_it_is_old, seal_returns_entries_that_the_disk_refused,
        sealed_journal_is_found_while_its_process_lives_and_takes_no_entries,
    },
};

suite! {
    /// Every case of the port's contract.
    usage_journal_cases as usage_journal_contract over Journals {
        // appending
        entries_are_numbered_from_one,
        concurrent_appends_have_distinct_numbers_in_the_order_of_their_callers,
        append_is_rejected_above_the_payload_bound,
        append_sent_is_rejected_when_the_journal_is_full,
        increase_keeps_the_reservation_of_its_request,
        entries_that_the_disk_refused_are_written_later_and_in_order,
        wait_synced_resolves_after_the_sync,
        // folding
        unfolded_returns_synced_entries_alone,
        unfolded_returns_the_oldest_entries_until_they_are_folded,
        unfolded_returns_at_least_one_entry,
        folded_entries_make_room,
        remove_folded_with_an_older_number_changes_nothing,
        segments_with_open_or_unfolded_entries_stay,
        // orphans
        orphan_holds_every_appended_entry,
        orphan_keeps_zeros_at_the_end_of_its_last_entry,
        journal_is_found_after_its_process,
        journal_is_recovered_by_one_finder_at_a_time,
        journals_of_several_processes_are_kept_apart,
        folded_entries_are_read_back_while_they_are_kept,
        recovered_journal_is_removed_once_it_is_old,
        damaged_entry_is_a_named_gap,
        power_loss_takes_unsynced_entries_alone,
        sealed_journal_is_found_while_its_process_lives_and_takes_no_entries,
        seal_returns_entries_that_the_disk_refused,
    }
}
