//! Unfolded entries, and the removal of folded ones.

use std::time::Duration;

use super::Journals;
use super::setup::{append_requests, orphan, payload, plain, process, read, start, start_unsynced, unfolded};
use crate::budget::{EntryKind, UsageJournalError};
use crate::testing::JournalBounds;

pub(super) async fn unfolded_returns_synced_entries_alone(journals: &Journals) {
    let journal = start_unsynced(journals);
    let mut written = append_requests(&*journal, 0..5);
    assert_eq!(unfolded(&*journal), [], "a loss of power could undo a fold");
    journals.machine.sync(process(1));
    append_requests(&*journal, 5..6);
    assert_eq!(unfolded(&*journal), written);
    journal.remove_folded(10);
    journals.machine.sync(process(1));
    written = unfolded(&*journal);
    assert!(written.iter().map(|entry| entry.0).eq([11, 12]));
}

pub(super) async fn unfolded_returns_the_oldest_entries_until_they_are_folded(journals: &Journals) {
    let journal = start(journals);
    let written = append_requests(&*journal, 0..50);
    journal.wait_synced(100).await.unwrap();
    let mut folded = Vec::new();
    loop {
        let batch = plain(&journal.unfolded(7, 300).unwrap());
        assert_eq!(batch, plain(&journal.unfolded(7, 300).unwrap()), "the same until they are folded");
        let Some(last) = batch.last() else { break };
        assert!(batch.len() <= 7 && batch.iter().map(|entry| entry.2.len()).sum::<usize>() <= 300);
        // A fold may end within a batch.
        let up_to = batch[batch.len() / 2].0.min(last.0);
        folded.extend(batch.into_iter().filter(|entry| entry.0 <= up_to));
        journal.remove_folded(up_to);
    }
    assert_eq!(folded, written);
    assert_eq!((journal.status().unfolded_entries, journal.status().unfolded_bytes), (0, 0));
    assert_eq!(journal.status().last_sequence, 100);
}

pub(super) async fn unfolded_returns_at_least_one_entry(journals: &Journals) {
    let journal = start(journals);
    append_requests(&*journal, 30..31);
    journal.wait_synced(2).await.unwrap();
    assert_eq!(journal.unfolded(10, 1).unwrap().len(), 1, "a large entry is folded alone");
    assert_eq!(journal.unfolded(0, 1000).unwrap().len(), 0);
}

pub(super) async fn folded_entries_make_room(journals: &Journals) {
    let journal = journals.machine.start(process(1), JournalBounds { max_bytes: 4_000, ..JournalBounds::default() });
    for _ in 0..20 {
        let sent = journal.append_sent(EntryKind::Sent, &payload(5), 1500).expect("there is room");
        let end = journal.append_end(EntryKind::Charged, &[1; 1500], 1500).unwrap();
        assert_eq!(end, sent + 1);
        let full = journal.append_sent(EntryKind::Sent, &payload(5), 3000);
        assert!(matches!(full, Err(UsageJournalError::Full { .. })), "{full:?}");
        journal.wait_synced(end).await.unwrap();
        journal.remove_folded(end);
    }
}

pub(super) async fn remove_folded_with_an_older_number_changes_nothing(journals: &Journals) {
    let journal = start(journals);
    let written = append_requests(&*journal, 0..5);
    journal.wait_synced(10).await.unwrap();
    journal.remove_folded(6);
    let status = journal.status();
    for older in [6, 3, 0] {
        journal.remove_folded(older);
        assert_eq!(journal.status(), status, "{older}");
        assert_eq!(unfolded(&*journal), written[6..], "{older}");
    }
}

pub(super) async fn segments_with_open_or_unfolded_entries_stay(journals: &Journals) {
    let bounds = JournalBounds { max_payload_bytes: 600, ..JournalBounds::default() };
    let journal = journals.machine.start(process(1), bounds);
    for _ in 0..100 {
        journal.append_sent(EntryKind::Sent, &[5; 500], 500).unwrap();
        journal.append_end(EntryKind::Charged, &[6; 500], 500).unwrap();
    }
    journal.wait_synced(200).await.unwrap();
    assert_eq!(journal.remove_segments(u64::MAX).unwrap(), 0, "nothing is folded");
    journal.remove_folded(150);
    assert_eq!(journal.remove_segments(1).unwrap(), 0, "the first request is open");
    assert!(journal.remove_segments(120).unwrap() > 0, "the oldest segments are not needed");
    journal.append_end(EntryKind::Closed, &[], 0).unwrap();
    drop(journal);
    let orphan = orphan(journals).await;
    let found = read(&*orphan).await;
    let numbers: Vec<u64> = found.entries.iter().map(|entry| entry.sequence).collect();
    assert!(numbers[0] > 1 && numbers[0] <= 120, "from the segment of an open request on: {}", numbers[0]);
    assert!(numbers.iter().copied().eq(numbers[0]..=201), "none behind it is missing");
    assert_eq!(found.damage.gaps, [], "the reader of the numbers knows with which they begin");
    drop(orphan);
    assert_eq!(journals.machine.orphans(Duration::ZERO).find().await.unwrap().len(), 1);
}
