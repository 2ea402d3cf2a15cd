use super::*;
use crate::audit::{Actor, AuditDraft, MockAuditLog};
use crate::json::Json;
use chrono::DateTime;

fn chain(length: u64) -> Vec<AuditEntry> {
    let mut entries: Vec<AuditEntry> = Vec::new();
    for number in 1..=length {
        let previous = entries.last().map(|entry| (entry.seq, entry.hash));
        let at = DateTime::from_timestamp_millis(1_790_000_000_000 + i64::try_from(number).unwrap()).unwrap();
        let actor = Actor { name: format!("user:{number}"), source: (number % 2 == 0).then(|| "host".to_owned()) };
        let draft = AuditDraft::done(&actor, "key.create", format!("key {number}"), Json::object([]));
        entries.push(AuditEntry::following(previous, at, &draft));
    }
    entries
}

/// The log in which these rows are stored; `None` is a row that is no entry.
async fn verify(rows: Vec<Option<AuditEntry>>, anchor: Option<AuditAnchor>) -> AuditVerification {
    let mut log = MockAuditLog::new();
    log.expect_read().returning(move |from, limit| {
        let wanted = rows.iter().skip_while(|row| row.as_ref().is_some_and(|entry| entry.seq < from));
        let page: Option<Vec<AuditEntry>> = wanted.take(usize::try_from(limit).unwrap()).cloned().collect();
        page.ok_or_else(|| StoreError::Corrupt("audit_log.details".to_owned()))
    });
    VerifyAuditLog::new(Arc::new(log)).execute(anchor).await.unwrap()
}

async fn fault(entries: Vec<AuditEntry>) -> Option<AuditFault> {
    verify(entries.into_iter().map(Some).collect(), None).await.fault
}

fn anchor(entry: &AuditEntry) -> AuditAnchor {
    AuditAnchor { seq: entry.seq, hash: entry.hash }
}

#[tokio::test]
async fn a_log_that_nobody_touched_is_whole_over_many_pages() {
    let entries = chain(2 * PAGE + 1);
    let last = anchor(entries.last().unwrap());
    let found = verify(entries.into_iter().map(Some).collect(), Some(last)).await;
    let expected = AuditVerification { entries: 2 * PAGE + 1, oldest: Some(1), newest: Some(last), fault: None };
    assert_eq!(found, expected);
    assert_eq!(verify(Vec::new(), None).await, AuditVerification::default());
}

#[tokio::test]
async fn whatever_is_changed_in_an_entry_is_seen() {
    let changes: [fn(&mut AuditEntry); 7] = [
        |entry| entry.at += chrono::TimeDelta::milliseconds(1),
        |entry| entry.actor.name.push('x'),
        |entry| entry.actor.source = None,
        |entry| entry.action.push('x'),
        |entry| entry.subject.push('x'),
        |entry| entry.outcome = crate::audit::AuditOutcome::Refused,
        |entry| entry.details = Json::object([("a", "1")]),
    ];
    for change in changes {
        let mut entries = chain(5);
        change(&mut entries[3]);
        assert_eq!(fault(entries).await, Some(AuditFault::Changed(4)));
    }
}

#[tokio::test]
async fn an_entry_that_was_written_anew_does_not_fit_the_next() {
    let mut entries = chain(5);
    entries[2].subject.push('x');
    entries[2].hash = entries[2].computed_hash();
    assert_eq!(fault(entries).await, Some(AuditFault::BrokenLink(4)));
    let mut entries = chain(5);
    entries[0].previous_hash = AuditHash([1; 32]);
    entries[0].hash = entries[0].computed_hash();
    assert_eq!(fault(entries).await, Some(AuditFault::BrokenLink(1)), "the first follows nothing");
}

#[tokio::test]
async fn what_is_missing_in_between_is_seen() {
    let mut entries = chain(6);
    entries.drain(2..4);
    assert_eq!(fault(entries).await, Some(AuditFault::Gap { expected: 3, found: 5 }));
}

#[tokio::test]
async fn a_row_that_is_no_entry_is_found_behind_those_that_are() {
    let mut rows: Vec<Option<AuditEntry>> = chain(5).into_iter().map(Some).collect();
    rows[3] = None;
    let found = verify(rows, None).await;
    assert_eq!((found.entries, found.newest.map(|newest| newest.seq)), (3, Some(3)));
    assert_eq!(found.fault, Some(AuditFault::Unreadable("audit_log.details".to_owned())));
}

#[tokio::test]
async fn what_was_pruned_is_not_missed() {
    let found = verify(chain(9).into_iter().skip(4).map(Some).collect(), None).await;
    assert_eq!((found.entries, found.oldest, found.fault), (5, Some(5), None));
}

#[tokio::test]
async fn what_is_pruned_while_it_is_read_is_not_missed_either() {
    let entries = chain(2 * PAGE);
    let mut log = MockAuditLog::new();
    let pruned = std::sync::atomic::AtomicBool::new(false);
    log.expect_read().returning(move |from, limit| {
        // After the first page half of the rest goes.
        let oldest = if pruned.swap(true, std::sync::atomic::Ordering::Relaxed) { 1500 } else { 1 };
        let left = entries.iter().filter(|entry| entry.seq >= from.max(oldest));
        Ok(left.take(usize::try_from(limit).unwrap()).cloned().collect())
    });
    let found = VerifyAuditLog::new(Arc::new(log)).execute(None).await.unwrap();
    assert_eq!((found.entries, found.fault), (PAGE + 501, None));
}

#[tokio::test]
async fn a_log_that_was_cut_off_is_known_by_its_anchor_alone() {
    let entries = chain(6);
    let last = anchor(&entries[5]);
    let cut: Vec<Option<AuditEntry>> = entries.iter().take(4).cloned().map(Some).collect();
    assert_eq!(verify(cut.clone(), None).await.fault, None, "the log itself cannot show it");
    assert_eq!(verify(cut, Some(last)).await.fault, Some(AuditFault::NotAnchored(last)));
    // As is one that was written anew from somewhere on.
    let mut anew = chain(4);
    for number in 5..=6 {
        let draft = AuditDraft::done(&Actor::system(), "key.delete", format!("{number}"), Json::object([]));
        let previous = anew.last().map(|entry| (entry.seq, entry.hash));
        anew.push(AuditEntry::following(previous, entries[0].at, &draft));
    }
    let anew: Vec<Option<AuditEntry>> = anew.into_iter().map(Some).collect();
    assert_eq!(verify(anew, Some(last)).await.fault, Some(AuditFault::NotAnchored(last)));
}

#[tokio::test]
async fn a_store_that_fails_says_nothing_of_the_log() {
    let mut log = MockAuditLog::new();
    log.expect_read().returning(|_, _| Err(StoreError::unavailable("gone")));
    let ended = VerifyAuditLog::new(Arc::new(log)).execute(None).await;
    assert!(matches!(ended, Err(StoreError::Unavailable(_))), "{ended:?}");
}

#[test]
fn an_anchor_is_read_as_it_is_written() {
    let last = anchor(&chain(3)[2]);
    assert_eq!(last.to_string().parse(), Ok(last));
    for bad in ["", "3", "3:", "x:00", &format!("-1:{}", last.hash), &format!("3:{}0", last.hash)] {
        assert_eq!(bad.parse::<AuditAnchor>(), Err(InvalidAuditAnchor), "{bad}");
    }
}
