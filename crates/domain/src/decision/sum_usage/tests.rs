//! Tests of sums.

use super::*;
use crate::budget::{Ledger, UsageCharge};
use crate::error::ErrorKind;
use crate::ids::DecisionId;
use crate::money::Usd;
use crate::testing::contract::usage_record;
use crate::testing::{FixedClock, MemoryStore, SequentialIds};
use crate::usage::{MockUsageRepository, UsageOutcome, UsageRecord};

const ALL: UsageReader = UsageReader::Workspaces(None);

fn summing(store: &MemoryStore, usage: Arc<dyn UsageRepository>) -> SumUsage {
    SumUsage::new(SumUsagePorts {
        usage,
        rejections: store.rejections(),
        names: UsageNames { keys: store.api_keys(), workspaces: store.workspaces() },
        ledger: store.limits(),
        clock: Arc::new(FixedClock::default()),
    })
}

fn record(number: u64, day: u64) -> UsageRecord {
    let charged_at = FixedClock::default().now() + chrono::TimeDelta::days(i64::try_from(day).unwrap());
    UsageRecord { charged_at, cost: Usd::from_pico(i64::try_from(number).unwrap()), ..usage_record(number.into(), 7) }
}

async fn settle(store: &MemoryStore, record: UsageRecord) {
    store.ledger().settle(&UsageCharge::new(record)).await.unwrap();
}

#[tokio::test]
async fn execute_sums_last_30_days_with_today_by_default() {
    let store = MemoryStore::new();
    let today = FixedClock::default().now().date_naive();
    for (number, day) in [(1, 0), (2, 0), (3, 29), (4, 30)] {
        let mut record = record(number, 0);
        record.charged_at = record.charged_at - Days::new(day);
        settle(&store, record).await;
    }
    let sums = summing(&store, store.usage());
    let request = SumUsageRequest { groups: vec![UsageGroup::Day], ..SumUsageRequest::default() };
    let found = sums.execute(&ALL, request).await.unwrap();
    let rows: Vec<_> = found.rows.iter().map(|row| (row.day.unwrap(), row.totals.requests)).collect();
    assert_eq!(rows, [(today - Days::new(29), 1), (today, 2)]);
    assert_eq!((found.total.requests, found.total.cost), (3, Usd::from_pico(6)));
}

#[tokio::test]
async fn execute_replaces_abandoned_records() {
    let store = MemoryStore::new();
    let abandoned = UsageRecord { outcome: UsageOutcome::Abandoned, cost: Usd::from_pico(900), ..record(1, 0) };
    settle(&store, abandoned).await;
    settle(&store, UsageRecord { provider: "late".to_owned(), ..record(1, 0) }).await;
    let request = SumUsageRequest { groups: vec![UsageGroup::Provider], ..SumUsageRequest::default() };
    let found = summing(&store, store.usage()).execute(&ALL, request).await.unwrap();
    assert_eq!(found.rows.len(), 1);
    assert_eq!((found.rows[0].provider.as_deref(), found.total.cost), (Some("late"), Usd::from_pico(1)));
}

#[tokio::test]
async fn execute_bounds_days_records_and_rows() {
    let store = MemoryStore::new();
    let day = |text: &str| Some(text.parse().unwrap());
    let by_user = |since, until| SumUsageRequest {
        groups: vec![UsageGroup::User],
        since: day(since),
        until: day(until),
        ..SumUsageRequest::default()
    };
    let sums = summing(&store, store.usage());
    assert!(sums.execute(&ALL, by_user("2026-01-01", "2026-02-01")).await.is_ok(), "31 days");
    let error = sums.execute(&ALL, by_user("2026-01-01", "2026-02-02")).await.unwrap_err();
    assert_eq!(error.to_string(), "the range has 32 days; with user it may have up to 31");
    let no_group = SumUsageRequest { groups: Vec::new(), ..by_user("2026-01-01", "2036-01-01") };
    assert!(sums.execute(&ALL, no_group.clone()).await.is_ok(), "sums of days have no bound");
    let of_user = SumUsageRequest { user: Some("u".to_owned()), ..no_group };
    assert!(matches!(sums.execute(&ALL, of_user).await.unwrap_err(), ReadUsageError::TooManyDays { .. }));
    let empty = sums.execute(&ALL, by_user("2026-01-02", "2026-01-02")).await.unwrap_err();
    assert!(matches!(empty, ReadUsageError::EmptyRange) && empty.kind() == ErrorKind::InvalidRequest);

    let mut usage = MockUsageRepository::new();
    usage.expect_count_read().returning(|_, limit| Ok(limit));
    let sums = summing(&store, Arc::new(usage));
    let error = sums.execute(&ALL, by_user("2026-01-01", "2026-01-02")).await.unwrap_err();
    assert!(error.to_string().contains("1000000 records") && error.to_string().contains("shorter range"), "{error}");

    let mut usage = MockUsageRepository::new();
    usage.expect_sum().returning(|_, limit| Ok(vec![UsageSum::default(); usize::try_from(limit).unwrap()]));
    let error = summing(&store, Arc::new(usage)).execute(&ALL, SumUsageRequest::default()).await.unwrap_err();
    assert!(matches!(error, ReadUsageError::TooManyRows { max: MAX_SUM_ROWS }), "{error}");
}

#[tokio::test]
async fn inference_key_sums_itself_only() {
    let store = MemoryStore::new();
    let (first, second) = (record(1, 0), UsageRecord { api_key: SequentialIds::key(70), ..record(2, 0) });
    assert_ne!(first.api_key, second.api_key);
    let reader = UsageReader::Key { api_key: second.api_key, workspace_id: second.workspace_id };
    let ids: Vec<DecisionId> = vec![first.id.clone(), second.id.clone()];
    assert_ne!(ids[0], ids[1]);
    settle(&store, first).await;
    settle(&store, second).await;
    let sums = summing(&store, store.usage());
    assert_eq!(sums.execute(&reader, SumUsageRequest::default()).await.unwrap().total.cost, Usd::from_pico(2));
    assert_eq!(sums.execute(&ALL, SumUsageRequest::default()).await.unwrap().total.cost, Usd::from_pico(3));
    let none = UsageReader::Workspaces(Some(Vec::new()));
    assert_eq!(sums.execute(&none, SumUsageRequest::default()).await.unwrap().rows, []);
}
