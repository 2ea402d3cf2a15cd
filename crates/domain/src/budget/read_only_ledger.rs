//! The ledger of a process with a read-only store.

use async_trait::async_trait;

use super::{Hold, HoldRequest, Ledger, LimitExceeded, UsageCharge};
use crate::error::StoreError;
use crate::ids::DecisionId;
use crate::money::Usd;
use crate::usage::AttemptRecord;

/// Rejects every hold, so that no request is sent that could not be charged.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOnlyLedger;

fn read_only() -> StoreError {
    StoreError::unavailable("the database is read-only")
}

#[async_trait]
impl Ledger for ReadOnlyLedger {
    async fn reserve(&self, _: HoldRequest) -> Result<Result<Hold, LimitExceeded>, StoreError> {
        Err(read_only())
    }

    async fn increase(
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
}
