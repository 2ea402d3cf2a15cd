//! Tests of the list of records.

use futures_util::FutureExt as _;
use proptest::prelude::*;

use super::super::MAX_READ_RECORDS;
use super::*;
use crate::api_key::{InferenceKey, ManagementKey};
use crate::budget::{Ledger, UsageCharge};
use crate::error::ErrorKind;
use crate::json::Json;
use crate::routing::EndpointDirectory;
use crate::testing::contract::usage_record;
use crate::testing::{MemoryCatalogue, MemoryStore, SequentialIds};
use crate::usage::MockUsageRepository;

fn list(store: &MemoryStore) -> ListGenerations {
    of_usage(store, store.usage())
}

fn of_usage(store: &MemoryStore, usage: Arc<dyn UsageRepository>) -> ListGenerations {
    let names =
        GenerationNames::new(Arc::new(MemoryCatalogue::new(Vec::new())), Arc::new(EndpointDirectory::new(Vec::new())));
    let filters = UsageNames { keys: store.api_keys(), workspaces: store.workspaces() };
    ListGenerations::new(usage, store.limits(), filters, names)
}

fn management(number: u64) -> Principal {
    Principal::Management(ManagementKey::for_tests(SequentialIds::key(number)))
}

fn settle(store: &MemoryStore, number: u64) {
    let charge = UsageCharge::new(usage_record(number.into(), 7));
    store.ledger().settle(&charge).now_or_never().expect("the fake never waits").unwrap();
}

fn page(list: &ListGenerations, cursor: Option<&str>, limit: usize) -> GenerationPage {
    let caller = management(1);
    let page = list.page(&caller, UsageFilter::default(), cursor, limit);
    page.now_or_never().expect("the fake never waits").unwrap()
}

fn ids(generations: &[Generation]) -> Vec<String> {
    generations.iter().map(|generation| generation.record.id.to_string()).collect()
}

proptest! {
    /// A walk over pages returns every record that existed at its begin, once, in the order of one read.
    #[test]
    fn pages_neither_repeat_nor_skip_while_others_write(
        numbers in proptest::collection::btree_set(1_u64..60, 1..30),
        before in 0_usize..30,
        limit in 1_usize..7,
        added_per_page in 0_usize..4,
    ) {
        let numbers: Vec<u64> = numbers.into_iter().collect();
        // An arbitrary part exists at the begin; the others are charged later, in both directions of the order.
        let (existing, mut added): (Vec<u64>, Vec<u64>) = numbers.iter().partition(|number| (**number * 7 % 30) < before as u64);
        let store = MemoryStore::new();
        for number in &existing {
            settle(&store, *number);
        }
        let list = list(&store);
        let expected = ids(&page(&list, None, 1_000).generations);
        let (mut walked, mut cursor) = (Vec::new(), None);
        loop {
            let found = page(&list, cursor.as_deref(), limit);
            prop_assert!(found.generations.len() <= limit);
            walked.extend(ids(&found.generations));
            for number in added.drain(..added_per_page.min(added.len())) {
                settle(&store, number);
            }
            cursor = found.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        let mut once = walked.clone();
        once.sort();
        once.dedup();
        prop_assert_eq!(once.len(), walked.len(), "no record twice");
        let of_begin: Vec<String> = walked.into_iter().filter(|id| expected.contains(id)).collect();
        prop_assert_eq!(of_begin, expected);
    }
}

#[tokio::test]
async fn cursor_of_another_filter_or_caller_is_invalid() {
    let store = MemoryStore::new();
    (1..=3).for_each(|number| settle(&store, number));
    let list = list(&store);
    let cursor = page(&list, None, 1).next_cursor.unwrap();
    assert_eq!(page(&list, Some(&cursor), 2).next_cursor, None, "the last page");
    let user = UsageFilter { user: Some("u".to_owned()), ..UsageFilter::default() };
    let scope = CursorScope::new("generations", ["x"]);
    for (caller, filter, cursor) in [
        (management(2), UsageFilter::default(), cursor.clone()),
        (management(1), user, cursor),
        (management(1), UsageFilter::default(), scope.encode("1/gen-dec-1")),
        (management(1), UsageFilter::default(), "x".to_owned()),
    ] {
        let error = list.page(&caller, filter, Some(&cursor), 1).await.unwrap_err();
        assert!(matches!(error, ReadUsageError::Cursor(InvalidCursor)), "{error}");
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    }
}

/// The memory of a page is bounded, whatever callers put into their records.
#[tokio::test]
async fn page_of_large_records_ends_before_its_limit() {
    let store = MemoryStore::new();
    for number in 1..=70_u64 {
        let trace = Json::string(&"x".repeat(64 << 10));
        let charge = UsageCharge::new(UsageRecord { trace: Some(trace), ..usage_record(number.into(), 7) });
        store.ledger().settle(&charge).await.unwrap();
    }
    let list = list(&store);
    let (mut lengths, mut walked, mut cursor) = (Vec::new(), Vec::new(), None);
    loop {
        let found = page(&list, cursor.as_deref(), 1_000);
        lengths.push(found.generations.len());
        walked.extend(ids(&found.generations));
        cursor = found.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert!(lengths.iter().all(|length| *length <= 17), "{lengths:?}");
    walked.dedup();
    assert_eq!(walked.len(), 70);
}

#[tokio::test]
async fn page_that_would_read_too_many_records_is_rejected() {
    for (count, filter, is_read) in [
        (MAX_READ_RECORDS, UsageFilter { user: Some("u".to_owned()), ..UsageFilter::default() }, true),
        (MAX_READ_RECORDS + 1, UsageFilter { user: Some("u".to_owned()), ..UsageFilter::default() }, false),
        (MAX_READ_RECORDS + 1, UsageFilter::default(), true),
    ] {
        let mut usage = MockUsageRepository::new();
        usage.expect_count_read().returning(move |_, limit| Ok(count.min(limit)));
        usage.expect_list().returning(|_, _| Ok(Vec::new()));
        let store = MemoryStore::new();
        let found = of_usage(&store, Arc::new(usage)).page(&management(1), filter, None, 10).await;
        assert_eq!(found.is_ok(), is_read, "{count}");
        if let Err(error) = found {
            assert!(error.to_string().contains("shorter range"), "{error}");
        }
    }
}

#[tokio::test]
async fn narrow_checks_range_and_key() {
    let store = MemoryStore::new();
    let list = list(&store);
    let own = SequentialIds::key(9);
    let workspace = crate::ids::WorkspaceId::from_uuid(SequentialIds::uuid(1));
    let inference = Principal::Inference(InferenceKey::for_tests(own, workspace));
    let at = DateTime::from_timestamp_millis(5);
    let range = UsageFilter { since: at, until: at, ..UsageFilter::default() };
    let error = list.narrow(&inference, range, None, None).await.unwrap_err();
    assert!(matches!(error, ReadUsageError::EmptyRange), "{error}");
    let unknown = SequentialIds::key(3).to_string();
    for name in [unknown.as_str(), "nonsense"].map(ResourceName::new) {
        let error = list.narrow(&management(1), UsageFilter::default(), Some(&name), None).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::NotFound, "key not found"));
        let error = list.narrow(&inference, UsageFilter::default(), Some(&name), None).await.unwrap_err();
        assert!(matches!(error, ReadUsageError::OtherKey), "{error}");
    }
    let narrowed =
        list.narrow(&inference, UsageFilter::default(), None, Some(&ResourceName::from(&workspace))).await.unwrap();
    assert_eq!(narrowed, UsageFilter { api_key: Some(own), ..UsageFilter::default() });
}
