//! The contract of every port on PostgreSQL: with one handle, with two as for two replicas, and on the schema of a later
//! release.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use adapters_storage::{Database, SeaOrmBudgetStore, SeaOrmWorkspaceRepository, StorageSettings, is_temporary};
use chrono::TimeDelta;
use common::{
    LATER_STEP, Records, at, audit, clock, decision_id, expand, open_by, replicas, usage, workspace, workspace_id,
};
use domain::budget::BudgetStore;
use domain::error::StoreError;
use domain::system::HealthProbe;
use domain::testing::contract::Stores;
use domain::testing::{FixedClock, join_all};
use domain::usage::UsageRecord;
use domain::workspace::WorkspaceRepository;
use migrations::{Migrator, MigratorTrait};
use sea_orm::{ConnectionTrait, DbBackend, Statement, TransactionTrait};
use tokio::sync::OnceCell;

/// The server of this test program.
static SERVER: OnceCell<Server> = OnceCell::const_new();

struct Server {
    postgres: test_servers::Postgres,
    /// A database with the schema, which tests copy.
    template: String,
    /// A database with the schema of a later release.
    newer: String,
}

async fn server() -> &'static Server {
    SERVER
        .get_or_init(|| async {
            let postgres = test_servers::Postgres::start().unwrap();
            let template = postgres.create_database().unwrap();
            let database = open_by(&settings(&template), Arc::new(FixedClock::at(at(0)))).await;
            database.close().await;
            let newer = postgres.copy_database(&template).unwrap();
            expand_all(&newer).await;
            Server { postgres, template, newer }
        })
        .await
}

/// Expands every table, as a later release does.
async fn expand_all(url: &str) {
    let raw = sea_orm::Database::connect(url).await.unwrap();
    let names = "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition \
                 AND relnamespace = current_schema()::regnamespace";
    let tables = raw.query_all_raw(Statement::from_string(DbBackend::Postgres, names)).await.unwrap();
    for table in tables {
        raw.execute_unprepared(&expand(&table.try_get_by_index::<String>(0).unwrap())).await.unwrap();
    }
    raw.execute_unprepared(LATER_STEP).await.unwrap();
    raw.close().await.unwrap();
}

/// Opens a new database with the schema, with one clock or another.
async fn database(use_server_clock: bool) -> Database {
    let server = server().await;
    let url = server.postgres.copy_database(&server.template).unwrap();
    Database::open(&StorageSettings { use_server_clock, ..StorageSettings::new(&url) }, clock()).await.unwrap()
}

/// The stores follow the clock of the test. Hundreds of tests use one server, so connections may take long.
fn settings(url: &str) -> StorageSettings {
    StorageSettings { use_server_clock: false, busy_timeout: Duration::from_mins(1), ..StorageSettings::new(url) }
}

async fn open(handles: usize) -> Stores {
    open_copy(&server().await.template, handles).await
}

async fn open_copy(template: &str, handles: usize) -> Stores {
    let url = server().await.postgres.copy_database(template).unwrap();
    let clock = FixedClock::at(at(0));
    let mut databases = Vec::new();
    for _ in 0..handles {
        databases.push(Database::open(&settings(&url), Arc::new(clock.clone())).await.unwrap());
    }
    replicas(&databases, clock)
}

async fn single_replica() -> Stores {
    open(1).await
}

async fn two_replicas() -> Stores {
    open(2).await
}

async fn newer_schema() -> Stores {
    open_copy(&server().await.newer, 2).await
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_waits_for_another_one_for_longer_than_busy_timeout() {
    let url = server().await.postgres.create_database().unwrap();
    let raw = sea_orm::Database::connect(&url).await.unwrap();
    let other = raw.begin().await.unwrap();
    other.execute_unprepared("SELECT pg_advisory_xact_lock(8390043843661231205)").await.unwrap();
    let hasty = common::hasty(settings(&url));
    let database = Database::open(&hasty, clock()).await.unwrap();
    let (migrated, ()) = tokio::join!(database.migrate(), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        other.commit().await.unwrap();
    });
    migrated.unwrap();
    // Afterwards the busy timeout counts for the locks of tables, so that a migration blocks no readers.
    Migrator::down(&raw, None).await.unwrap();
    let other = raw.begin().await.unwrap();
    other.execute_unprepared("LOCK TABLE seaql_migrations IN SHARE MODE").await.unwrap();
    let error = tokio::time::timeout(Duration::from_secs(20), database.migrate()).await.unwrap().unwrap_err();
    assert!(format!("{error:?}").contains("lock timeout"), "{error:?}");
    other.rollback().await.unwrap();
}

#[tokio::test]
async fn text_with_nul_does_not_fail_fold() {
    let database = database(false).await;
    let records = Records::over(database);
    let record = UsageRecord { session_id: Some("a\0b".to_owned()), user: Some("\0".to_owned()), ..usage(1, 1) };
    records.record(record.clone()).await.unwrap();
    let stored = records.find(&decision_id(1)).await.unwrap().unwrap();
    assert_eq!((stored.session_id.as_deref(), stored.user.as_deref()), (Some("a\u{fffd}b"), Some("\u{fffd}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_start_at_once_apply_each_migration_once() {
    let url = server().await.postgres.create_database().unwrap();
    let started = (0..4).map(|_| async {
        let database = Database::open(&settings(&url), clock()).await.unwrap();
        database.migrate().await.unwrap();
        database.probe().await.unwrap();
    });
    join_all(started).await;
}

#[tokio::test]
async fn time_of_server_is_known_before_the_first_write() {
    let database = database(true).await;
    let ahead = || domain::system::Clock::now(&database) - at(0);
    assert_eq!(ahead(), TimeDelta::zero(), "the clock of the test's machine stands still at an earlier moment");
    database.read_clock().await.unwrap();
    assert!(ahead().abs() > TimeDelta::hours(1), "{}", ahead());
}

#[tokio::test]
async fn time_is_that_of_server() {
    let database = database(true).await;
    let feed = SeaOrmBudgetStore::new(database.clone());
    // The clock of the test's machine stands still at an earlier moment.
    SeaOrmWorkspaceRepository::new(database).insert(&workspace(1), false, &audit()).await.unwrap();
    let signals = feed.signals().await.unwrap();
    assert!((signals.at - at(0)).abs() > TimeDelta::hours(1), "{}", signals.at);
}

#[tokio::test]
async fn server_that_is_away_is_unavailable_and_never_missing_data() {
    let settings = StorageSettings {
        busy_timeout: Duration::from_millis(300),
        ..StorageSettings::new("postgres://nobody:s3cret@127.0.0.1:1/none")
    };
    let database = Database::open(&settings, clock()).await.unwrap();
    let error = SeaOrmWorkspaceRepository::new(database).find(workspace_id(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(!format!("{error:?} {error}").contains("s3cret"));
}

mod in_one_replica {
    domain::store_contracts!(
        #[tokio::test]
        crate::single_replica
    );
}

mod in_two_replicas {
    domain::store_contracts!(
        #[tokio::test]
        crate::two_replicas
    );
}

mod on_newer_schema {
    domain::store_contracts!(
        #[tokio::test]
        crate::newer_schema
    );
}

#[tokio::test]
async fn errors_that_an_administrator_mends_name_the_remedy_and_are_not_temporary() {
    let server = server().await;
    let url = server.postgres.copy_database(&server.template).unwrap();
    server.postgres.query(&url, "CREATE ROLE noright LOGIN").unwrap();
    let denied = url.replacen("tollgate@", "noright@", 1);
    let hidden = format!("{denied}?options=-csearch_path%3Dmissing");
    let empty = server.postgres.create_database().unwrap().replacen("tollgate@", "noright@", 1);
    for (url, expected) in [
        (&denied, "the role noright has no rights on the schema or its tables"),
        (&hidden, "the role noright has no rights on the schema or its tables"),
        (&empty, "permission denied for schema public; the role of storage.url lacks this right"),
        (
            &format!("{url}_missing"),
            "_missing\" does not exist; create it: createdb --template=template0 --encoding=UTF8 --locale=C test_",
        ),
    ] {
        let database = Database::open(&StorageSettings::new(url), clock()).await.unwrap();
        let error = database.migrate().await.unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains(expected) && !source.contains("at line"), "{source}");
        assert!(!is_temporary(&error), "{source}");
        database.close().await;
    }
}
