//! Records, as written by folds.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::IpAddr;
use std::time::Duration;

use common::*;
use domain::error::StoreError;
use domain::testing::join_all;
use domain::usage::{AttemptOutcome, AttemptRecord, UsageRecord};

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_folds_write_all_records() {
    let folder = Folder::new();
    let database = folder.open().await;
    let records = Records::over(database);
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
async fn acknowledged_record_survives_kill_of_process() {
    let folder = Folder::new();
    let database = folder.open().await;
    let records = Records::over(database);
    records.record(usage(1, 1)).await.unwrap();
    // A copy of the files is the state after a kill at this moment.
    let after = Folder::new();
    std::fs::create_dir_all(after.path().parent().unwrap()).unwrap();
    for suffix in ["", "-wal"] {
        let name = |folder: &Folder| format!("{}{suffix}", folder.path().display());
        std::fs::copy(name(&folder), name(&after)).unwrap();
    }
    let records = Records::over(after.open().await);
    assert_eq!(records.find(&decision_id(1)).await.unwrap(), Some(usage(1, 1)));
}

#[tokio::test]
async fn closed_database_can_be_reopened() {
    let folder = Folder::new();
    let database = folder.open().await;
    let records = Records::over(database.clone());
    records.record(usage(1, 1)).await.unwrap();
    database.close().await;
    assert!(records.record(usage(2, 1)).await.is_err(), "it is closed");
    let records = Records::over(folder.open().await);
    assert_eq!(records.list(workspace_id(1), 10).await.unwrap(), [usage(1, 1)]);
}

/// Attempts without the members that follow from the record.
const SHORT: &str = r#"[{"p":"one","u":"m-1","r":"overloaded","s":529,"l":2000},{"u":"m-2","r":"completed","l":3000}]"#;

#[tokio::test]
async fn missing_members_of_attempts_follow_from_record() {
    let folder = Folder::new();
    let records = Records::over(folder.open().await);
    records.record(usage(1, 1)).await.unwrap();
    folder.execute(&format!("UPDATE usage_records SET attempts = '{SHORT}'")).await;
    let record = usage(1, 1);
    let failed = AttemptRecord {
        provider: "one".into(),
        model: record.model.clone(),
        upstream_model: "m-1".into(),
        part: 0,
        outcome: AttemptOutcome::Overloaded,
        upstream_status: Some(529),
        began: Duration::ZERO,
        latency: Duration::from_millis(2),
        input_tokens: 0,
        output_tokens: 0,
        usage_source: record.usage_source,
        prices: record.prices,
    };
    let answered = AttemptRecord {
        provider: record.provider.as_str().into(),
        upstream_model: "m-2".into(),
        outcome: AttemptOutcome::Completed,
        upstream_status: None,
        began: Duration::from_millis(2),
        latency: Duration::from_millis(3),
        input_tokens: record.input_tokens,
        output_tokens: record.output_tokens,
        ..failed.clone()
    };
    let expected = UsageRecord { attempts: vec![failed, answered].into(), ..record };
    assert_eq!(records.find(&decision_id(1)).await.unwrap(), Some(expected.clone()));
    assert_eq!(records.list(workspace_id(1), 10).await.unwrap(), [expected]);
}

#[tokio::test]
async fn unreadable_attempt_is_corrupt() {
    let folder = Folder::new();
    let records = Records::over(folder.open().await);
    records.record(usage(1, 1)).await.unwrap();
    let store = async |members: &str| {
        let attempt = format!(r#"[{{"p":"p","u":"m","r":"http_error","l":1{members}}}]"#);
        folder.execute(&format!("UPDATE usage_records SET attempts = '{attempt}'")).await;
    };
    store("").await;
    assert!(records.find(&decision_id(1)).await.unwrap().is_some(), "it is readable without damage");
    let newer = r#"[{"p":"p","u":"m","r":"of_a_newer_release","l":1}]"#;
    folder.execute(&format!("UPDATE usage_records SET attempts = '{newer}'")).await;
    let found = records.find(&decision_id(1)).await.unwrap().unwrap();
    assert_eq!(found.attempts[0].outcome, AttemptOutcome::Unknown);
    for damage in [
        r#""m":"no-slash""#,
        r#""k":-1"#,
        r#""b":-1"#,
        r#""i":"many""#,
        r#""t":"guessed""#,
        r#""pi":"cheap""#,
        r#""po":"cheap""#,
    ] {
        store(&format!(",{damage}")).await;
        let found = records.find(&decision_id(1)).await;
        assert!(matches!(found, Err(StoreError::Corrupt(_))), "{damage}: {found:?}");
    }
    for (index, of) in [(0, 0), (3, 3), (-1, 1), (0, 4_294_967_296_u64)] {
        let damage = format!("UPDATE usage_records SET attempts = '[]', share_index = {index}, share_of = {of}");
        folder.execute(&damage).await;
        let found = records.find(&decision_id(1)).await;
        assert!(matches!(found, Err(StoreError::Corrupt(_))), "{damage}: {found:?}");
    }
}

#[tokio::test]
async fn client_address_takes_4_or_16_bytes() {
    let folder = Folder::new();
    let records = Records::over(folder.open().await);
    for (number, address) in [(1, "192.0.2.7"), (2, "2001:db8::7")] {
        let client_address = Some(address.parse::<IpAddr>().unwrap());
        let record = UsageRecord { client_address, ..usage(number, 1) };
        records.record(record.clone()).await.unwrap();
        assert_eq!(records.find(&decision_id(number)).await.unwrap(), Some(record));
    }
    assert_eq!(folder.count("usage_records WHERE client_address = x'c0000207'").await, 1);
    folder.execute("UPDATE usage_records SET client_address = x'c00002'").await;
    assert!(records.find(&decision_id(1)).await.is_err());
}
