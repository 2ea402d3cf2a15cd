//! Stored requests in memory.

use std::sync::MutexGuard;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::memory_state::{Database, State};
use super::memory_store::MemoryIdempotentRequests;
use crate::audit::AuditDraft;
use crate::error::StoreError;
use crate::repetition::{IdempotentRequests, REPETITION_KEPT, RepetitionScope, StoredRepetition};

impl State {
    pub(super) fn repetition(&self, scope: &RepetitionScope, now: DateTime<Utc>) -> Option<&StoredRepetition> {
        let (stored, at) = self.repetitions.get(scope)?;
        (*at > now - REPETITION_KEPT).then_some(stored)
    }

    /// Checks that no request of the entry's scope is stored.
    pub(super) fn check_repetition(&self, audit: &AuditDraft, now: DateTime<Utc>) -> Result<(), StoreError> {
        let is_stored = |stored: &StoredRepetition| self.repetition(&stored.request.scope, now).is_some();
        if audit.repetition.as_ref().is_some_and(is_stored) { Err(StoreError::Repeated) } else { Ok(()) }
    }
}

impl Database {
    /// Begins a change with this audit entry.
    ///
    /// # Errors
    /// A request of the same scope is stored.
    pub(super) fn begin(&self, audit: &AuditDraft) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self.state();
        state.check_repetition(audit, self.now())?;
        Ok(state)
    }
}

#[async_trait]
impl IdempotentRequests for MemoryIdempotentRequests {
    async fn find(&self, scope: &RepetitionScope) -> Result<Option<StoredRepetition>, StoreError> {
        Ok(self.0.state().repetition(scope, self.0.now()).cloned())
    }

    async fn store(&self, stored: &StoredRepetition) -> Result<(), StoreError> {
        let (mut state, now) = (self.0.state(), self.0.now());
        if state.repetition(&stored.request.scope, now).is_some() {
            return Err(StoreError::Repeated);
        }
        state.repetitions.insert(stored.request.scope.clone(), (stored.clone(), now));
        Ok(())
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        let mut state = self.0.state();
        let mut old: Vec<(DateTime<Utc>, RepetitionScope)> = state
            .repetitions
            .iter()
            .filter(|(_, (_, at))| *at < before)
            .map(|(scope, (_, at))| (*at, scope.clone()))
            .collect();
        old.sort_by_key(|(at, _)| *at);
        old.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        for (_, scope) in &old {
            state.repetitions.remove(scope);
        }
        Ok(old.len() as u64)
    }
}
