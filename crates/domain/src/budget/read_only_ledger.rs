//! The ledger of a process whose store is opened for reading only.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    ExpiryReport, Hold, HoldRequest, Ledger, LedgerAudit, LedgerReports, LimitExceeded, LimitStatus, Payer, UsageCharge,
};
use crate::error::StoreError;
use crate::ids::{DecisionId, WorkspaceId};
use crate::money::Usd;
use crate::usage::AttemptRecord;
use crate::usage::UnknownUsage;

/// Rejects every hold, so that nothing is sent that could not be charged, and reads what is in the store.
pub struct ReadOnlyLedger(pub Arc<dyn LedgerReports>);

fn read_only() -> StoreError {
    StoreError::unavailable("the database is opened for reading only")
}

#[async_trait]
impl Ledger for ReadOnlyLedger {
    async fn reserve(&self, _: HoldRequest) -> Result<Result<Hold, LimitExceeded>, StoreError> {
        Err(read_only())
    }

    async fn extend(
        &self,
        _: &DecisionId,
        _: Usd,
        _: &[AttemptRecord],
    ) -> Result<Result<(), LimitExceeded>, StoreError> {
        Err(read_only())
    }

    async fn settle(&self, _: UsageCharge) -> Result<(), StoreError> {
        Err(read_only())
    }

    async fn release(&self, _: &DecisionId) -> Result<(), StoreError> {
        Ok(())
    }

    async fn expire(&self, _: UnknownUsage, _: u64) -> Result<ExpiryReport, StoreError> {
        Ok(ExpiryReport::default())
    }

    async fn standing(&self, payer: &Payer) -> Result<Vec<LimitStatus>, StoreError> {
        self.0.limit_statuses(payer).await
    }

    async fn recorded_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError> {
        self.0.recorded_bytes(workspace_id).await
    }

    async fn audit(&self) -> Result<LedgerAudit, StoreError> {
        self.0.audit().await
    }
}
