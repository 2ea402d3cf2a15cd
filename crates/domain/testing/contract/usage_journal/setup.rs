//! Journals of single processes, and their entries.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::Journals;
use crate::budget::{EntryKind, JournalEntry, OrphanedJournal, UsageJournal};
use crate::ids::ProcessId;
use crate::testing::{JournalBounds, JournalContent};

/// Number, kind and payload.
pub(super) type Written = (u64, u8, Vec<u8>);

pub(super) fn process(number: u128) -> ProcessId {
    ProcessId::from_uuid(Uuid::from_u128(number))
}

pub(super) fn start(journals: &Journals) -> Arc<dyn UsageJournal> {
    journals.machine.start(process(1), JournalBounds::default())
}

pub(super) fn start_unsynced(journals: &Journals) -> Arc<dyn UsageJournal> {
    journals.machine.start(process(1), JournalBounds { is_synced_by_hand: true, ..JournalBounds::default() })
}

/// Returns a payload that is unique to the number.
pub(super) fn payload(number: usize) -> Vec<u8> {
    format!("{number} ").repeat(1 + number % 40).into_bytes()
}

/// Appends a request and its charge for each number.
pub(super) fn append_requests(journal: &dyn UsageJournal, numbers: std::ops::Range<usize>) -> Vec<Written> {
    let mut written = Vec::new();
    for number in numbers {
        let sent = journal.append_sent(EntryKind::Sent, &payload(number), 1000).expect("a request is taken in");
        written.push((sent, EntryKind::Sent as u8, payload(number)));
        let end = journal.append_end(EntryKind::Charged, &payload(number + 1), 1000).expect("a charge is taken in");
        written.push((end, EntryKind::Charged as u8, payload(number + 1)));
    }
    written
}

pub(super) fn plain(entries: &[JournalEntry]) -> Vec<Written> {
    entries.iter().map(|entry| (entry.sequence, entry.kind, entry.payload.to_vec())).collect()
}

/// Returns all unfolded and synced entries.
pub(super) fn unfolded(journal: &dyn UsageJournal) -> Vec<Written> {
    plain(&journal.unfolded(usize::MAX, usize::MAX).expect("entries are read"))
}

/// Returns the only journal of a dead process.
pub(super) async fn orphan(journals: &Journals) -> Box<dyn OrphanedJournal> {
    let found = find(journals).await;
    let Ok([orphan]) = <[_; 1]>::try_from(found) else { panic!("not one journal of a dead process") };
    orphan
}

pub(super) async fn find(journals: &Journals) -> Vec<Box<dyn OrphanedJournal>> {
    journals.machine.orphans(Duration::from_hours(1)).find().await.expect("journals are found")
}

pub(super) async fn read(orphan: &dyn OrphanedJournal) -> JournalContent {
    JournalContent::of(orphan).await.expect("a journal is read")
}
