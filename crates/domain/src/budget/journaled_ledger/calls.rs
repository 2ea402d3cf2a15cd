//! Open calls, and the errors of their charges.

use std::sync::PoisonError;

use super::sync::{Mutex, MutexGuard};
use crate::budget::allowances::CounterId;
use crate::budget::{Hold, UsageJournalError};
use crate::error::StoreError;
use crate::ids::{DecisionId, IdMap};
use crate::money::Usd;

/// The number of locks over which requests are spread.
const SHARDS: usize = 16;

/// A sent request whose end is not in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenCall {
    pub(super) hold: Hold,
    /// The counters of its hold.
    pub(super) counters: Vec<CounterId>,
    /// The number of its first journal entry.
    pub(super) sequence: u64,
    /// The payload bytes that the journal reserves for its end.
    pub(super) reserved_bytes: usize,
}

impl OpenCall {
    /// Returns true if the hold is in counters, and so in the allowances of the workspace.
    pub(super) fn is_limited(&self) -> bool {
        !self.counters.is_empty()
    }
}

/// The open requests of the process, by id.
#[derive(Debug)]
pub(super) struct OpenCalls {
    shards: [Mutex<IdMap<DecisionId, OpenCall>>; SHARDS],
}

impl OpenCalls {
    pub(super) fn new() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()) }
    }

    pub(super) fn get(&self, id: &DecisionId) -> Option<OpenCall> {
        self.shard(id).get(id).cloned()
    }

    pub(super) fn insert(&self, call: OpenCall) {
        self.shard(&call.hold.id).insert(call.hold.id.clone(), call);
    }

    pub(super) fn remove(&self, id: &DecisionId) -> Option<OpenCall> {
        self.shard(id).remove(id)
    }

    /// Adds to the held amount of a request.
    pub(super) fn increase(&self, id: &DecisionId, more: Usd) {
        if let Some(call) = self.shard(id).get_mut(id) {
            call.hold.amount = call.hold.amount.checked_add(more).unwrap_or(Usd::from_pico(i64::MAX));
        }
    }

    /// Returns the number of the oldest entry of an open request.
    pub(super) fn oldest_sequence(&self) -> Option<u64> {
        let oldest = |shard: &Mutex<IdMap<_, OpenCall>>| lock(shard).values().map(|call| call.sequence).min();
        self.shards.iter().filter_map(oldest).min()
    }

    pub(super) fn count(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Returns the shard by the last digit, which is random in ids of the process.
    fn shard(&self, id: &DecisionId) -> MutexGuard<'_, IdMap<DecisionId, OpenCall>> {
        let last = id.as_str().bytes().last().unwrap_or_default();
        lock(&self.shards[usize::from(last) % SHARDS])
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An error of appending a charge.
#[derive(Debug)]
pub(super) enum ChargeError {
    /// The journal was sealed. The charge belongs into the next journal of the process.
    Sealed,
    /// The charge is invalid, or the journal failed.
    Store(StoreError),
}

impl ChargeError {
    /// Converts the error for a caller without another journal.
    pub(super) fn into_store_error(self) -> StoreError {
        match self {
            Self::Sealed => journal_failed(UsageJournalError::Sealed),
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
    match error {
        UsageJournalError::Unavailable(error) => match error.downcast::<StoreError>().map(|error| *error) {
            Ok(StoreError::Unavailable(error)) | Err(error) => StoreError::Unavailable(error),
            Ok(error) => StoreError::unavailable(error),
        },
        error => StoreError::unavailable(error),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn store_failure_of_a_journal_is_reported_once_and_names_no_disk() {
        let of_store = || StoreError::unavailable("connection refused");
        let failed = journal_failed(UsageJournalError::Unavailable(Box::new(of_store())));
        assert_eq!(failed.to_string(), of_store().to_string());
        assert_eq!(failed.source().unwrap().to_string(), "connection refused");
        let failed = journal_failed(UsageJournalError::Unavailable("no space".into()));
        assert_eq!(failed.source().unwrap().to_string(), "no space");
        let corrupt = UsageJournalError::Unavailable(Box::new(StoreError::Corrupt("a row".to_owned())));
        assert!(matches!(journal_failed(corrupt), StoreError::Unavailable(_)), "the request can be repeated");
    }
}
