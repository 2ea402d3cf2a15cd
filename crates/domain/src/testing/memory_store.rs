//! The database in memory: one state with one lock, so that every method is one transaction.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::FixedClock;
use super::memory_alerts::StoredAlert;
use super::memory_budget::Allotments;
use super::memory_changes::MemoryChanges;
use super::memory_ledger::LedgerState;
use super::memory_outbox::StoredMessage;
use super::system::lock;
use crate::api_key::ApiKey;
use crate::audit::{
    AuditAnchor, AuditDraft, AuditEntry, AuditHash, AuditLog, AuditState, RowViolation, StoredAuditEntry,
};
use crate::change_feed::ChangeSubject;
use crate::error::StoreError;
use crate::file::{Document, IdempotencyKey, PendingDocument};
use crate::guardrail::{Guardrail, GuardrailVersion};
use crate::ids::{ApiKeyId, DocumentId};
use crate::model::{CatalogueChange, Model, ModelRepository};
use crate::observability::Destination;
use crate::system::Clock;
use crate::usage::{Rejection, UsageRecord};
use crate::workspace::Workspace;

/// All repositories and the change feed over one state. Clones share it.
#[derive(Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    clock: FixedClock,
}

#[derive(Default, Clone)]
pub(super) struct State {
    pub(super) changes: MemoryChanges,
    pub(super) workspaces: Vec<Workspace>,
    pub(super) keys: HashMap<ApiKeyId, StoredKey>,
    pub(super) guardrails: Vec<Guardrail>,
    pub(super) documents: HashMap<DocumentId, StoredDocument>,
    pub(super) claims: HashMap<(ApiKeyId, &'static str, IdempotencyKey), StoredClaim>,
    pub(super) models: Vec<Model>,
    pub(super) usage: Vec<UsageRecord>,
    pub(super) ledger: LedgerState,
    pub(super) allotments: Allotments,
    pub(super) destinations: Vec<Destination>,
    pub(super) outbox: Vec<StoredMessage>,
    pub(super) guardrail_versions: Vec<GuardrailVersion>,
    pub(super) audit: Vec<AuditEntry>,
    pub(super) alerts: Vec<StoredAlert>,
    pub(super) rejections: HashMap<(Rejection, DateTime<Utc>), u64>,
}

impl State {
    /// Appends the audit entry of a change, in its transaction.
    pub(super) fn note(&mut self, audit: &AuditDraft, at: DateTime<Utc>) -> AuditEntry {
        let previous = self.audit.last().map(|entry| (entry.seq, entry.hash));
        // Rows in memory cannot be modified past the log, so there is no row state to verify.
        let entry = AuditEntry::following(previous, at, audit, AuditHash::NONE);
        self.audit.push(entry.clone());
        entry
    }
}

#[derive(Clone)]
pub(super) struct StoredKey {
    pub(super) key: ApiKey,
    /// The row stays so that id and hash are never reused.
    pub(super) deleted: bool,
    /// The actor and the time of the guardrail's assignment.
    pub(super) assigned: Option<(String, DateTime<Utc>)>,
}

#[derive(Clone)]
pub(super) enum StoredDocument {
    Pending(PendingDocument),
    /// The document, and its bytes of the quota.
    Ready(Document, u64),
}

#[derive(Clone)]
pub(super) struct StoredClaim {
    pub(super) subject: String,
    pub(super) document: DocumentId,
    pub(super) made_at: DateTime<Utc>,
}

impl MemoryStore {
    /// Creates an empty database.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the clock; the default clock never moves.
    #[must_use]
    pub fn with_clock(self, clock: FixedClock) -> Self {
        Self { clock, ..self }
    }

    /// Returns a copy of the current state, with the same clock.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { state: Arc::new(Mutex::new(self.state().clone())), clock: self.clock.clone() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }
}

#[async_trait]
impl ModelRepository for MemoryStore {
    async fn list(&self) -> Result<Vec<Model>, StoreError> {
        Ok(self.state().models.clone())
    }

    async fn version(&self) -> Result<u64, StoreError> {
        Ok(self.state().changes.catalogue)
    }

    async fn apply(
        &self,
        change: &CatalogueChange,
        expected_version: u64,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        if state.changes.catalogue != expected_version {
            return Ok(false);
        }
        state.models.retain(|row| !change.remove.contains(&row.id));
        for row in &change.upsert {
            match state.models.iter_mut().find(|stored| stored.id == row.id) {
                Some(stored) => stored.clone_from(row),
                None => state.models.push(row.clone()),
            }
        }
        state.changed(self.now(), [ChangeSubject::Catalogue]);
        state.note(audit, self.now());
        Ok(true)
    }
}

#[async_trait]
impl AuditLog for MemoryStore {
    async fn append(&self, draft: &AuditDraft) -> Result<AuditEntry, StoreError> {
        Ok(self.state().note(draft, self.now()))
    }

    async fn read(&self, from: u64, limit: u64) -> Result<Vec<AuditEntry>, StoreError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(self.state().audit.iter().filter(|entry| entry.seq >= from).take(limit).cloned().collect())
    }

    async fn newest(&self, limit: u64) -> Result<Vec<AuditEntry>, StoreError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(self.state().audit.iter().rev().take(limit).cloned().collect())
    }

    async fn read_stored(&self, after: Option<i64>, limit: u64) -> Result<Vec<StoredAuditEntry>, StoreError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let stored = self.state().audit.iter().map(StoredAuditEntry::from).collect::<Vec<_>>();
        Ok(stored.into_iter().filter(|entry| Some(entry.seq) > after).take(limit).collect())
    }

    async fn state(&self) -> Result<Option<AuditState>, StoreError> {
        let state = self.state();
        let newest = state.audit.last().map(|entry| AuditAnchor { seq: entry.seq, hash: entry.hash });
        let removed = state.audit.first().map(|entry| AuditAnchor { seq: entry.seq - 1, hash: entry.previous_hash });
        let removed = removed.unwrap_or(AuditAnchor::NONE);
        let newest = newest.unwrap_or(AuditAnchor::NONE);
        Ok(Some(AuditState { newest, removed, removed_count: removed.seq }))
    }

    async fn check_rows(&self, _limit: usize) -> Result<Vec<RowViolation>, StoreError> {
        Ok(Vec::new())
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        let mut state = self.state();
        let old = state.audit.iter().take_while(|entry| entry.at < before).count();
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let going = old.min(most).min(state.audit.len().saturating_sub(1));
        state.audit.drain(..going);
        Ok(going as u64)
    }
}
