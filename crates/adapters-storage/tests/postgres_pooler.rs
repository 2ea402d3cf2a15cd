//! The contract of every port on PostgreSQL through PgBouncer in transaction mode, with two replicas.
//!
//! Run by `cargo xtask pooler`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use adapters_storage::{ChangeNotifications, Database, PollIntervals, StorageSettings};
use common::{at, open_by, replicas};
use domain::change_feed::ChangeSignal;
use domain::testing::FixedClock;
use domain::testing::contract::Stores;
use test_servers::{PgBouncer, Postgres};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The servers of this test program.
static SERVERS: OnceCell<Servers> = OnceCell::const_new();

struct Servers {
    pooler: PgBouncer,
    postgres: Postgres,
    /// A database with the schema, which tests copy.
    template: String,
}

async fn servers() -> &'static Servers {
    SERVERS
        .get_or_init(|| async {
            let postgres = Postgres::start().unwrap();
            let pooler = PgBouncer::start(&postgres).unwrap();
            let template = postgres.create_database().unwrap();
            open_by(&settings(&template), Arc::new(FixedClock::at(at(0)))).await.close().await;
            Servers { pooler, postgres, template }
        })
        .await
}

fn settings(url: &str) -> StorageSettings {
    StorageSettings { use_server_clock: false, ..StorageSettings::new(url) }
}

async fn two_replicas() -> Stores {
    let servers = servers().await;
    let url = servers.pooler.url(&servers.postgres.copy_database(&servers.template).unwrap());
    let clock = FixedClock::at(at(0));
    let mut databases = Vec::new();
    for _ in 0..2 {
        databases.push(Database::open(&settings(&url), Arc::new(clock.clone())).await.unwrap());
    }
    replicas(&databases, clock)
}

#[tokio::test]
#[ignore = "needs PgBouncer 1.21: `cargo xtask pooler`"]
async fn migrations_apply_through_pooler() {
    let servers = servers().await;
    let url = servers.pooler.url(&servers.postgres.create_database().unwrap());
    let database = open_by(&settings(&url), Arc::new(FixedClock::at(at(0)))).await;
    assert!(database.migration_status().await.unwrap().iter().all(|step| step.applied));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PgBouncer 1.21: `cargo xtask pooler`"]
async fn change_feed_is_polled_where_pooler_delivers_no_notifications() {
    let servers = servers().await;
    let url = servers.pooler.url(&servers.postgres.copy_database(&servers.template).unwrap());
    let database = Database::open(&settings(&url), Arc::new(FixedClock::at(at(0)))).await.unwrap();
    let intervals = PollIntervals { unnotified: Duration::from_millis(20), notified: Duration::from_hours(1) };
    let notifications = Arc::new(ChangeNotifications::new(database, intervals));
    let (listening, cancelled) = (Arc::clone(&notifications), CancellationToken::new());
    let token = cancelled.clone();
    let task = TaskTracker::new().spawn(async move { listening.listen(token).await });
    // Longer than the test of the connection for notifications.
    let end = Instant::now() + Duration::from_secs(4);
    while Instant::now() < end {
        timeout(Duration::from_mins(1), notifications.wait()).await.unwrap();
    }
    cancelled.cancel();
    task.await.unwrap();
}

domain::store_contracts!(
    #[tokio::test]
    #[ignore = "needs PgBouncer 1.21: `cargo xtask pooler`"]
    crate::two_replicas
);
