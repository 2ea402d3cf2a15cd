//! Notifications of PostgreSQL wake the reader of the change feed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use adapters_storage::{ChangeNotifications, Database, PollIntervals, SeaOrmWorkspaceRepository, StorageSettings};
use common::{audit, clock, open_by, workspace, workspace_id};
use domain::change_feed::ChangeSignal;
use domain::workspace::{Workspace, WorkspaceRepository, WorkspaceUpdate};
use test_servers::{PgBouncer, Postgres};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Longer than a test may take: only a notification ends such a wait.
const NEVER: Duration = Duration::from_hours(1);
/// The interval without notifications.
const OFTEN: Duration = Duration::from_millis(20);
/// The longest wait for an event on a busy machine.
const SOON: Duration = Duration::from_mins(1);

/// A process that listens, and a second connection to the same database.
struct Listening {
    notifications: Arc<ChangeNotifications>,
    other: Database,
    cancelled: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Listening {
    async fn over(url: &str) -> Self {
        let settings = StorageSettings::new(url);
        let other = open_by(&settings, clock()).await;
        SeaOrmWorkspaceRepository::new(other.clone()).insert(&workspace(1), false, &audit()).await.unwrap();
        let database = Database::open(&settings, clock()).await.unwrap();
        let intervals = PollIntervals { unnotified: OFTEN, notified: NEVER };
        let notifications = Arc::new(ChangeNotifications::new(database, intervals));
        let (listening, cancelled) = (Arc::clone(&notifications), CancellationToken::new());
        let token = cancelled.clone();
        let task = TaskTracker::new().spawn(async move { listening.listen(token).await });
        Self { notifications, other, cancelled, task }
    }

    /// Waits until the state has a value; each change of it ends a wait.
    async fn until_listening(&self, is_listening: bool) {
        let changed = async {
            while self.notifications.is_listening() != is_listening {
                self.notifications.wait().await;
            }
        };
        timeout(SOON, changed).await.unwrap();
    }

    /// Waits until no notification is left of earlier events.
    async fn drain(&self) {
        while timeout(Duration::from_millis(500), self.notifications.wait()).await.is_ok() {}
    }

    /// Changes a workspace by the other connection, which ends a wait.
    async fn change(&self, suspended: bool) {
        self.drain().await;
        let repository = SeaOrmWorkspaceRepository::new(self.other.clone());
        let audit = audit();
        let before = repository.find(workspace_id(1)).await.unwrap().unwrap();
        let after = Workspace { suspended, ..before.clone() };
        let change = repository.update(&before, &after, &audit);
        let (woken, changed) = tokio::join!(timeout(SOON, self.notifications.wait()), change);
        assert_eq!(changed.unwrap(), WorkspaceUpdate::Updated);
        woken.unwrap();
    }

    async fn end(self) {
        self.cancelled.cancel();
        timeout(SOON, self.task).await.unwrap().unwrap();
        assert!(!self.notifications.is_listening());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn change_of_another_process_ends_wait_also_after_connection_was_cut() {
    let postgres = Postgres::start().unwrap();
    let url = postgres.create_database().unwrap();
    let listening = Listening::over(&url).await;
    listening.until_listening(true).await;
    listening.change(true).await;

    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
    assert_eq!(postgres.query(&url, cut).unwrap().trim(), "1");
    listening.until_listening(false).await;
    listening.until_listening(true).await;
    listening.change(false).await;
    listening.end().await;
}

/// A pooler would lend the connection that listens to other clients, whose statements fail on a notification.
#[tokio::test(flavor = "multi_thread")]
async fn no_connection_listens_behind_a_pooler() {
    let postgres = Postgres::start().unwrap();
    for dropped_parameters in ["", "options"] {
        let pooler = PgBouncer::start_any_version(&postgres, dropped_parameters).unwrap();
        let url = pooler.url(&postgres.create_database().unwrap());
        let database = Database::open(&StorageSettings::new(&url), clock()).await.unwrap();
        let intervals = PollIntervals { unnotified: OFTEN, notified: NEVER };
        let notifications = Arc::new(ChangeNotifications::new(database, intervals));
        let (listening, cancelled) = (Arc::clone(&notifications), CancellationToken::new());
        let token = cancelled.clone();
        let task = TaskTracker::new().spawn(async move { listening.listen(token).await });
        for _ in 0..50 {
            timeout(SOON, notifications.wait()).await.unwrap();
            // The pooler lends the connection that was used last.
            let channels = "SELECT count(*) FROM pg_listening_channels()";
            assert_eq!(postgres.query(&url, channels).unwrap().trim(), "0");
        }
        assert!(!notifications.is_listening());
        cancelled.cancel();
        timeout(SOON, task).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn sqlite_is_polled() {
    let folder = common::Folder::new();
    let intervals = PollIntervals { unnotified: OFTEN, notified: NEVER };
    let notifications = ChangeNotifications::new(folder.open().await, intervals);
    notifications.listen(CancellationToken::new()).await;
    assert!(!notifications.is_listening());
    timeout(SOON, notifications.wait()).await.unwrap();
}
