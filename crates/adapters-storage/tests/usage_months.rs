//! The months of the usage table on PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use adapters_storage::{ChangedMonths, Database, StorageSettings, UsageMonths};
use chrono::{DateTime, TimeDelta, Utc};
use common::{Records, charged, decision_id, open_by, workspace_id};
use domain::budget::LedgerMaintenance;
use domain::error::StoreError;
use domain::ids::DecisionId;
use domain::testing::{FixedClock, join_all};
use domain::usage::UsageRecord;
use sea_orm::{ConnectionTrait, DatabaseConnection, TransactionTrait};
use test_servers::Postgres;
use tokio::sync::OnceCell;
use uuid::Uuid;

/// The server of this test program.
static SERVER: OnceCell<Postgres> = OnceCell::const_new();

const NOW: &str = "2026-11-26T12:00:00Z";
const FOUR_MONTHS: [&str; 4] = ["2026-11", "2026-12", "2027-01", "2027-02"];

/// A database with a clock, and the statements of an operator.
struct Store {
    url: String,
    clock: FixedClock,
    database: Database,
    raw: DatabaseConnection,
}

impl Store {
    async fn new() -> Self {
        let url = SERVER.get_or_init(|| async { Postgres::start().unwrap() }).await.create_database().unwrap();
        let clock = FixedClock::at(time(NOW));
        let database = open_by(&settings(&url), Arc::new(clock.clone())).await;
        let raw = sea_orm::Database::connect(&url).await.unwrap();
        Self { url, clock, database, raw }
    }

    fn months(&self) -> UsageMonths {
        UsageMonths::new(self.database.clone())
    }

    async fn maintain(&self) -> ChangedMonths {
        self.months().maintain().await.unwrap()
    }

    fn records(&self) -> Records {
        Records::over(self.database.clone())
    }

    /// Stores a record that was made at a time.
    async fn record(&self, at: &str) -> DecisionId {
        let record = record_at(at);
        let id = record.id.clone();
        self.records().record(record).await.unwrap();
        id
    }

    /// Returns the partition and the number of its records, for each with records.
    fn filled(&self) -> String {
        let query = "SELECT string_agg(name || ' ' || count, ', ' ORDER BY name) FROM (SELECT tableoid::regclass::text AS \
                     name, count(*) AS count FROM usage_records GROUP BY tableoid) AS partitions";
        SERVER.get().unwrap().query(&self.url, query).unwrap().trim().to_owned()
    }
}

fn settings(url: &str) -> StorageSettings {
    StorageSettings { use_server_clock: false, ..StorageSettings::new(url) }
}

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn record_at(at: &str) -> UsageRecord {
    let at = time(at);
    let id = DecisionId::from_uuid(uuid_v7(at));
    UsageRecord { id, created_at: at, charged_at: at, ..charged(1, 7) }
}

/// Returns a UUID that begins with a time.
fn uuid_v7(at: DateTime<Utc>) -> Uuid {
    let millis = u128::try_from(at.timestamp_millis()).unwrap();
    Uuid::from_u128((millis << 80) | (7 << 76) | (2 << 62) | 5)
}

fn created(months: &[&str]) -> ChangedMonths {
    ChangedMonths { created: months.iter().map(|month| (*month).to_owned()).collect(), dropped: Vec::new() }
}

#[tokio::test]
async fn records_go_to_the_month_of_their_id_and_all_others_to_the_default() {
    let store = Store::new().await;
    assert_eq!(store.maintain().await, created(&FOUR_MONTHS));
    assert_eq!(store.maintain().await, ChangedMonths::default());
    let first = store.record("2026-11-01T00:00:00Z").await;
    let last = store.record("2026-11-30T23:59:59.999Z").await;
    let next = store.record("2026-12-01T00:00:00Z").await;
    let late = store.record("2026-10-31T23:59:59.999Z").await;
    store.records().record(UsageRecord { charged_at: time(NOW), ..charged(1, 7) }).await.unwrap();
    assert_eq!(store.filled(), "usage_records_2026_11 2, usage_records_2026_12 1, usage_records_other 2");

    for id in [&first, &last, &next, &late, &decision_id(1)] {
        assert!(store.records().find(id).await.unwrap().is_some(), "{id}");
    }
    let listed = store.records().list(workspace_id(1), 9).await.unwrap();
    let listed: Vec<DecisionId> =
        listed.into_iter().map(|record| record.id).filter(|id| *id != decision_id(1)).collect();
    assert_eq!(listed, [next, last, first, late], "the newest first, over all partitions");
    assert_eq!(store.records().discrepancies().await, Vec::<String>::new());
}

/// PostgreSQL has no statistics of a month that has just begun, and would read all of it for each fold.
#[tokio::test]
async fn fold_finds_known_records_by_their_index() {
    const FOLDS: u64 = 20;
    const RECORDS: u64 = 256;
    let store = Store::new().await;
    store.maintain().await;
    let (began, records) = (time(NOW), store.records());
    for fold in 0..FOLDS {
        let at = |number| began + TimeDelta::milliseconds(i64::try_from(fold * RECORDS + number).unwrap());
        let batch = (0..RECORDS).map(|number| record_at(&at(number).to_rfc3339())).collect();
        records.record_all(batch).await.unwrap();
    }
    // Connections report their reads at their end.
    store.database.close().await;
    let server = SERVER.get().unwrap();
    let month = "FROM pg_stat_user_tables WHERE relname = 'usage_records_2026_11'";
    let count = |column| server.query(&store.url, &format!("SELECT {column} {month}")).unwrap();
    let reported = async {
        while count("n_tup_ins").trim() != (FOLDS * RECORDS).to_string() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), reported).await.unwrap();
    let whole: u64 = count("seq_scan").trim().parse().unwrap();
    assert!(whole < FOLDS, "{whole} reads of the whole month: more than its creation needs");
}

#[tokio::test]
async fn the_same_record_again_is_charged_once() {
    let store = Store::new().await;
    store.maintain().await;
    let record = record_at(NOW);
    for _ in 0..2 {
        store.records().record(record.clone()).await.unwrap();
    }
    assert_eq!(store.filled(), "usage_records_2026_11 1");
    assert_eq!(store.records().discrepancies().await, Vec::<String>::new());
}

#[tokio::test]
async fn month_is_dropped_when_retention_has_removed_its_records() {
    let store = Store::new().await;
    store.maintain().await;
    store.record("2026-11-05T00:00:00Z").await;
    store.record("2026-12-05T00:00:00Z").await;
    store.clock.set(time("2027-02-10T00:00:00Z"));
    assert_eq!(store.maintain().await, created(&["2027-03", "2027-04", "2027-05"]), "records are left");

    let kept = Duration::from_hours(24 * 90);
    assert_eq!(store.records().reports.prune(kept, 100).await.unwrap().removed, 1);
    let changed = store.maintain().await;
    assert_eq!(changed, ChangedMonths { created: Vec::new(), dropped: vec!["2026-11".to_owned()] });
    assert_eq!(store.filled(), "usage_records_2026_12 1");
    assert_eq!(store.records().discrepancies().await, Vec::<String>::new());
    // A late record of that month still has a place.
    store.record("2026-11-06T00:00:00Z").await;
    assert_eq!(store.filled(), "usage_records_2026_12 1, usage_records_other 1");
    // 2027-01 is empty and ended a short time ago.
    assert_eq!(store.maintain().await, ChangedMonths::default());
}

#[tokio::test]
async fn month_with_records_in_the_default_is_left_out() {
    let store = Store::new().await;
    let early = store.record("2026-11-05T00:00:00Z").await;
    assert_eq!(store.maintain().await, created(&FOUR_MONTHS[1..]));
    let later = store.record("2026-11-27T00:00:00Z").await;
    let next = store.record("2026-12-01T00:00:00Z").await;
    assert_eq!(store.filled(), "usage_records_2026_12 1, usage_records_other 2");
    for id in [early, later, next] {
        assert!(store.records().find(&id).await.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_start_at_once_create_each_month_once() {
    let store = Store::new().await;
    let changed = join_all((0..4).map(|_| async {
        let database = Database::open(&settings(&store.url), Arc::new(store.clock.clone())).await.unwrap();
        UsageMonths::new(database).maintain().await.unwrap().created
    }))
    .await;
    let mut months: Vec<String> = changed.into_iter().flatten().collect();
    months.sort();
    assert_eq!(months, FOUR_MONTHS);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_report_delays_a_month_and_fails_no_fold() {
    let store = Store::new().await;
    let report = store.raw.begin().await.unwrap();
    report.execute_unprepared("SELECT count(*) FROM usage_records").await.unwrap();
    let error = store.months().maintain().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    store.record("2026-12-05T00:00:00Z").await;
    assert_eq!(store.filled(), "usage_records_other 1");
    report.rollback().await.unwrap();
    assert_eq!(store.maintain().await, created(&["2026-11", "2027-01", "2027-02"]));
}

#[tokio::test]
async fn role_without_rights_to_create_tables_serves_without_months() {
    let store = Store::new().await;
    for statement in [
        "CREATE ROLE restricted LOGIN",
        "GRANT USAGE ON SCHEMA public TO restricted",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO restricted",
    ] {
        store.raw.execute_unprepared(statement).await.unwrap();
    }
    let url = format!("{}&options=-crole%3Drestricted", with_query(&store.url));
    let database = Database::open(&settings(&url), Arc::new(store.clock.clone())).await.unwrap();
    let error = UsageMonths::new(database.clone()).maintain().await.unwrap_err();
    assert!(format!("{error:?}").contains("permission denied"), "{error:?}");
    Records::over(database).record(record_at(NOW)).await.unwrap();
    assert_eq!(store.filled(), "usage_records_other 1");
}

/// Returns a URL to which parameters can be appended.
fn with_query(url: &str) -> String {
    if url.contains('?') { url.to_owned() } else { format!("{url}?application_name=restricted") }
}
