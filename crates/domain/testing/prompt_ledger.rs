//! A ledger that does its background work before every request.

use std::sync::Arc;

use async_trait::async_trait;

use crate::budget::{
    Hold, HoldRequest, JournaledLedger, KeySpend, Ledger, LedgerReader, LimitExceeded, LimitStatus, Payer, UsageCharge,
};
use crate::error::StoreError;
use crate::ids::{ApiKeyId, DecisionId, WorkspaceId};
use crate::money::Usd;
use crate::usage::AttemptRecord;

/// A [`JournaledLedger`] without a background task: it reads changes of limits before every hold, and folds each charge
/// before it returns. For contract suites, which read the store at once.
#[derive(Clone)]
pub struct PromptLedger(pub Arc<JournaledLedger>);

#[async_trait]
impl Ledger for PromptLedger {
    async fn reserve(&self, request: HoldRequest) -> Result<Result<Hold, LimitExceeded>, StoreError> {
        self.0.tick().await?;
        self.0.reserve(request).await
    }

    async fn increase(
        &self,
        id: &DecisionId,
        more: Usd,
        attempts: &[AttemptRecord],
    ) -> Result<Result<(), LimitExceeded>, StoreError> {
        self.0.tick().await?;
        self.0.increase(id, more, attempts).await
    }

    async fn settle(&self, charge: &UsageCharge) -> Result<(), StoreError> {
        self.0.settle(charge).await?;
        self.0.flush().await
    }

    async fn release(&self, id: &DecisionId) -> Result<(), StoreError> {
        self.0.release(id).await
    }
}

#[async_trait]
impl LedgerReader for PromptLedger {
    async fn limit_statuses(&self, payer: &Payer) -> Result<Vec<LimitStatus>, StoreError> {
        self.0.limit_statuses(payer).await
    }

    async fn workspace_limit_statuses(&self, id: WorkspaceId) -> Result<Vec<LimitStatus>, StoreError> {
        self.0.workspace_limit_statuses(id).await
    }

    async fn key_spend(&self, keys: &[(WorkspaceId, ApiKeyId)]) -> Result<Vec<KeySpend>, StoreError> {
        self.0.key_spend(keys).await
    }

    async fn store_pending(&self) -> Result<(), StoreError> {
        self.0.store_pending().await
    }
}
