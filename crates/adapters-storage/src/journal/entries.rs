//! The entries of journals: their rows, and those of the running process in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use domain::budget::{EntryKind, JournalEntry};
use domain::error::StoreError;
use domain::ids::ProcessId;
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::convert::{signed, unsigned};
use crate::entities::journal_entries::{ActiveModel, Column, Entity};
use crate::errors::{corrupt, store_error};

/// The most rows of one statement.
const ROWS: usize = 256;
/// The most rows of one read.
const READ_ROWS: u64 = 4_096;

/// Inserts entries. Those that exist stay: a transaction without an answer is repeated.
pub(super) async fn insert(
    transaction: &impl ConnectionTrait,
    process: ProcessId,
    entries: &[JournalEntry],
) -> Result<(), StoreError> {
    for piece in entries.chunks(ROWS) {
        let rows = piece.iter().map(|entry| {
            Ok(ActiveModel {
                process_id: Set(process.to_string()),
                sequence: Set(signed(entry.sequence, "journal_entries.sequence", process)?),
                kind: Set(entry.kind.into()),
                payload: Set(entry.payload.to_vec()),
            })
        });
        let rows: Vec<ActiveModel> = rows.collect::<Result<_, StoreError>>()?;
        let insert = Entity::insert_many(rows).on_conflict_do_nothing_on([Column::ProcessId, Column::Sequence]);
        insert.exec_without_returning(transaction).await.map_err(store_error)?;
    }
    Ok(())
}

/// Removes the entries below a number, or all.
pub(super) async fn remove(
    transaction: &impl ConnectionTrait,
    process: ProcessId,
    below: Option<u64>,
) -> Result<(), StoreError> {
    let mut delete = Entity::delete_many().filter(Column::ProcessId.eq(process.to_string()));
    if let Some(below) = below {
        delete = delete.filter(Column::Sequence.lt(signed(below, "journal_entries.sequence", process)?));
    }
    delete.exec(transaction).await.map(drop).map_err(store_error)
}

/// Returns the next entries of a process after a number, in order; none after the last.
pub(super) async fn read_after(
    connection: &impl ConnectionTrait,
    process: ProcessId,
    after: u64,
) -> Result<Vec<JournalEntry>, StoreError> {
    let rows = Entity::find()
        .filter(Column::ProcessId.eq(process.to_string()))
        .filter(Column::Sequence.gt(signed(after, "journal_entries.sequence", process)?))
        .order_by_asc(Column::Sequence)
        .limit(READ_ROWS);
    let rows = rows.all(connection).await.map_err(store_error)?;
    let entry = |row: crate::entities::journal_entries::Model| {
        Ok(JournalEntry {
            sequence: unsigned(row.sequence, "journal_entries.sequence", process)?,
            kind: u8::try_from(row.kind).map_err(|_| corrupt("journal_entries.kind", process))?,
            payload: row.payload.into(),
        })
    };
    rows.into_iter().map(entry).collect()
}

/// The entries in memory, by number.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// All entries after `folded`.
    entries: VecDeque<JournalEntry>,
    /// The newest charges that were folded, within `max_kept_bytes`.
    kept: VecDeque<JournalEntry>,
    kept_bytes: usize,
    max_kept_bytes: usize,
    unfolded_bytes: u64,
    /// Bytes that are reserved for the ends of requests.
    reserved: u64,
    last: u64,
    stored: u64,
    folded: u64,
    /// Stored entries below this number are no longer needed, and those below `removed_below` are removed.
    removable_below: u64,
    removed_below: u64,
    /// True from a failed transaction until the next successful one.
    pub(super) is_failing: bool,
    pub(super) is_sealed: bool,
}

impl Tail {
    pub(super) fn new(max_kept_bytes: usize) -> Self {
        Self { max_kept_bytes, ..Self::default() }
    }

    pub(super) fn last_sequence(&self) -> u64 {
        self.last
    }

    pub(super) fn stored(&self) -> u64 {
        self.stored
    }

    pub(super) fn unfolded_bytes(&self) -> u64 {
        self.unfolded_bytes
    }

    pub(super) fn unfolded_entries(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn reserved(&self) -> u64 {
        self.reserved
    }

    pub(super) fn reserve(&mut self, bytes: usize) {
        self.reserved += bytes as u64;
    }

    pub(super) fn release(&mut self, bytes: usize) {
        self.reserved = self.reserved.saturating_sub(bytes as u64);
    }

    /// Adds an entry. Returns its number.
    pub(super) fn push(&mut self, kind: u8, payload: &[u8]) -> u64 {
        self.last += 1;
        self.unfolded_bytes += payload.len() as u64;
        self.entries.push_back(JournalEntry { sequence: self.last, kind, payload: payload.into() });
        self.last
    }

    /// Returns the oldest entries that are not stored, at least one if there is any.
    pub(super) fn unstored(&self, max_entries: usize, max_bytes: usize) -> Vec<JournalEntry> {
        self.oldest(self.stored, self.last, max_entries, max_bytes)
    }

    /// Returns the oldest stored entries that are not folded, at least one if there is any.
    pub(super) fn unfolded(&self, max_entries: usize, max_bytes: usize) -> Vec<JournalEntry> {
        self.oldest(self.folded, self.stored, max_entries, max_bytes)
    }

    fn oldest(&self, after: u64, up_to: u64, max_entries: usize, max_bytes: usize) -> Vec<JournalEntry> {
        let first = self.entries.partition_point(|entry| entry.sequence <= after);
        let mut bytes = 0;
        let mut found: Vec<JournalEntry> = Vec::new();
        for entry in self.entries.range(first..).take_while(|entry| entry.sequence <= up_to).take(max_entries) {
            bytes += entry.payload.len();
            if bytes > max_bytes && !found.is_empty() {
                break;
            }
            found.push(JournalEntry { payload: Arc::clone(&entry.payload), ..*entry });
        }
        found
    }

    pub(super) fn set_stored(&mut self, up_to: u64) {
        self.stored = self.stored.max(up_to);
    }

    /// Moves folded charges to the kept ones, and drops other folded entries.
    pub(super) fn remove_folded(&mut self, up_to: u64) {
        self.folded = self.folded.max(up_to);
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.sequence <= up_to) {
            self.unfolded_bytes -= entry.payload.len() as u64;
            if entry.kind == EntryKind::Charged as u8 {
                self.kept_bytes += entry.payload.len();
                self.kept.push_back(entry);
            }
        }
        while self.kept_bytes > self.max_kept_bytes
            && let Some(oldest) = self.kept.pop_front()
        {
            self.kept_bytes -= oldest.payload.len();
        }
    }

    /// Sets the number below which entries are not needed: they are folded, and their requests have ended. Returns the
    /// number of entries to remove.
    pub(super) fn set_removable_below(&mut self, keep_from: u64) -> usize {
        self.removable_below = self.removable_below.max(keep_from.min(self.folded + 1).min(self.last));
        usize::try_from(self.removable_below.saturating_sub(self.removed_below)).unwrap_or(usize::MAX)
    }

    /// Returns the number below which stored entries can be removed now, if there are any.
    pub(super) fn removable_below(&self) -> Option<u64> {
        (self.removable_below > self.removed_below).then_some(self.removable_below)
    }

    pub(super) fn set_removed_below(&mut self, sequence: u64) {
        self.removed_below = self.removed_below.max(sequence);
    }

    /// Ends the journal. Returns the unstored entries and the kept charges: the store may lack them.
    pub(super) fn seal(&mut self) -> Vec<JournalEntry> {
        if std::mem::replace(&mut self.is_sealed, true) {
            return Vec::new();
        }
        self.kept_bytes = 0;
        self.kept.drain(..).chain(self.entries.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHARGED: u8 = EntryKind::Charged as u8;
    const SENT: u8 = EntryKind::Sent as u8;

    fn numbers(entries: &[JournalEntry]) -> Vec<u64> {
        entries.iter().map(|entry| entry.sequence).collect()
    }

    #[test]
    fn entries_are_unstored_then_unfolded_then_kept() {
        let mut tail = Tail::new(8);
        for kind in [SENT, CHARGED, SENT, CHARGED] {
            tail.push(kind, b"1234");
        }
        assert_eq!(numbers(&tail.unstored(10, 100)), [1, 2, 3, 4]);
        assert!(tail.unfolded(10, 100).is_empty());
        tail.set_stored(3);
        assert_eq!(numbers(&tail.unstored(10, 100)), [4]);
        assert_eq!(numbers(&tail.unfolded(10, 100)), [1, 2, 3]);
        assert_eq!(numbers(&tail.unfolded(2, 100)), [1, 2]);
        assert_eq!(numbers(&tail.unfolded(10, 1)), [1], "at least one");
        tail.remove_folded(2);
        assert_eq!((numbers(&tail.unfolded(10, 100)), tail.unfolded_bytes()), (vec![3], 8));
        assert_eq!(numbers(&tail.seal()), [2, 3, 4], "folded charges and everything unfolded");
        assert!(tail.seal().is_empty());
    }

    #[test]
    fn kept_charges_are_bounded() {
        let mut tail = Tail::new(10);
        for _ in 0..5 {
            tail.push(CHARGED, b"1234");
        }
        tail.set_stored(5);
        tail.remove_folded(5);
        assert_eq!(numbers(&tail.seal()), [4, 5]);
    }

    #[test]
    fn entries_of_open_requests_are_not_removable() {
        let mut tail = Tail::new(0);
        for _ in 0..5 {
            tail.push(CHARGED, b"1");
        }
        tail.set_stored(5);
        tail.remove_folded(4);
        assert_eq!(tail.set_removable_below(3), 3);
        assert_eq!(tail.removable_below(), Some(3));
        tail.set_removed_below(3);
        assert_eq!(tail.removable_below(), None);
        tail.set_removable_below(100);
        assert_eq!(tail.removable_below(), Some(5), "the unfolded one and the newest stay");
    }
}
