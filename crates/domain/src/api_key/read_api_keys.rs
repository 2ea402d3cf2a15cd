//! Reading keys with their usage.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::manage_api_keys::find_visible;
use super::{ApiKey, ApiKeyRepository, ChangeApiKeyError, KeyFilter};
use crate::authority::{Authority, Right};
use crate::budget::{KeySpend, LedgerReader, SpendLimit};
use crate::error::StoreError;
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::money::Usd;
use crate::naming::ResourceName;
use crate::system::Clock;
use crate::usage::UsageRepository;

/// A key with its usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// The key.
    pub key: ApiKey,
    /// Its spend; zeros for a management key.
    pub spend: KeySpend,
    /// The part of its limit that is not spent; negative after the limit was lowered below the spend.
    pub limit_remaining: Option<Usd>,
    /// The start of its last recorded request.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// The keys that a list contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyListFilter {
    /// Of the kind, name, label and guardrail of this filter; its other members are set by the use case.
    pub keys: KeyFilter,
    /// Inference keys of this workspace only.
    pub workspace_id: Option<WorkspaceId>,
    /// True adds expired keys.
    pub include_expired: bool,
}

/// Reads keys with their usage.
#[derive(Clone)]
pub struct ReadApiKeys {
    keys: Arc<dyn ApiKeyRepository>,
    ledger: Arc<dyn LedgerReader>,
    usage: Arc<dyn UsageRepository>,
    clock: Arc<dyn Clock>,
}

impl ReadApiKeys {
    /// Wires the ports; `ledger` is that of the process, so that the figures contain its charges and holds.
    pub fn new(
        keys: Arc<dyn ApiKeyRepository>,
        ledger: Arc<dyn LedgerReader>,
        usage: Arc<dyn UsageRepository>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { keys, ledger, usage, clock }
    }

    /// Returns a page of the keys that the caller sees. Management keys need [`Right::Unrestricted`].
    ///
    /// # Errors
    /// A missing right, or a failure of the store.
    pub async fn list(
        &self,
        by: &Authority,
        filter: KeyListFilter,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<KeyRecord>, u64), ChangeApiKeyError> {
        by.check(if filter.keys.is_management { Right::Unrestricted } else { Right::Read })?;
        let workspaces = match filter.workspace_id {
            Some(id) => Some(if by.sees(id) { vec![id] } else { Vec::new() }),
            None => by.scope().workspaces().map(<[WorkspaceId]>::to_vec),
        };
        let unexpired_at = (!filter.include_expired).then(|| self.clock.now());
        let filter = KeyFilter { workspaces, unexpired_at, ..filter.keys };
        let (keys, total) = self.keys.page(&filter, offset, limit).await?;
        Ok((self.records(keys).await?, total))
    }

    /// Returns a key that the caller sees.
    ///
    /// # Errors
    /// A missing right, an unknown or ambiguous name, or a failure of the store.
    pub async fn get(&self, by: &Authority, name: &ResourceName) -> Result<KeyRecord, ChangeApiKeyError> {
        by.check(Right::Read)?;
        let key = find_visible(&*self.keys, by, name).await?;
        Ok(self.record(key).await?)
    }

    /// Adds its usage to a key.
    ///
    /// # Errors
    /// The store failed.
    pub async fn record(&self, key: ApiKey) -> Result<KeyRecord, StoreError> {
        let unused = KeyRecord::unused(key.clone());
        Ok(self.records(vec![key]).await?.pop().unwrap_or(unused))
    }

    /// Adds their usage to keys, with one query of spend and one of records.
    async fn records(&self, keys: Vec<ApiKey>) -> Result<Vec<KeyRecord>, StoreError> {
        let of_workspace = |key: &ApiKey| Some((key.scope.workspace_id()?, key.id));
        let ids: Vec<(WorkspaceId, ApiKeyId)> = keys.iter().filter_map(of_workspace).collect();
        if ids.is_empty() {
            return Ok(keys.into_iter().map(KeyRecord::unused).collect());
        }
        let spends = self.ledger.key_spend(&ids).await?;
        let mut spends: HashMap<ApiKeyId, KeySpend> = ids.iter().map(|(_, id)| *id).zip(spends).collect();
        let ids: Vec<ApiKeyId> = ids.into_iter().map(|(_, id)| id).collect();
        let last_use = self.usage.last_use(&ids).await?;
        let record = |key: ApiKey| {
            let spend = spends.remove(&key.id).unwrap_or_default();
            let remaining =
                |limit: SpendLimit| Usd::from_pico(limit.amount.pico().saturating_sub(spend.of(limit.reset).pico()));
            let last_used_at = last_use.get(&key.id).copied();
            KeyRecord { limit_remaining: key.limit.map(remaining), spend, last_used_at, key }
        };
        Ok(keys.into_iter().map(record).collect())
    }
}

impl KeyRecord {
    /// Returns a key without usage, such as a management key.
    pub fn unused(key: ApiKey) -> Self {
        Self {
            spend: KeySpend::default(),
            limit_remaining: key.limit.map(|limit| limit.amount),
            last_used_at: None,
            key,
        }
    }
}
