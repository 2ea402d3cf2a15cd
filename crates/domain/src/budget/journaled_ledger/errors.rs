//! Errors of the ledger.

use crate::budget::{UsageCharge, UsageJournalError};
use crate::error::StoreError;

/// An error of appending a charge.
#[derive(Debug)]
pub(super) enum ChargeError {
    /// The journal was sealed. The charge belongs into the next journal of the process.
    Sealed(Box<UsageCharge>),
    /// The charge is invalid, or the journal failed.
    Store(StoreError),
}

impl ChargeError {
    /// Converts the error for a caller without another journal.
    pub(super) fn into_store_error(self) -> StoreError {
        match self {
            Self::Sealed(_) => journal_failed(UsageJournalError::Sealed),
            Self::Store(error) => error,
        }
    }
}

impl From<StoreError> for ChargeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Converts an error of the journal: requests that it concerns are rejected until it takes entries again.
pub(super) fn journal_failed(error: UsageJournalError) -> StoreError {
    StoreError::unavailable(error)
}
