//! The migration that adds the client's address to usage records.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::IpAddr;

use common::*;
use domain::usage::UsageRecord;
use migrations::{Migrator, MigratorTrait};
use sea_orm::SqlxSqliteConnector;

const STEP: &str = "m20261123_000021_client_addresses";

async fn step_down(folder: &Folder) {
    let raw = SqlxSqliteConnector::from_sqlx_sqlite_pool(folder.raw().await);
    Migrator::down(&raw, Some(steps_from(STEP))).await.unwrap();
}

#[tokio::test]
async fn migration_keeps_records_and_adds_an_empty_address() {
    let folder = Folder::new();
    let database = folder.open().await;
    let records = Records::over(database.clone());
    let client_address = Some(IpAddr::from([192, 0, 2, 7]));
    let recorded = UsageRecord { client_address, ..usage(1, 1) };
    records.record(recorded.clone()).await.unwrap();
    assert_eq!(records.find(&decision_id(1)).await.unwrap(), Some(recorded.clone()));
    assert_eq!(folder.count("usage_records WHERE client_address = x'c0000207'").await, 1, "four bytes");

    step_down(&folder).await;
    database.migrate().await.unwrap();
    let older = UsageRecord { client_address: None, ..recorded };
    assert_eq!(records.find(&decision_id(1)).await.unwrap(), Some(older));
    let sixteen = UsageRecord { client_address: Some("2001:db8::7".parse().unwrap()), ..usage(2, 1) };
    records.record(sixteen.clone()).await.unwrap();
    assert_eq!(records.find(&decision_id(2)).await.unwrap(), Some(sixteen));
}

#[tokio::test]
async fn address_of_another_length_is_corrupt() {
    let folder = Folder::new();
    let records = Records::over(folder.open().await);
    records.record(usage(1, 1)).await.unwrap();
    folder.execute("UPDATE usage_records SET client_address = x'c00002'").await;
    assert!(records.find(&decision_id(1)).await.is_err());
}
