//! The fakes keep the same contracts as the real adapters.

use domain::testing::contract::{self, Blobs, Stores};

#[tokio::test]
async fn audit_log() {
    contract::audit_log(async || Stores::memory()).await;
}

#[tokio::test]
async fn workspace_repository() {
    contract::workspace_repository(async || Stores::memory()).await;
}

#[tokio::test]
async fn api_key_repository() {
    contract::api_key_repository(async || Stores::memory()).await;
}

#[tokio::test]
async fn key_grants() {
    contract::key_grants(async || Stores::memory()).await;
}

#[tokio::test]
async fn guardrail_repository() {
    contract::guardrail_repository(async || Stores::memory()).await;
}

#[tokio::test]
async fn guardrail_assignments() {
    contract::guardrail_assignments(async || Stores::memory()).await;
}

#[tokio::test]
async fn document_repository() {
    contract::document_repository(async || Stores::memory()).await;
}

#[tokio::test]
async fn model_repository() {
    contract::model_repository(async || Stores::memory()).await;
}

#[tokio::test]
async fn change_feed() {
    contract::change_feed(async || Stores::memory()).await;
}

#[tokio::test]
async fn usage_repository() {
    contract::usage_repository(async || Stores::memory()).await;
}

#[tokio::test]
async fn destination_repository() {
    contract::destination_repository(async || Stores::memory()).await;
}

#[tokio::test]
async fn outbox() {
    contract::outbox(async || Stores::memory()).await;
}

#[tokio::test]
async fn blob_store() {
    contract::blob_store(async || Blobs::memory()).await;
}

#[tokio::test]
async fn ledger() {
    contract::ledger(async || Stores::memory()).await;
}
