//! Background checkpoints bound the write-ahead log, and clean up at the end.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::PathBuf;
use std::time::Duration;

use adapters_storage::{
    CheckpointLimits, Database, SeaOrmWorkspaceRepository, StorageSettings, Synchronous, WalStatus,
};
use common::*;
use domain::workspace::WorkspaceRepository;
use sea_orm::sqlx::{self, Connection, SqliteConnection};
use tokio::time::{Instant, sleep, timeout};

/// A page and its frame header in the log.
const FRAME: u64 = 4096 + 24;
/// SQLite's own limit, in pages.
const AUTOMATIC: u64 = 1000;

fn small() -> CheckpointLimits {
    CheckpointLimits {
        copy_after: 8 * FRAME,
        restart_after: 64 * FRAME,
        warn_after: 1 << 30,
        pause: Duration::from_millis(5),
        retry: Duration::from_millis(50),
    }
}

/// Returns limits that are never reached.
fn endless() -> CheckpointLimits {
    CheckpointLimits { copy_after: u64::MAX, restart_after: u64::MAX, ..small() }
}

/// Commits several times, one workspace each.
async fn write(database: &Database, numbers: std::ops::Range<u128>) {
    let workspaces = SeaOrmWorkspaceRepository::new(database.clone());
    for number in numbers {
        workspaces.insert(&workspace(number), false, &audit()).await.unwrap();
    }
}

/// Returns the pages in the log, and how many of them are in the database, as seen by a separate connection.
async fn log(folder: &Folder) -> (u64, u64) {
    let pool = folder.raw().await;
    let row: (i64, i64, i64) = sqlx::query_as("PRAGMA wal_checkpoint(NOOP)").fetch_one(&pool).await.unwrap();
    pool.close().await;
    (u64::try_from(row.1).unwrap(), u64::try_from(row.2).unwrap())
}

async fn workspaces_in(folder: &Folder) -> i64 {
    let pool = folder.raw().await;
    let count = sqlx::query_scalar("SELECT count(*) FROM workspaces").fetch_one(&pool).await.unwrap();
    let check: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&pool).await.unwrap();
    assert_eq!(check, "ok");
    pool.close().await;
    count
}

/// Opens a reader that keeps its snapshot.
async fn long_reader(folder: &Folder) -> SqliteConnection {
    let mut reader = SqliteConnection::connect(&format!("sqlite://{}", folder.path().display())).await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT count(*) FROM workspaces").execute(&mut reader).await.unwrap();
    reader
}

fn log_file(folder: &Folder) -> PathBuf {
    folder.path().with_file_name("tollgate.db-wal")
}

fn log_file_bytes(folder: &Folder) -> u64 {
    std::fs::metadata(log_file(folder)).map_or(0, |file| file.len())
}

/// Waits until the condition on the status holds.
async fn until(database: &Database, what: &str, is_so: impl Fn(WalStatus) -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is_so(database.wal_status()) {
        assert!(Instant::now() < end, "{what}: {:?}", database.wal_status());
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn commits_do_not_checkpoint_while_task_runs() {
    let folder = Folder::new();
    let database = folder.open().await;
    database.start_checkpoint_task(endless()).await.unwrap();
    let mut written = 0;
    while log(&folder).await.0 <= AUTOMATIC + 100 {
        write(&database, written..written + 50).await;
        written += 50;
    }
    assert_eq!(log(&folder).await.1, 0);
    until(&database, "seen", |log| log.checks > 0 && log.bytes > AUTOMATIC * FRAME / 2).await;
    assert_eq!((database.wal_status().copied, database.wal_status().partial), (0, 0));
    database.close().await;

    // Control: without the task commits do copy the log.
    let folder = Folder::new();
    let database = folder.open().await;
    write(&database, 0..written).await;
    assert!(log(&folder).await.0 <= AUTOMATIC);
    database.close().await;
}

#[tokio::test]
async fn task_checkpoints_without_writer() {
    for synchronous in [Synchronous::Normal, Synchronous::Full] {
        let folder = Folder::new();
        let database = open(&StorageSettings { synchronous, ..folder.settings() }).await;
        database.start_checkpoint_task(CheckpointLimits { restart_after: u64::MAX, ..small() }).await.unwrap();
        write(&database, 0..50).await;
        until(&database, "copied", |log| log.copied > 0).await;
        assert_eq!(database.wal_status().restarted, 0);
        assert_eq!(workspaces_in(&folder).await, 50);
        database.close().await;
    }
}

#[tokio::test]
async fn start_checkpoint_task_is_idempotent() {
    let folder = Folder::new();
    let database = folder.open().await;
    database.start_checkpoint_task(small()).await.unwrap();
    database.start_checkpoint_task(endless()).await.unwrap();
    write(&database, 0..50).await;
    until(&database, "copied", |log| log.copied > 0).await;
    database.close().await;
    database.close().await;
}

#[tokio::test]
async fn log_stays_bounded_under_writes_of_two_processes() {
    let folder = Folder::new();
    let (first, second) = (folder.open().await, folder.open().await);
    for database in [&first, &second] {
        database.start_checkpoint_task(small()).await.unwrap();
    }
    let mut longest = 0;
    for round in 0..40_u128 {
        let number = round * 50;
        tokio::join!(write(&first, number..number + 25), write(&second, number + 25..number + 50));
        longest = longest.max(log_file_bytes(&folder));
    }
    let (one, other) = (first.wal_status(), second.wal_status());
    assert!(one.copied + other.copied > 3, "{one:?} {other:?}");
    assert_eq!(one.failed + other.failed, 0, "{one:?} {other:?}");
    // Each of 2,000 commits writes several pages. A busy machine starts the task late, so the limit is generous.
    assert!(longest < 4000 * FRAME, "{longest}");
    assert_eq!(workspaces_in(&folder).await, 2000);
    first.close().await;
    // One process is enough.
    let before = second.wal_status();
    write(&second, 2000..2200).await;
    until(&second, "copied alone", |log| log.copied > before.copied).await;
    assert_eq!(workspaces_in(&folder).await, 2200);
    second.close().await;
}

#[tokio::test]
async fn long_reader_delays_restart_only() {
    let folder = Folder::new();
    let database = folder.open().await;
    write(&database, 0..1).await;
    let mut reader = long_reader(&folder).await;
    database.start_checkpoint_task(small()).await.unwrap();
    write(&database, 1..200).await;
    until(&database, "held back", |log| log.partial > 0).await;
    // The log grows beyond its limit, and no commit waits.
    assert!(log(&folder).await.0 > 64);
    assert_eq!(database.wal_status().restarted, 0);
    let seen: i64 = sqlx::query_scalar("SELECT count(*) FROM workspaces").fetch_one(&mut reader).await.unwrap();
    assert_eq!(seen, 1);

    sqlx::raw_sql("COMMIT").execute(&mut reader).await.unwrap();
    reader.close().await.unwrap();
    write(&database, 200..201).await;
    until(&database, "begun anew", |log| log.restarted > 0).await;
    write(&database, 201..202).await;
    assert!(log(&folder).await.0 < 64);
    assert_eq!(database.wal_status().failed, 0);
    assert_eq!(workspaces_in(&folder).await, 202);
    database.close().await;
}

#[tokio::test]
async fn close_checkpoints_whole_log() {
    let folder = Folder::new();
    let database = folder.open().await;
    database.start_checkpoint_task(endless()).await.unwrap();
    write(&database, 0..50).await;
    until(&database, "seen", |log| log.checks > 0).await;
    // Another connection keeps the file open, so that SQLite does not checkpoint when the last one closes.
    let other = folder.raw().await;
    assert_eq!(sqlx::query_scalar::<_, i64>("SELECT count(*) FROM workspaces").fetch_one(&other).await.unwrap(), 50);
    assert_ne!(log_file_bytes(&folder), 0);
    database.close().await;
    assert_eq!(log_file_bytes(&folder), 0);
    assert_eq!(workspaces_in(&folder).await, 50);
    other.close().await;

    let database = folder.open().await;
    database.start_checkpoint_task(endless()).await.unwrap();
    write(&database, 50..60).await;
    until(&database, "seen", |log| log.checks > 0).await;
    database.close().await;
    assert!(!log_file(&folder).exists());
    assert_eq!(workspaces_in(&folder).await, 60);
}

#[tokio::test]
async fn close_does_not_wait_for_reader() {
    let folder = Folder::new();
    let database = folder.open().await;
    database.start_checkpoint_task(endless()).await.unwrap();
    write(&database, 0..10).await;
    let reader = long_reader(&folder).await;
    write(&database, 10..20).await;
    until(&database, "seen", |log| log.checks > 0).await;
    timeout(Duration::from_secs(4), database.close()).await.unwrap();
    reader.close().await.unwrap();
    assert_eq!(workspaces_in(&folder).await, 20);
}

#[tokio::test]
async fn failed_checkpoint_is_retried() {
    let folder = Folder::new();
    let database = folder.open().await;
    let (log, aside) = (folder.path().with_extension("db-wal"), folder.path().with_extension("aside"));
    write(&database, 0..1).await;
    // A new connection does not find the log; open ones continue.
    std::fs::rename(&log, &aside).unwrap();
    std::fs::create_dir(&log).unwrap();
    database.start_checkpoint_task(small()).await.unwrap();
    write(&database, 1..50).await;
    until(&database, "failed again", |log| log.failed > 1).await;
    write(&database, 50..100).await;
    assert_eq!(database.wal_status().copied, 0);

    std::fs::remove_dir(&log).unwrap();
    std::fs::rename(&aside, &log).unwrap();
    // Without another write.
    until(&database, "copied", |log| log.copied > 0).await;
    let failed = database.wal_status().failed;
    write(&database, 100..150).await;
    assert_eq!(database.wal_status().failed, failed);
    assert_eq!(workspaces_in(&folder).await, 150);
    database.close().await;
}

#[tokio::test]
async fn removed_database_does_not_panic() {
    let folder = Folder::new();
    let database = folder.open().await;
    database.start_checkpoint_task(small()).await.unwrap();
    write(&database, 0..50).await;
    until(&database, "copied", |log| log.copied > 0).await;
    std::fs::remove_dir_all(folder.path().parent().unwrap()).unwrap();
    // SQLite may do anything here, but no task panics, and closing ends.
    let workspaces = SeaOrmWorkspaceRepository::new(database.clone());
    for number in 50..100 {
        let _whatever = workspaces.insert(&workspace(number), false, &audit()).await;
    }
    sleep(Duration::from_millis(100)).await;
    timeout(Duration::from_secs(8), database.close()).await.unwrap();
}

#[tokio::test]
async fn task_is_idle_without_writes() {
    let folder = Folder::new();
    let database = folder.open().await;
    database.start_checkpoint_task(small()).await.unwrap();
    write(&database, 0..50).await;
    until(&database, "copied", |log| log.copied > 0).await;
    // The last commit causes at most one more check, at a time that depends on the machine.
    let mut is_quiet = false;
    for _ in 0..40 {
        let before = database.wal_status();
        assert_eq!(SeaOrmWorkspaceRepository::new(database.clone()).list().await.unwrap().len(), 50);
        sleep(Duration::from_millis(300)).await;
        is_quiet |= database.wal_status() == before;
        if is_quiet {
            break;
        }
    }
    assert!(is_quiet, "something goes on: {:?}", database.wal_status());
    database.close().await;
}

#[tokio::test]
async fn read_only_database_is_not_checkpointed() {
    let folder = Folder::new();
    let writing = folder.open().await;
    write(&writing, 0..50).await;
    let settings = StorageSettings::new(format!("sqlite://{}?mode=ro", folder.path().display()));
    let reading = Database::open(&settings, clock()).await.unwrap();
    reading.start_checkpoint_task(small()).await.unwrap();
    write(&writing, 50..100).await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(reading.wal_status(), WalStatus::default());
    reading.close().await;
    writing.close().await;
    assert_eq!(workspaces_in(&folder).await, 100);
}
