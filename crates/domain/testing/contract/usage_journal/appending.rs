//! Order, bounds and durability of entries.

use super::Journals;
use super::setup::{append_requests, orphan, payload, plain, process, read, start, start_unsynced, unfolded};
use crate::budget::{EntryKind, UsageJournalError, UsageJournalStatus};
use crate::testing::{JournalBounds, join_all};

pub(super) async fn entries_are_numbered_from_one(journals: &Journals) {
    let journal = start(journals);
    assert_eq!((journal.process(), journal.status().last_sequence), (process(1), 0));
    let written = append_requests(&*journal, 0..60);
    let closed = journal.append_end(EntryKind::Closed, &[], 0).unwrap();
    assert_eq!(closed, 121, "an entry may be empty");
    assert!(written.iter().map(|entry| entry.0).eq(1..=120));
    let status = journal.status();
    assert_eq!((status.last_sequence, status.unfolded_entries, status.is_writable), (121, 121, true));
    assert_eq!(status.unfolded_bytes, written.iter().map(|entry| entry.2.len() as u64).sum::<u64>());
    journal.wait_synced(closed).await.unwrap();
    let expected = [written, vec![(closed, EntryKind::Closed as u8, Vec::new())]].concat();
    assert_eq!(unfolded(&*journal), expected);
}

pub(super) async fn concurrent_appends_have_distinct_numbers_in_the_order_of_their_callers(journals: &Journals) {
    let journal = start(journals);
    let appended = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|worker: usize| {
                let journal = &journal;
                scope.spawn(move || append_requests(&**journal, worker * 1000..worker * 1000 + 100))
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    for written in &appended {
        assert!(written.is_sorted_by_key(|entry| entry.0), "one after the other");
    }
    let mut all = appended.concat();
    all.sort_unstable();
    assert!(all.iter().map(|entry| entry.0).eq(1..=800), "each number once");
    // Several callers may wait at the same time.
    let synced = join_all([800, 1, 400].map(|sequence| journal.wait_synced(sequence))).await;
    assert!(synced.into_iter().all(|synced| synced.is_ok()));
    assert_eq!(unfolded(&*journal), all);
    drop(journal);
    assert_eq!(plain(&read(&*orphan(journals).await).await.entries), all);
}

pub(super) async fn append_is_rejected_above_the_payload_bound(journals: &Journals) {
    let bounds = JournalBounds { max_payload_bytes: 600, ..JournalBounds::default() };
    let journal = journals.machine.start(process(1), bounds);
    let before = journal.status();
    let is_too_large = |result: Result<u64, UsageJournalError>| {
        matches!(result, Err(UsageJournalError::TooLarge { bytes: 601, max_bytes: 600 }))
    };
    assert!(is_too_large(journal.append_sent(EntryKind::Sent, &[1; 601], 0)));
    assert!(is_too_large(journal.append_sent(EntryKind::Sent, &[1], 601)), "its end would not fit");
    assert!(is_too_large(journal.append_end(EntryKind::Charged, &[1; 601], 0)));
    assert_eq!(journal.status(), before, "nothing was taken in");
    assert_eq!(journal.append_sent(EntryKind::Sent, &[1; 600], 600).unwrap(), 1);
    assert_eq!(journal.append_end(EntryKind::Charged, &[1; 600], 600).unwrap(), 2);
}

pub(super) async fn append_sent_is_rejected_when_the_journal_is_full(journals: &Journals) {
    let journal = journals.machine.start(process(1), JournalBounds { max_bytes: 10_000, ..JournalBounds::default() });
    let mut taken = 0;
    let before = loop {
        let before = journal.status();
        match journal.append_sent(EntryKind::Sent, &payload(7), 1500) {
            Ok(_) => taken += 1,
            Err(UsageJournalError::Full { unfolded_bytes, max_bytes: 10_000 }) => {
                assert!(unfolded_bytes > 10_000, "{unfolded_bytes}");
                break before;
            }
            Err(error) => panic!("{error:?}"),
        }
        assert!(taken <= 6, "more was taken in than there is room for");
    };
    assert!(taken >= 5, "{taken} were taken in");
    assert_eq!(journal.status(), before, "nothing was taken in");
    for _ in 0..taken {
        journal.append_end(EntryKind::Charged, &[7; 1500], 1500).expect("its room was kept");
    }
    assert!(journal.append_sent(EntryKind::Sent, &payload(7), 3000).is_err(), "charges take the room");
}

pub(super) async fn increase_keeps_the_reservation_of_its_request(journals: &Journals) {
    let journal = journals.machine.start(process(1), JournalBounds { max_bytes: 4_000, ..JournalBounds::default() });
    journal.append_sent(EntryKind::Sent, &[1; 100], 2000).unwrap();
    for _ in 0..3 {
        journal.append_sent(EntryKind::Increased, &[2; 100], 0).unwrap();
    }
    assert!(journal.append_sent(EntryKind::Sent, &[1; 100], 2000).is_err(), "the room of the first is kept");
    journal.append_end(EntryKind::Released, &[3; 10], 2000).unwrap();
    journal.append_sent(EntryKind::Sent, &[1; 100], 2000).expect("the room of the first is free");
}

pub(super) async fn entries_that_the_disk_refused_are_written_later_and_in_order(journals: &Journals) {
    let journal = start(journals);
    let mut written = append_requests(&*journal, 0..3);
    written.push((journal.append_sent(EntryKind::Sent, b"open", 1000).unwrap(), 1, b"open".to_vec()));
    journals.machine.set_disk_failing(true);
    let retained = journal.append_end(EntryKind::Charged, b"charge", 1000);
    assert!(matches!(retained, Err(UsageJournalError::Retained { sequence: 8, .. })), "{retained:?}");
    written.push((8, EntryKind::Charged as u8, b"charge".to_vec()));
    let UsageJournalStatus { last_sequence, is_writable, .. } = journal.status();
    assert_eq!((last_sequence, is_writable), (8, false));
    let rejected = journal.append_sent(EntryKind::Sent, b"new", 10);
    assert!(matches!(rejected, Err(UsageJournalError::Unavailable(_))), "{rejected:?}");
    assert_eq!(journal.status().last_sequence, 8, "nothing was taken in");
    assert!(unfolded(&*journal).len() < 8, "what is not on the disk is not folded");
    journals.machine.set_disk_failing(false);
    let after = append_requests(&*journal, 10..12);
    assert_eq!(after[0].0, 9);
    written.extend(after);
    assert!(journal.status().is_writable);
    journal.wait_synced(12).await.unwrap();
    assert_eq!(unfolded(&*journal), written);
    drop(journal);
    let found = read(&*orphan(journals).await).await;
    assert_eq!((plain(&found.entries), found.damage.gaps), (written, Vec::new()));
}

pub(super) async fn wait_synced_resolves_after_the_sync(journals: &Journals) {
    let journal = start_unsynced(journals);
    append_requests(&*journal, 0..1);
    assert_eq!(journal.status().synced_sequence, 0);
    journal.wait_durable(2).await.expect("the death of the process does not lose it");
    journals.machine.sync(process(1));
    journal.wait_synced(2).await.unwrap();
    assert_eq!(journal.status().synced_sequence, 2);
    append_requests(&*journal, 1..2);
    assert_eq!(journal.status().synced_sequence, 2, "what came behind the sync is not synced");
}
