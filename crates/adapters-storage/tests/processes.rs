//! Several processes on one database; each handle represents one.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use adapters_storage::{
    Database, SeaOrmApiKeyRepository, SeaOrmDocumentRepository, SeaOrmGuardrailRepository, SeaOrmWorkspaceRepository,
};
use common::*;
use domain::api_key::{ApiKey, ApiKeyRepository, ApiKeyScope, KeyReference};
use domain::audit::Actor;
use domain::authority::ManagementScope;
use domain::file::{DocumentRepository, Reservation};
use domain::guardrail::GuardrailRepository;
use domain::workspace::{Workspace, WorkspaceRepository};
use tokio::task::JoinSet;

async fn handles(folder: &Folder, count: usize) -> Vec<Database> {
    let mut starting = JoinSet::new();
    for _ in 0..count {
        let settings = folder.settings();
        starting.spawn(async move { open(&settings).await });
    }
    starting.join_all().await
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_first_starts_all_succeed() {
    for _ in 0..5 {
        let folder = Folder::new();
        for database in handles(&folder, 6).await {
            assert!(database.migration_status().await.unwrap().iter().all(|step| step.applied));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_first_starts_create_single_first_key() {
    let folder = Folder::new();
    let mut starting = JoinSet::new();
    for (number, database) in handles(&folder, 6).await.into_iter().enumerate() {
        starting.spawn(async move {
            let workspaces = SeaOrmWorkspaceRepository::new(database);
            let first = Workspace { is_default: true, ..workspace(number as u128) };
            workspaces
                .bootstrap(
                    &first,
                    &key(number as u64, ApiKeyScope::Management(ManagementScope::UNRESTRICTED)),
                    &common::audit(),
                )
                .await
                .unwrap()
        });
    }
    let made = starting.join_all().await;
    assert_eq!(made.iter().filter(|made| **made).count(), 1, "{made:?}");
    let database = folder.open().await;
    assert_eq!(SeaOrmWorkspaceRepository::new(database.clone()).list().await.unwrap().len(), 1);
    assert_eq!(SeaOrmApiKeyRepository::new(database).list(None).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_processes_share_quota_exactly() {
    let folder = Folder::new();
    let handles = handles(&folder, 3).await;
    SeaOrmWorkspaceRepository::new(handles[0].clone()).insert(&workspace(1), false, &common::audit()).await.unwrap();
    let mut reserving = JoinSet::new();
    for number in 0..60_u128 {
        let documents = SeaOrmDocumentRepository::new(handles[number as usize % 3].clone());
        reserving.spawn(async move { documents.reserve(&pending(number, 1, 3), quota(100), None).await.unwrap() });
    }
    let results = reserving.join_all().await;
    assert_eq!(results.iter().filter(|result| **result == Reservation::Reserved).count(), 33);
    let refused = Reservation::QuotaExceeded { used_bytes: 99 };
    assert_eq!(results.iter().filter(|result| **result == refused).count(), 27);
    let documents = SeaOrmDocumentRepository::new(handles[2].clone());
    assert_eq!(documents.used_bytes(workspace_id(1)).await.unwrap(), 99);
}

/// Adds keys `0..count` with one statement, unlike the repository.
async fn add_keys(folder: &Folder, count: u64) -> Vec<KeyReference> {
    let pool = folder.raw().await;
    let mut transaction = pool.begin().await.unwrap();
    for number in 0..count {
        sea_orm::sqlx::query(
            "INSERT INTO api_keys (id, hash, label, name, scope, workspace_id, disabled, deleted, created_at)
             VALUES (?, ?, 'label', 'name', 'inference', ?, 0, 0, ?)",
        )
        .bind(key_id(number).uuid().as_bytes().to_vec())
        .bind(hash(number).bytes().to_vec())
        .bind(workspace_id(1).to_string())
        .bind(i64::try_from(number).unwrap())
        .execute(&mut *transaction)
        .await
        .unwrap();
    }
    transaction.commit().await.unwrap();
    pool.close().await;
    let mut names: Vec<KeyReference> = (0..count).map(|number| hash(number).into()).collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_assignment_accepts_100000_keys() {
    let folder = Folder::new();
    let database = folder.open().await;
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), false, &common::audit()).await.unwrap();
    let guardrails = SeaOrmGuardrailRepository::new(database.clone());
    for number in [1, 2] {
        assert!(guardrails.insert(&guardrail(number, 1), false, &common::audit()).await.unwrap());
    }
    let hashes = add_keys(&folder, 100_000).await;
    let ids: Vec<KeyReference> = (0..100_000).map(|number| key_id(number).into()).collect();
    let both: Vec<KeyReference> = ids.iter().chain(&hashes).copied().collect();
    for (what, guardrail, names) in [("fresh", 1, &hashes), ("again", 1, &ids), ("replacing", 2, &both)] {
        let assigned =
            domain::testing::assign_keys(&guardrails, guardrail_id(guardrail), names, &Actor::system()).await.unwrap();
        assert_eq!(assigned, Some(100_000), "{what}");
    }
    assert_eq!(guardrails.count_keys(guardrail_id(1)).await.unwrap(), 0);
    assert_eq!(guardrails.count_keys(guardrail_id(2)).await.unwrap(), 100_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_assignments_are_atomic() {
    let folder = Folder::new();
    let handles = handles(&folder, 2).await;
    SeaOrmWorkspaceRepository::new(handles[0].clone()).insert(&workspace(1), false, &common::audit()).await.unwrap();
    for number in [0, 1] {
        let guardrails = SeaOrmGuardrailRepository::new(handles[0].clone());
        assert!(guardrails.insert(&guardrail(number, 1), false, &common::audit()).await.unwrap());
    }
    let hashes = add_keys(&folder, 5_000).await;
    let mut assigning = JoinSet::new();
    for number in 0..6 {
        let guardrails = SeaOrmGuardrailRepository::new(handles[number % 2].clone());
        let hashes = hashes.clone();
        assigning.spawn(async move {
            domain::testing::assign_keys(&guardrails, guardrail_id(number as u128 % 2), &hashes, &Actor::system())
                .await
                .unwrap()
        });
    }
    assert_eq!(assigning.join_all().await, [Some(5_000); 6]);
    let keys: Vec<ApiKey> = SeaOrmApiKeyRepository::new(handles[1].clone()).list(Some(workspace_id(1))).await.unwrap();
    assert!(keys[0].guardrail_id.is_some());
    assert!(keys.iter().all(|key| key.guardrail_id == keys[0].guardrail_id));
}
