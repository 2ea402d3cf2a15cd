use super::*;
use crate::audit::{Actor, AuditDraft, AuditEntry, InvalidAuditAnchor, MockAuditLog, RowViolation};
use crate::json::Json;
use chrono::DateTime;
use rstest::rstest;

fn chain(length: u64) -> Vec<StoredAuditEntry> {
    let mut entries: Vec<AuditEntry> = Vec::new();
    for number in 1..=length {
        let previous = entries.last().map(|entry| (entry.seq, entry.hash));
        let at = DateTime::from_timestamp_millis(1_790_000_000_000 + i64::try_from(number).unwrap()).unwrap();
        let actor = Actor { name: format!("user:{number}"), source: (number % 2 == 0).then(|| "host".to_owned()) };
        let draft = AuditDraft::done(&actor, "key.create", format!("key {number}"), Json::object([]));
        entries.push(AuditEntry::following(previous, at, &draft, AuditHash([7; 32])));
    }
    entries.iter().map(StoredAuditEntry::from).collect()
}

fn anchor(entry: &StoredAuditEntry) -> AuditAnchor {
    anchor_of(entry).unwrap()
}

/// Recomputes the hash of a changed entry.
fn rehash(entry: &mut StoredAuditEntry) {
    entry.hash = entry.computed_hash().unwrap().0.to_vec();
}

/// A log with the record of its beginning and end.
struct Log {
    /// `None` is an unreadable row.
    rows: Vec<Option<StoredAuditEntry>>,
    state: Option<AuditState>,
    row_violations: Vec<RowViolation>,
}

impl Log {
    /// Returns a log as the service writes it.
    fn whole(entries: &[StoredAuditEntry]) -> Self {
        let newest = entries.last().map_or(AuditAnchor::NONE, anchor);
        let state = AuditState { newest, removed: AuditAnchor::NONE, removed_count: 0 };
        Self { rows: entries.iter().cloned().map(Some).collect(), state: Some(state), row_violations: Vec::new() }
    }

    fn with(self, entries: Vec<StoredAuditEntry>) -> Self {
        Self { rows: entries.into_iter().map(Some).collect(), ..self }
    }

    async fn verify(self, anchor: Option<AuditAnchor>) -> AuditVerification {
        let Self { rows, state, row_violations } = self;
        let mut log = MockAuditLog::new();
        log.expect_state().returning(move || Ok(state));
        log.expect_check_rows().returning(move |_| Ok(row_violations.clone()));
        log.expect_read_stored().returning(move |after, limit| {
            let behind = |row: &&Option<StoredAuditEntry>| row.as_ref().is_some_and(|entry| Some(entry.seq) <= after);
            let page: Option<Vec<StoredAuditEntry>> =
                rows.iter().skip_while(behind).take(usize::try_from(limit).unwrap()).cloned().collect();
            page.ok_or_else(|| StoreError::Corrupt("audit_log.details".to_owned()))
        });
        VerifyAuditLog::new(Arc::new(log)).execute(anchor).await.unwrap()
    }
}

/// Returns the violation of a log of five entries after a change.
async fn violation_after(change: impl FnOnce(&mut Vec<StoredAuditEntry>)) -> Option<AuditViolation> {
    let mut entries = chain(5);
    let log = Log::whole(&entries);
    change(&mut entries);
    log.with(entries).verify(None).await.violation
}

#[tokio::test]
async fn verify_accepts_intact_log_of_many_pages() {
    let entries = chain(2 * PAGE_ENTRIES + 1);
    let last = anchor(entries.last().unwrap());
    let found = Log::whole(&entries).verify(Some(last)).await;
    let expected = AuditVerification {
        entries: 2 * PAGE_ENTRIES + 1,
        oldest: Some(1),
        newest: Some(last),
        ..AuditVerification::default()
    };
    assert_eq!(found, expected);
    assert!(found.is_verified());
    assert_eq!(Log::whole(&[]).verify(None).await, AuditVerification::default());
}

#[rstest]
#[case::at(|entry: &mut StoredAuditEntry| entry.at += 1)]
#[case::actor(|entry: &mut StoredAuditEntry| entry.actor.push('x'))]
#[case::source_removed(|entry: &mut StoredAuditEntry| entry.source = None)]
#[case::source_emptied(|entry: &mut StoredAuditEntry| entry.source = Some(String::new()))]
#[case::action(|entry: &mut StoredAuditEntry| entry.action.push('x'))]
#[case::subject(|entry: &mut StoredAuditEntry| entry.subject.push('x'))]
#[case::outcome(|entry: &mut StoredAuditEntry| entry.outcome.push('x'))]
#[case::details(|entry: &mut StoredAuditEntry| entry.details = "{\"a\":1}".to_owned())]
#[case::blank_behind_details(|entry: &mut StoredAuditEntry| entry.details.push(' '))]
#[case::state(|entry: &mut StoredAuditEntry| entry.state = Some(vec![8; 32]))]
#[case::version(|entry: &mut StoredAuditEntry| entry.version = 2)]
#[case::hash(|entry: &mut StoredAuditEntry| entry.hash = vec![0; 31])]
#[tokio::test]
async fn verify_finds_every_changed_column(#[case] change: fn(&mut StoredAuditEntry)) {
    assert_eq!(violation_after(|entries| change(&mut entries[3])).await, Some(AuditViolation::Changed(4)));
}

#[tokio::test]
async fn verify_finds_empty_source_changed_to_none() {
    let mut entries = chain(1);
    entries[0].source = Some(String::new());
    rehash(&mut entries[0]);
    let log = Log::whole(&entries);
    entries[0].source = None;
    assert_eq!(log.with(entries).verify(None).await.violation, Some(AuditViolation::Changed(1)));
}

#[tokio::test]
async fn verify_finds_broken_link_after_rewritten_entry() {
    let rewritten = violation_after(|entries| {
        entries[2].subject.push('x');
        rehash(&mut entries[2]);
    });
    assert_eq!(rewritten.await, Some(AuditViolation::BrokenLink(4)));
    let first = violation_after(|entries| {
        entries[0].previous_hash = vec![1; 32];
        rehash(&mut entries[0]);
    });
    assert_eq!(first.await, Some(AuditViolation::BrokenLink(1)), "the first follows nothing");
    let last = violation_after(|entries| {
        entries[4].subject.push('x');
        rehash(&mut entries[4]);
    });
    assert_eq!(last.await, Some(AuditViolation::NewestExchanged(5)));
}

#[tokio::test]
async fn verify_finds_missing_entries_at_any_position() {
    assert_eq!(
        violation_after(|entries| drop(entries.drain(1..3))).await,
        Some(AuditViolation::Gap { expected: 2, found: 4 })
    );
    assert_eq!(
        violation_after(|entries| drop(entries.drain(..2))).await,
        Some(AuditViolation::BeginningMissing { expected: 1, found: 3 })
    );
    let newest = anchor(&chain(5)[4]);
    assert_eq!(
        violation_after(|entries| entries.truncate(3)).await,
        Some(AuditViolation::EndMissing { newest, found: 3 })
    );
    assert_eq!(violation_after(Vec::clear).await, Some(AuditViolation::Emptied(newest)));
}

#[tokio::test]
async fn verify_finds_impossible_numbers() {
    for number in [-1, 0, i64::MIN] {
        let violation = violation_after(|entries| {
            let mut extra = entries[0].clone();
            extra.seq = number;
            rehash(&mut extra);
            entries.insert(0, extra);
        });
        assert_eq!(violation.await, Some(AuditViolation::ImpossibleNumber(number)));
    }
}

#[tokio::test]
async fn verify_finds_unreadable_row_after_valid_rows() {
    let mut log = Log::whole(&chain(5));
    log.rows[3] = None;
    let found = log.verify(None).await;
    assert_eq!((found.entries, found.newest.map(|newest| newest.seq)), (3, Some(3)));
    assert_eq!(found.violation, Some(AuditViolation::Unreadable("audit_log.details".to_owned())));
}

/// Returns the rest of nine entries of which retention removed four.
fn pruned() -> (Log, Vec<StoredAuditEntry>) {
    let entries = chain(9);
    let state = AuditState { newest: anchor(&entries[8]), removed: anchor(&entries[3]), removed_count: 4 };
    (Log { state: Some(state), ..Log::whole(&[]) }, entries)
}

#[tokio::test]
async fn verify_accepts_entries_removed_by_retention() {
    let (log, entries) = pruned();
    let found = log.with(entries[4..].to_vec()).verify(None).await;
    assert_eq!((found.entries, found.oldest, found.removed, found.violation), (5, Some(5), 4, None));
}

#[tokio::test]
async fn verify_distinguishes_cut_beginning_from_retention() {
    let (log, entries) = pruned();
    let found = log.with(entries[5..].to_vec()).verify(None).await;
    assert_eq!(found.violation, Some(AuditViolation::BeginningMissing { expected: 5, found: 6 }));

    let (mut log, entries) = pruned();
    log.state.as_mut().unwrap().removed.hash = AuditHash([9; 32]);
    let found = log.with(entries[4..].to_vec()).verify(None).await;
    assert_eq!(found.violation, Some(AuditViolation::BrokenLink(5)));

    let (mut log, entries) = pruned();
    log.state.as_mut().unwrap().removed_count = 3;
    let found = log.with(entries[4..].to_vec()).verify(None).await;
    assert_eq!(found.violation, Some(AuditViolation::RemovedByOthers { through: 4, count: 3 }));

    let (mut log, entries) = pruned();
    log.state = None;
    assert_eq!(log.with(entries[4..].to_vec()).verify(None).await.violation, Some(AuditViolation::StateMissing));
}

#[tokio::test]
async fn verify_accepts_entries_pruned_and_added_while_reading() {
    let entries = chain(2 * PAGE_ENTRIES + 3);
    let before = AuditState {
        newest: anchor(&entries[usize::try_from(2 * PAGE_ENTRIES).unwrap()]),
        removed: AuditAnchor::NONE,
        removed_count: 0,
    };
    let after = AuditState { removed: anchor(&entries[1498]), removed_count: 1499, ..before };
    let pruned = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_pruned = Arc::clone(&pruned);
    let mut log = MockAuditLog::new();
    log.expect_state()
        .returning(move || Ok(Some(if is_pruned.load(std::sync::atomic::Ordering::Relaxed) { after } else { before })));
    log.expect_check_rows().returning(|_| Ok(Vec::new()));
    log.expect_read_stored().returning(move |from, limit| {
        // After the first page, half of the rest is pruned.
        let oldest = if pruned.swap(true, std::sync::atomic::Ordering::Relaxed) { 1500 } else { 1 };
        let left = entries.iter().filter(|entry| Some(entry.seq) > from && entry.seq >= oldest);
        Ok(left.take(usize::try_from(limit).unwrap()).cloned().collect())
    });
    let found = VerifyAuditLog::new(Arc::new(log)).execute(None).await.unwrap();
    assert_eq!((found.entries, found.violation), (PAGE_ENTRIES + 504, None));
}

#[tokio::test]
async fn verify_detects_rewritten_log_by_anchor_only() {
    let entries = chain(6);
    let last = anchor(&entries[5]);
    // The attacker rewrites the record of the end as well.
    let cut = Log::whole(&entries[..4]);
    assert_eq!(cut.verify(None).await.violation, None, "the database itself cannot show it");
    assert_eq!(Log::whole(&entries[..4]).verify(Some(last)).await.violation, Some(AuditViolation::NotAnchored(last)));
    let mut anew = chain(6);
    anew[4].subject.push('x');
    rehash(&mut anew[4]);
    let hash = anew[4].hash.clone();
    anew[5].previous_hash = hash;
    rehash(&mut anew[5]);
    assert_eq!(Log::whole(&anew).verify(Some(last)).await.violation, Some(AuditViolation::NotAnchored(last)));
}

#[tokio::test]
async fn verify_reports_rows_without_entry() {
    let violation = RowViolation { table: "api_keys", row: "ab".to_owned(), problem: "changed without an entry" };
    let log = Log { row_violations: vec![violation.clone()], ..Log::whole(&chain(3)) };
    let found = log.verify(None).await;
    assert_eq!((found.entries, &found.violation, &found.row_violations), (3, &None, &vec![violation]));
    assert!(!found.is_verified());
}

#[tokio::test]
async fn verify_returns_error_when_store_fails() {
    let mut log = MockAuditLog::new();
    log.expect_state().returning(|| Err(StoreError::unavailable("gone")));
    let ended = VerifyAuditLog::new(Arc::new(log)).execute(None).await;
    assert!(matches!(ended, Err(StoreError::Unavailable(_))), "{ended:?}");
}

#[test]
fn anchor_parses_its_display_form() {
    let last = anchor(&chain(3)[2]);
    assert_eq!(last.to_string().parse(), Ok(last));
    for bad in ["", "3", "3:", "x:00", &format!("-1:{}", last.hash), &format!("3:{}0", last.hash)] {
        assert_eq!(bad.parse::<AuditAnchor>(), Err(InvalidAuditAnchor), "{bad}");
    }
}
