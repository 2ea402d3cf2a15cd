//! The batched ledger.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use adapters_storage::SeaOrmUsageRepository;
use common::*;
use domain::error::StoreError;
use domain::testing::join_all;
use domain::usage::UsageRepository;
use tokio_util::task::TaskTracker;

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_records_at_once_are_all_written() {
    let folder = Folder::new();
    let database = folder.open().await;
    let records = SeaOrmUsageRepository::start(database, &TaskTracker::new());
    for round in 0..10_u128 {
        for result in join_all((0..64).map(|number| records.record(usage(round * 64 + number, 1)))).await {
            result.unwrap();
        }
    }
    let listed = records.list(workspace_id(1), 1000).await.unwrap();
    assert_eq!(listed.len(), 640);
    assert_eq!(listed[0], usage(639, 1), "of one moment, the newest id comes first");
}

#[tokio::test]
async fn an_acknowledged_record_survives_the_death_of_the_process() {
    let folder = Folder::new();
    let database = folder.open().await;
    let records = SeaOrmUsageRepository::start(database, &TaskTracker::new());
    records.record(usage(1, 1)).await.unwrap();
    // What the files hold now is what the next process finds when this one is killed now.
    let after = Folder::new();
    std::fs::create_dir_all(after.path().parent().unwrap()).unwrap();
    for suffix in ["", "-wal"] {
        let name = |folder: &Folder| format!("{}{suffix}", folder.path().display());
        std::fs::copy(name(&folder), name(&after)).unwrap();
    }
    let records = SeaOrmUsageRepository::start(after.open().await, &TaskTracker::new());
    assert_eq!(records.find(&decision_id(1)).await.unwrap(), Some(usage(1, 1)));
}

#[tokio::test]
async fn a_closed_database_is_found_again() {
    let folder = Folder::new();
    let database = folder.open().await;
    let records = SeaOrmUsageRepository::start(database.clone(), &TaskTracker::new());
    records.record(usage(1, 1)).await.unwrap();
    database.close().await;
    assert!(records.record(usage(2, 1)).await.is_err(), "it is closed");
    let records = SeaOrmUsageRepository::start(folder.open().await, &TaskTracker::new());
    assert_eq!(records.list(workspace_id(1), 10).await.unwrap(), [usage(1, 1)]);
}

#[tokio::test]
async fn the_task_writes_what_waits_and_ends_with_the_repository() {
    let folder = Folder::new();
    let tasks = TaskTracker::new();
    let records = SeaOrmUsageRepository::start(folder.open().await, &tasks);
    for number in 0..500 {
        // The caller leaves as soon as the record is queued.
        let mut recording = Box::pin(tokio::task::unconstrained(records.record(usage(number, 1))));
        assert!(
            std::future::poll_fn(|context| std::task::Poll::Ready(recording.as_mut().poll(context))).await.is_pending()
        );
    }
    tasks.close();
    assert!(!tasks.is_empty(), "the task waits for records");
    drop(records);
    tokio::time::timeout(std::time::Duration::from_secs(10), tasks.wait()).await.expect("the task ends");
    let records = SeaOrmUsageRepository::start(folder.open().await, &TaskTracker::new());
    assert_eq!(records.list(workspace_id(1), 1000).await.unwrap().len(), 500);
}

#[tokio::test]
async fn more_records_than_fit_into_the_queue_are_told_in_time_that_none_is_written() {
    let folder = Folder::new();
    folder.open().await.close().await;
    let records = SeaOrmUsageRepository::start(open(&hasty(folder.settings())).await, &TaskTracker::new());
    let raw = folder.raw().await;
    let lock = raw.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let begun = tokio::time::Instant::now();
    let more_than_fit = 4096 + 256 + 500;
    let results = join_all((0..more_than_fit).map(|number| records.record(usage(number, 1)))).await;
    let took = begun.elapsed();
    assert!(results.iter().all(|result| matches!(result, Err(StoreError::Unavailable(_)))));
    assert!(took < std::time::Duration::from_secs(3), "nobody waits for every batch before theirs: {took:?}");
    lock.rollback().await.unwrap();
    records.record(usage(10_000, 1)).await.unwrap();
    assert_eq!(records.list(workspace_id(1), 10_000).await.unwrap(), [usage(10_000, 1)]);
}

#[tokio::test]
async fn a_flood_waits_its_turn_and_is_written_whole() {
    let folder = Folder::new();
    let records = SeaOrmUsageRepository::start(folder.open().await, &TaskTracker::new());
    for result in join_all((0..6_000).map(|number| records.record(usage(number, 1)))).await {
        result.unwrap();
    }
    assert_eq!(records.list(workspace_id(1), 10_000).await.unwrap().len(), 6_000);
}
