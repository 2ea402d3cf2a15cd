//! Amounts freed by unsynced journal entries.

use std::collections::VecDeque;

use super::CounterId;

/// Freed amounts by the number of their journal entry.
#[derive(Debug, Default)]
pub(super) struct UnsyncedReleases(VecDeque<(u64, CounterId, i128)>);

impl UnsyncedReleases {
    pub(super) fn push(&mut self, sequence: u64, counter: CounterId, amount: i128) {
        // Charges finish in the order of their callers, not of their entries.
        let at = self.0.partition_point(|(other, ..)| *other <= sequence);
        self.0.insert(at, (sequence, counter, amount));
    }

    /// Removes and returns the amounts of entries up to a number.
    pub(super) fn take_synced(&mut self, up_to: u64) -> impl Iterator<Item = (CounterId, i128)> {
        let synced = self.0.partition_point(|(sequence, ..)| *sequence <= up_to);
        self.0.drain(..synced).map(|(_, counter, amount)| (counter, amount))
    }
}
