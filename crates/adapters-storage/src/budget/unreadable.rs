//! The rows that budget alerts skip because they cannot be read.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use domain::error::StoreError;

/// The most rows that are remembered. Further ones are neither logged nor counted.
const MAX_ROWS: usize = 1024;

/// The unreadable rows that this process skipped: limits and alerts. Each is logged once.
#[derive(Debug, Default)]
pub(crate) struct UnreadableRows(Mutex<BTreeSet<String>>);

impl UnreadableRows {
    /// Skips a row, named by its account or number.
    pub(super) fn skip(&self, row: String, error: &StoreError) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.len() >= MAX_ROWS || rows.contains(&row) {
            return;
        }
        tracing::error!(row, error = error as &dyn std::error::Error, "budget alert skipped: row not readable");
        rows.insert(row);
    }

    /// Returns the number of skipped rows.
    pub(crate) fn count(&self) -> u64 {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        u64::try_from(rows.len()).unwrap_or(u64::MAX)
    }
}
