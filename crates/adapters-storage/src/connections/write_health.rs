//! Whether the database takes writes.

use std::sync::{Mutex, PoisonError};

use sea_orm::DbErr;

use crate::errors::is_corrupt;

/// The outcome of the last write of this process.
#[derive(Debug, Default)]
pub(crate) struct WriteHealth(Mutex<Option<String>>);

impl WriteHealth {
    /// Records the outcome of a write.
    pub(crate) fn record<T>(&self, outcome: &Result<T, DbErr>) {
        match outcome {
            Ok(_) => *self.lock() = None,
            Err(error) => self.failed(error),
        }
    }

    /// Records a failed write. An error of the data is no failure of the database.
    pub(crate) fn failed(&self, error: &DbErr) {
        if !is_corrupt(error) {
            *self.lock() = Some(error.to_string());
        }
    }

    /// Returns the error of the last write; `None` if it succeeded.
    pub(crate) fn failure(&self) -> Option<String> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
