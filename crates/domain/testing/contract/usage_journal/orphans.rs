//! Journals of dead processes.

use std::time::Duration;

use super::Journals;
use super::setup::{append_requests, find, orphan, payload, plain, process, read, start, start_unsynced};
use crate::budget::{EntryKind, UsageJournalError};
use crate::testing::JournalBounds;

pub(super) async fn orphan_holds_every_appended_entry(journals: &Journals) {
    let journal = start_unsynced(journals);
    let mut written = append_requests(&*journal, 0..100);
    for kind in [EntryKind::Sent, EntryKind::Increased] {
        written.push((journal.append_sent(kind, b"x", 9).unwrap(), kind as u8, b"x".to_vec()));
    }
    for kind in [EntryKind::Released, EntryKind::Charged, EntryKind::Closed] {
        written.push((journal.append_end(kind, b"", 0).unwrap(), kind as u8, Vec::new()));
    }
    drop(journal);
    let orphan = orphan(journals).await;
    let found = read(&*orphan).await;
    assert_eq!(plain(&found.entries), written, "although nothing was synced");
    assert_eq!((&found.damage.gaps[..], found.damage.is_of_another_boot), (&[][..], false));
    orphan.quarantine().await.expect("there is nothing to quarantine");
    orphan.finish().await.unwrap();
    assert_eq!(read(&*orphan).await, found, "after its space was given back, too");
    orphan.finish().await.expect("a second time changes nothing");
    assert_eq!(read(&*orphan).await, found);
}

pub(super) async fn orphan_keeps_zeros_at_the_end_of_its_last_entry(journals: &Journals) {
    // More zeros than a block of a file system has, and a few that follow other bytes at the end of a block.
    let lengths = [(1, 5000)].into_iter().chain((3990..4010).map(|length| (length, 10)));
    for (number, (length, zeros)) in (1..).zip(lengths) {
        let journal = journals.machine.start(process(number), JournalBounds::default());
        let payload = [vec![7; length], vec![0; zeros]].concat();
        journal.append_end(EntryKind::Charged, &payload, 0).unwrap();
        drop(journal);
        let found = find(journals).await;
        let orphan = found.iter().find(|orphan| orphan.process() == process(number)).unwrap();
        let written = [(1, EntryKind::Charged as u8, payload)];
        assert_eq!(plain(&read(&**orphan).await.entries), written, "{length} bytes before the zeros");
        orphan.finish().await.unwrap();
        assert_eq!(plain(&read(&**orphan).await.entries), written, "{length} bytes, after its space was given back");
    }
}

pub(super) async fn journal_is_found_after_its_process(journals: &Journals) {
    assert!(find(journals).await.is_empty());
    let orphans = journals.machine.orphans(Duration::from_hours(1));
    assert!(!orphans.contains(process(1)).await.unwrap());
    let journal = start(journals);
    append_requests(&*journal, 0..1);
    let other = std::sync::Arc::clone(&journal);
    drop(journal);
    assert!(find(journals).await.is_empty(), "the process lives");
    assert!(orphans.contains(process(1)).await.unwrap() && !orphans.contains(process(2)).await.unwrap());
    drop(other);
    let orphan = orphan(journals).await;
    assert_eq!(orphan.process(), process(1));
    assert!(orphans.contains(process(1)).await.unwrap(), "a dead one's journal, too");
    assert_eq!(read(&*orphan).await.entries.len(), 2);
}

pub(super) async fn journal_is_recovered_by_one_finder_at_a_time(journals: &Journals) {
    drop(start(journals));
    let first = orphan(journals).await;
    assert!(find(journals).await.is_empty(), "another recovery has it");
    assert_eq!(read(&*first).await.entries, [], "a journal may be empty");
    drop(first);
    assert_eq!(find(journals).await.len(), 1, "a recovery that failed is repeated");
}

pub(super) async fn journals_of_several_processes_are_kept_apart(journals: &Journals) {
    let living = journals.machine.start(process(9), JournalBounds::default());
    let mut written = Vec::new();
    for number in [3, 1, 2_u8] {
        let journal = journals.machine.start(process(number.into()), JournalBounds::default());
        append_requests(&*living, 0..1);
        written.push((process(number.into()), append_requests(&*journal, 0..usize::from(number))));
    }
    let mut found = Vec::new();
    for orphan in find(journals).await {
        found.push((orphan.process(), plain(&read(&*orphan).await.entries)));
    }
    found.sort_unstable();
    written.sort_unstable();
    assert_eq!(found, written);
    assert_eq!(living.status().last_sequence, 6);
}

pub(super) async fn folded_entries_are_read_back_while_they_are_kept(journals: &Journals) {
    let journal = start(journals);
    let written = append_requests(&*journal, 0..5);
    journal.wait_synced(10).await.unwrap();
    journal.remove_folded(10);
    drop(journal);
    // A store that is restored from a backup lacks later folds.
    assert_eq!(plain(&read(&*orphan(journals).await).await.entries), written);
}

pub(super) async fn recovered_journal_is_removed_once_it_is_old(journals: &Journals) {
    append_requests(&*start(journals), 0..3);
    let orphan = orphan(journals).await;
    orphan.finish().await.unwrap();
    assert!(!orphan.remove_if_old().await.unwrap(), "it was written a moment ago");
    assert_eq!(read(&*orphan).await.entries.len(), 6);
    drop(orphan);
    for orphan in journals.machine.orphans(Duration::ZERO).find().await.unwrap() {
        assert!(orphan.remove_if_old().await.unwrap());
    }
    assert!(find(journals).await.is_empty());
}

pub(super) async fn damaged_entry_is_a_named_gap(journals: &Journals) {
    let journal = start(journals);
    let mut written = append_requests(&*journal, 0..5);
    drop(journal);
    journals.machine.damage(process(1), 4);
    let orphan = orphan(journals).await;
    let found = read(&*orphan).await;
    written.remove(3);
    assert_eq!(plain(&found.entries), written, "what lies behind the damage is read");
    let [gap] = &found.damage.gaps[..] else { panic!("{:?}", found.damage.gaps) };
    assert_eq!((gap.first, gap.end), (4, 5));
    assert!(!gap.reason.is_empty());
    orphan.quarantine().await.unwrap();
    orphan.quarantine().await.expect("a second time changes nothing");
    assert_eq!(read(&*orphan).await, found);
}

pub(super) async fn power_loss_takes_unsynced_entries_alone(journals: &Journals) {
    let journal = start_unsynced(journals);
    let written = append_requests(&*journal, 0..20);
    journals.machine.sync(process(1));
    append_requests(&*journal, 20..40);
    drop(journal);
    journals.machine.lose_power();
    let found = read(&*orphan(journals).await).await;
    assert_eq!(plain(&found.entries), written);
    assert!(found.damage.is_of_another_boot, "entries may be missing at the end");
    assert_eq!(found.damage.gaps, []);
}

pub(super) async fn sealed_journal_is_found_while_its_process_lives_and_takes_no_entries(journals: &Journals) {
    let journal = start(journals);
    let written = append_requests(&*journal, 0..3);
    assert_eq!(journal.seal().await, [], "every entry is on the disk");
    let sent = journal.append_sent(EntryKind::Sent, &payload(9), 100);
    assert!(matches!(sent, Err(UsageJournalError::Sealed)), "{sent:?}");
    let ended = journal.append_end(EntryKind::Charged, &payload(9), 0);
    assert!(matches!(ended, Err(UsageJournalError::Sealed)), "{ended:?}");
    let orphan = orphan(journals).await;
    assert_eq!(plain(&read(&*orphan).await.entries), written);
    assert_eq!(journal.seal().await, [], "a second time changes nothing");
    drop(journal);
    assert_eq!(plain(&read(&*orphan).await.entries), written);
}

pub(super) async fn seal_returns_entries_that_the_disk_refused(journals: &Journals) {
    let journal = start(journals);
    let written = append_requests(&*journal, 0..2);
    journal.wait_synced(4).await.unwrap();
    journals.machine.set_disk_failing(true);
    let retained = journal.append_end(EntryKind::Charged, &payload(7), 0);
    assert!(matches!(retained, Err(UsageJournalError::Retained { sequence: 5, .. })), "{retained:?}");
    let unsaved = journal.seal().await;
    assert_eq!(plain(&unsaved), [(5, EntryKind::Charged as u8, payload(7))]);
    journals.machine.set_disk_failing(false);
    assert_eq!(plain(&read(&*orphan(journals).await).await.entries), written);
}
