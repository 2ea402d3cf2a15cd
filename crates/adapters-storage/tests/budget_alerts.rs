//! Budget alerts beside damaged rows.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use adapters_storage::{Database, SeaOrmApiKeyRepository, SeaOrmBudgetAlerts, SeaOrmWorkspaceRepository};
use common::*;
use domain::api_key::{ApiKey, ApiKeyRepository, ApiKeyScope};
use domain::budget::{BudgetAlert, BudgetAlertStore, SpendLimit};
use domain::ids::ApiKeyId;
use domain::money::Usd;
use domain::usage::UsageRecord;
use domain::workspace::WorkspaceRepository;

/// Inserts workspace 1 with keys from 1, each with a limit of 100 picodollars.
async fn insert_keys(database: &Database, keys: u64) {
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), false, &audit()).await.unwrap();
    let repository = SeaOrmApiKeyRepository::new(database.clone());
    for number in 1..=keys {
        let limit = Some(SpendLimit { amount: Usd::from_pico(100), reset: None });
        let key = ApiKey { limit, ..key(number, ApiKeyScope::Inference(workspace_id(1))) };
        assert!(repository.insert(&key, &audit()).await.unwrap().is_inserted());
    }
}

async fn unpublished(database: &Database) -> Vec<BudgetAlert> {
    SeaOrmBudgetAlerts::new(database.clone()).unpublished(100).await.unwrap()
}

/// Returns the keys of the unpublished alerts.
async fn alerted(database: &Database) -> Vec<ApiKeyId> {
    let mut keys: Vec<ApiKeyId> = unpublished(database).await.iter().filter_map(BudgetAlert::api_key).collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn damaged_limit_drops_only_its_own_alerts() {
    let folder = Folder::new();
    let database = folder.open().await;
    insert_keys(&database, 5).await;
    let third = format!("UPDATE api_keys SET limit_reset = 'yearly' WHERE id = x'{:032x}'", key_id(3).uuid().as_u128());
    folder.execute(&third).await;

    let records = Records::over(database.clone());
    let charges = |first: u128| {
        let charge = |key: u64| UsageRecord { api_key: key_id(key), ..charged(first + u128::from(key), 50) };
        (1..=5).map(charge).collect::<Vec<_>>()
    };
    records.record_all(charges(0)).await.unwrap();
    assert_eq!(alerted(&database).await, [1, 2, 4, 5].map(key_id));
    assert_eq!(database.unreadable_alert_rows(), 1);
    records.record_all(charges(10)).await.unwrap();
    assert_eq!(alerted(&database).await.len(), 12, "80 and 100 %");
    assert_eq!(database.unreadable_alert_rows(), 1, "each row counts once");
}

#[tokio::test]
async fn damaged_alerts_do_not_block_others() {
    let folder = Folder::new();
    let database = folder.open().await;
    insert_keys(&database, 1).await;
    Records::over(database.clone()).record(charged(1, 50)).await.unwrap();
    // Older than the readable alert, and more than a page of them.
    folder
        .execute(
            "INSERT INTO budget_alerts (scope, subject, \"interval\", period_start, is_credit, base_pico, limit_pico, \
             threshold, workspace_id, spent_pico, created_at) \
             WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 250) \
             SELECT scope, subject, \"interval\", period_start, is_credit, base_pico, n, 51, workspace_id, spent_pico, 0 \
             FROM budget_alerts, numbers",
        )
        .await;
    for _ in 0..2 {
        assert_eq!(alerted(&database).await, [key_id(1)]);
        assert_eq!(database.unreadable_alert_rows(), 250);
    }
    let alerts = SeaOrmBudgetAlerts::new(database.clone());
    assert!(alerts.publish(&unpublished(&database).await[0], &[]).await.unwrap());
    assert_eq!(unpublished(&database).await, []);
}
