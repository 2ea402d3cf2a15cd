//! The database in memory: one state behind one lock, so that every method is one transaction.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::system::lock;
use crate::api_key::{ApiKey, ApiKeyHash};
use crate::change_feed::{ChangeFeed, ChangeVersions};
use crate::error::StoreError;
use crate::file::{Document, IdempotencyKey, PendingDocument};
use crate::guardrail::Guardrail;
use crate::ids::DocumentId;
use crate::model::{CatalogueChange, Model, ModelRepository};
use crate::usage::UsageRecord;
use crate::workspace::Workspace;

/// Every repository, and the change feed, over one state. Clones share it.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<State>>);

#[derive(Default)]
pub(super) struct State {
    pub(super) versions: ChangeVersions,
    pub(super) workspaces: Vec<Workspace>,
    pub(super) keys: HashMap<ApiKeyHash, StoredKey>,
    pub(super) guardrails: Vec<Guardrail>,
    pub(super) documents: HashMap<DocumentId, StoredDocument>,
    pub(super) claims: HashMap<(ApiKeyHash, &'static str, IdempotencyKey), StoredClaim>,
    pub(super) models: Vec<Model>,
    pub(super) usage: Vec<UsageRecord>,
}

pub(super) struct StoredKey {
    pub(super) key: ApiKey,
    /// The row stays so that the hash is never given out again.
    pub(super) deleted: bool,
}

pub(super) enum StoredDocument {
    Pending(PendingDocument),
    Ready(Document),
}

pub(super) struct StoredClaim {
    pub(super) subject: String,
    pub(super) document: DocumentId,
    pub(super) made_at: DateTime<Utc>,
}

impl MemoryStore {
    /// An empty database.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

#[async_trait]
impl ChangeFeed for MemoryStore {
    async fn versions(&self) -> Result<ChangeVersions, StoreError> {
        Ok(self.state().versions)
    }
}

#[async_trait]
impl ModelRepository for MemoryStore {
    async fn list(&self) -> Result<Vec<Model>, StoreError> {
        Ok(self.state().models.clone())
    }

    async fn apply(&self, change: &CatalogueChange, expected_version: u64) -> Result<bool, StoreError> {
        let mut state = self.state();
        if state.versions.catalogue != expected_version {
            return Ok(false);
        }
        state.models.retain(|row| !change.remove.contains(&row.id));
        for row in &change.upsert {
            match state.models.iter_mut().find(|stored| stored.id == row.id) {
                Some(stored) => stored.clone_from(row),
                None => state.models.push(row.clone()),
            }
        }
        state.versions.catalogue += 1;
        Ok(true)
    }
}
