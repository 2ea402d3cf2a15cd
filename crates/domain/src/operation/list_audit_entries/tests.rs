use chrono::TimeDelta;

use super::*;
use crate::audit::{Actor, AuditDraft, MockAuditLog};
use crate::json::Json;
use crate::system::Clock as _;
use crate::testing::MemoryStore;

async fn append(log: &dyn AuditLog, actor: &str, action: &'static str, subject: &str) -> AuditEntry {
    let actor = Actor { name: actor.to_owned(), source: None };
    log.append(&AuditDraft::done(&actor, action, subject, Json::object([]))).await.unwrap()
}

/// Returns all pages: the numbers of their entries.
async fn walk(list: &ListAuditEntries, filter: &AuditFilter, limit: usize) -> Vec<Vec<u64>> {
    let (mut pages, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let page = list.page(&Authority::system(), filter, cursor.as_deref(), limit).await.unwrap();
        pages.push(page.entries.iter().map(|entry| entry.seq).collect());
        cursor = page.next_cursor;
        if cursor.is_none() {
            return pages;
        }
    }
}

#[tokio::test]
async fn page_finds_selected_entries_of_any_read() {
    let log = MemoryStore::new().audit_log();
    let list = ListAuditEntries::new(log.clone());
    assert_eq!(walk(&list, &AuditFilter::default(), 9).await, [Vec::<u64>::new()]);
    for number in 1..=2_100 {
        let action = if number % 1_000 == 1 { "rare.event" } else { "usual.event" };
        append(&*log, "system", action, "subject").await;
    }
    let of = |action: &str| AuditFilter { action: Some(action.to_owned()), ..AuditFilter::default() };
    assert_eq!(walk(&list, &of("rare"), 9).await, [vec![2_001, 1_001, 1]]);
    assert_eq!(walk(&list, &of("rare"), 3).await, [vec![2_001, 1_001, 1]]);
    assert_eq!(walk(&list, &of("rare"), 2).await, [vec![2_001, 1_001], vec![1]]);
    assert_eq!(walk(&list, &of("missing"), 9).await, [Vec::<u64>::new()]);
    let all = walk(&list, &AuditFilter::default(), 1_000).await;
    assert_eq!(all.concat(), (1..=2_100).rev().collect::<Vec<_>>());
    assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [1_000, 1_000, 100]);
}

#[tokio::test]
async fn filter_combines_contained_texts_and_times() {
    let store = MemoryStore::new();
    let log = store.audit_log();
    let first = append(&*log, "user:ann", "key.create", "key 1").await;
    append(&*log, "user:ann", "key.delete", "key 2").await;
    append(&*log, "user:bob", "key.create", "key 12").await;
    let list = ListAuditEntries::new(log);
    let text = |text: &str| Some(text.to_owned());
    let at = first.at;
    for (filter, expected) in [
        (AuditFilter { actor: text("ann"), ..AuditFilter::default() }, vec![2, 1]),
        (AuditFilter { actor: text("ann"), action: text("create"), ..AuditFilter::default() }, vec![1]),
        (AuditFilter { subject: text("1"), ..AuditFilter::default() }, vec![3, 1]),
        (AuditFilter { subject: text("%"), ..AuditFilter::default() }, vec![]),
        (AuditFilter { actor: text("ANN"), ..AuditFilter::default() }, vec![]),
        (AuditFilter { since: Some(at), ..AuditFilter::default() }, vec![3, 2, 1]),
        (AuditFilter { since: Some(at + TimeDelta::milliseconds(1)), ..AuditFilter::default() }, vec![]),
        (AuditFilter { until: Some(at), ..AuditFilter::default() }, vec![]),
        (AuditFilter { until: Some(at + TimeDelta::milliseconds(1)), ..AuditFilter::default() }, vec![3, 2, 1]),
    ] {
        assert_eq!(walk(&list, &filter, 9).await, [expected], "{filter:?}");
    }
    let empty = AuditFilter { since: Some(at), until: Some(at), ..AuditFilter::default() };
    let error = list.page(&Authority::system(), &empty, None, 9).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::InvalidRequest, "until must be later than since")
    );
}

#[tokio::test]
async fn pages_neither_repeat_nor_skip_while_entries_are_added_and_removed() {
    let store = MemoryStore::new();
    let log = store.audit_log();
    let list = ListAuditEntries::new(log.clone());
    for _ in 0..5 {
        append(&*log, "system", "a", "s").await;
    }
    let by = Authority::system();
    let all = AuditFilter::default();
    let first = list.page(&by, &all, None, 2).await.unwrap();
    append(&*log, "system", "a", "s").await;
    // Retention removes the two oldest.
    log.prune(crate::testing::FixedClock::default().now() + TimeDelta::days(1), 2).await.unwrap();
    let second = list.page(&by, &all, first.next_cursor.as_deref(), 2).await.unwrap();
    let seqs = |page: &AuditPage| page.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>();
    assert_eq!((seqs(&first), seqs(&second)), (vec![5, 4], vec![3]));
    assert_eq!(second.next_cursor, None);
}

#[tokio::test]
async fn cursor_of_another_filter_or_caller_is_rejected() {
    let log = MemoryStore::new().audit_log();
    for _ in 0..3 {
        append(&*log, "system", "a", "s").await;
    }
    let list = ListAuditEntries::new(log);
    let (by, filter) = (Authority::system(), AuditFilter::default());
    let cursor = list.page(&by, &filter, None, 1).await.unwrap().next_cursor.unwrap();
    let other = AuditFilter { actor: Some(String::new()), ..AuditFilter::default() };
    let ann = Authority::operator(Actor { name: "user:ann".to_owned(), source: None });
    let scope = CursorScope::new("audit", ["system", &format!("{filter:?}")]);
    for (by, filter, cursor) in [
        (&by, &other, cursor.as_str()),
        (&ann, &filter, cursor.as_str()),
        (&by, &filter, "x"),
        (&by, &filter, &scope.encode("-1")),
        (&by, &filter, &scope.encode("")),
    ] {
        let error = list.page(by, filter, Some(cursor), 1).await.unwrap_err();
        assert!(matches!(error, ListAuditEntriesError::Cursor(_)), "{cursor}: {error}");
    }
}

#[tokio::test]
async fn page_stops_after_100_000_entries_with_a_cursor() {
    let mut log = MockAuditLog::new();
    let template = append(&*MemoryStore::new().audit_log(), "system", "a", "s").await;
    log.expect_read_before().times(400..410).returning(move |before, limit| {
        let newest = before.min(150_001);
        Ok((1..newest)
            .rev()
            .take(usize::try_from(limit).unwrap())
            .map(|seq| AuditEntry { seq, ..template.clone() })
            .collect())
    });
    let list = ListAuditEntries::new(Arc::new(log));
    let filter = AuditFilter { action: Some("missing".to_owned()), ..AuditFilter::default() };
    let page = list.page(&Authority::system(), &filter, None, 9).await.unwrap();
    let scope = CursorScope::new("audit", ["system", &format!("{filter:?}")]);
    let position: u64 = scope.decode(&page.next_cursor.unwrap()).unwrap().parse().unwrap();
    assert_eq!(page.entries.len(), 0);
    assert!((49_751..=50_001).contains(&position), "{position}");
}

/// The memory of a page is bounded: an entry may have the rules of a guardrail twice.
#[tokio::test]
async fn page_of_large_entries_ends_before_its_limit() {
    let mut log = MockAuditLog::new();
    let template = append(&*MemoryStore::new().audit_log(), "system", "a", "s").await;
    let details = Json::string(&"x".repeat(200 << 10));
    log.expect_read_before().returning(move |before, limit| {
        let entry = |seq| AuditEntry { seq, details: details.clone(), ..template.clone() };
        Ok((1..before.min(41)).rev().take(usize::try_from(limit).unwrap()).map(entry).collect())
    });
    let list = ListAuditEntries::new(Arc::new(log));
    let pages = walk(&list, &AuditFilter::default(), 1_000).await;
    assert!(pages.iter().all(|page| page.len() <= 16), "{pages:?}");
    assert_eq!(pages.concat(), (1..=40).rev().collect::<Vec<_>>());
}
