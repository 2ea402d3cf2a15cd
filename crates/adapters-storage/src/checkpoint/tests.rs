use std::sync::atomic::{AtomicU64, Ordering};

use domain::testing::FixedClock;
use sea_orm::sqlx;
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::*;
use crate::settings::StorageSettings;

/// Long enough to observe the pause on a busy machine.
const PAUSE: Duration = Duration::from_secs(1);
/// SQLite's own limit, in pages.
const AUTOMATIC: i64 = 1000;

async fn open(folder: &TempDir) -> Database {
    let url = format!("sqlite://{}", folder.path().join("a.db").display());
    let clock = Arc::new(FixedClock::at(chrono::DateTime::UNIX_EPOCH));
    Database::open(&StorageSettings::new(url), clock).await.unwrap()
}

/// Returns the number of pages after which the writer's commits checkpoint automatically.
async fn automatic(database: &Database) -> i64 {
    let mut writer = database.acquire_writer().await.unwrap();
    sqlx::query_scalar("PRAGMA wal_autocheckpoint").fetch_one(&mut *writer).await.unwrap()
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is_so().await {
        assert!(Instant::now() < end, "{what}");
        sleep(Duration::from_millis(5)).await;
    }
}

fn supervisor(database: &Database) -> (Supervisor, CancellationToken) {
    let stop = CancellationToken::new();
    let checkpoints = Arc::clone(&database.sqlite().unwrap().checkpoints);
    (Supervisor { database: database.clone(), checkpoints, stop: stop.clone(), pause: PAUSE }, stop)
}

/// Returns true if a commit is notified within this time.
async fn is_commit_notified(database: &Database) -> bool {
    let commits = Arc::clone(&database.sqlite().unwrap().checkpoints.commits);
    let mut writer = database.acquire_writer().await.unwrap();
    sqlx::raw_sql("CREATE TABLE IF NOT EXISTS t (x); INSERT INTO t VALUES (1)").execute(&mut *writer).await.unwrap();
    drop(writer);
    timeout(Duration::from_millis(50), commits.committed()).await.is_ok()
}

#[tokio::test]
async fn supervisor_restarts_ended_task_and_reenables_sqlite_meanwhile() {
    let folder = TempDir::new().unwrap();
    let database = open(&folder).await;
    assert_eq!(automatic(&database).await, AUTOMATIC);
    let (supervisor, stop) = supervisor(&database);
    let runs = Arc::new(AtomicU64::new(0));
    let end = Arc::new(Notify::new());
    // The first run panics and the second one ends, both when the test says so; the third one continues.
    let copying = {
        let (runs, stop, end) = (Arc::clone(&runs), stop.clone(), Arc::clone(&end));
        move || {
            let (run, stop, end) = (runs.fetch_add(1, Ordering::SeqCst), stop.clone(), Arc::clone(&end));
            async move {
                if run > 1 {
                    return stop.cancelled().await;
                }
                end.notified().await;
                assert!(run > 0, "as the test wants it");
            }
        }
    };
    let (started, has_started) = oneshot::channel();
    let mut running = JoinSet::new();
    running.spawn(supervisor.run(started, copying));
    has_started.await.unwrap().unwrap();
    for ended in [1, 2] {
        assert_eq!(automatic(&database).await, 0);
        end.notify_one();
        until("it ended", async || database.wal_status().ended == ended).await;
        until("SQLite has it", async || automatic(&database).await == AUTOMATIC).await;
        assert!(!is_commit_notified(&database).await);
        until("taken over again", async || automatic(&database).await == 0).await;
        until("run again", async || runs.load(Ordering::SeqCst) == ended + 1).await;
    }
    assert!(is_commit_notified(&database).await);
    stop.cancel();
    timeout(Duration::from_secs(5), running.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(database.wal_status().ended, 2, "a stop is no such end");
    database.close().await;
}

#[tokio::test]
async fn supervisor_ends_when_start_fails() {
    let folder = TempDir::new().unwrap();
    let database = open(&folder).await;
    database.close().await;
    let (supervisor, _stop) = supervisor(&database);
    let (started, has_started) = oneshot::channel();
    supervisor.run(started, || async { unreachable!("nothing was taken over") }).await;
    assert!(matches!(has_started.await.unwrap(), Err(StoreError::Unavailable(_))));
    assert!(
        !database.sqlite().unwrap().checkpoints.commits.are_followed(),
        "connections that are opened later keep to SQLite's way"
    );
    assert!(database.start_checkpoint_task(crate::CheckpointLimits::default()).await.is_err());
    assert!(
        database.start_checkpoint_task(crate::CheckpointLimits::default()).await.is_err(),
        "and may be asked again"
    );
}

#[tokio::test]
async fn stop_ends_pause() {
    let folder = TempDir::new().unwrap();
    let database = open(&folder).await;
    let (mut supervisor, stop) = supervisor(&database);
    supervisor.pause = Duration::from_hours(1);
    let (started, _has_started) = oneshot::channel();
    let mut running = JoinSet::new();
    running.spawn(supervisor.run(started, || async {}));
    until("it ended", async || database.wal_status().ended == 1).await;
    stop.cancel();
    timeout(Duration::from_secs(5), running.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(automatic(&database).await, AUTOMATIC);
}
