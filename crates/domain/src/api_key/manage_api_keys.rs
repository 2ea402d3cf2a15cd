//! Updating, disabling, enabling and deleting keys.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::create_api_key::check_limits;
use super::model::{audit_draft, view};
use super::{ApiKey, ApiKeyName, ApiKeyRepository, ApiKeyScope, ChangeApiKeyError, KeyReference, LastKeyRule};
use crate::authority::{Authority, ManagementAccess, ManagementScope, Right};
use crate::budget::{ResetInterval, SpendLimit};
use crate::edit::Edit;
use crate::ids::WorkspaceId;
use crate::json::Json;
use crate::money::Usd;
use crate::rate::RateLimits;
use crate::system::Clock;

/// The most attempts of an update under concurrent changes.
const MAX_ATTEMPTS: u32 = 8;

/// The changes of a key.
#[derive(Debug, Clone, Default)]
pub struct ApiKeyChange {
    /// The display name, 1 to 200 characters.
    pub name: Option<String>,
    /// The access of a management key.
    pub access: Option<ManagementAccess>,
    /// The workspaces of a management key, 1 to 100; cleared, all.
    pub workspaces: Edit<Vec<WorkspaceId>>,
    /// The spend limit, above zero; clearing it clears the reset as well.
    pub limit: Edit<Usd>,
    /// The reset interval; requires a limit.
    pub limit_reset: Edit<ResetInterval>,
    /// At least 1.
    pub requests_per_minute: Edit<u32>,
    /// At least 1.
    pub tokens_per_minute: Edit<u32>,
    /// The expiry, in the future.
    pub expires_at: Edit<DateTime<Utc>>,
}

impl ApiKeyChange {
    /// Returns true if no field changes.
    pub fn is_empty(&self) -> bool {
        self.name.is_none()
            && self.access.is_none()
            && self.workspaces.is_keep()
            && self.limit.is_keep()
            && self.limit_reset.is_keep()
            && self.requests_per_minute.is_keep()
            && self.tokens_per_minute.is_keep()
            && self.expires_at.is_keep()
    }

    fn of(&self, before: &ApiKey, now: DateTime<Utc>) -> Result<ApiKey, ChangeApiKeyError> {
        let name = self.name.as_deref().map(ApiKeyName::try_new).transpose()?;
        let expires_at = self.expires_at.of(before.expires_at);
        if matches!(self.expires_at, Edit::Set(at) if at <= now) {
            return Err(ChangeApiKeyError::ExpiryInThePast);
        }
        let after = ApiKey {
            name: name.unwrap_or_else(|| before.name.clone()),
            scope: self.scope_of(&before.scope)?,
            limit: self.limit_of(before.limit)?,
            rates: RateLimits {
                requests_per_minute: self.requests_per_minute.of(before.rates.requests_per_minute),
                tokens_per_minute: self.tokens_per_minute.of(before.rates.tokens_per_minute),
            },
            expires_at,
            ..before.clone()
        };
        check_limits(&after.scope, after.limit, after.rates)?;
        Ok(after)
    }

    fn scope_of(&self, before: &ApiKeyScope) -> Result<ApiKeyScope, ChangeApiKeyError> {
        if self.access.is_none() && self.workspaces.is_keep() {
            return Ok(before.clone());
        }
        let scope = before.management().ok_or(ChangeApiKeyError::ScopeOfInferenceKey)?;
        let workspaces = self.workspaces.clone().of(scope.workspaces().map(<[WorkspaceId]>::to_vec));
        let access = self.access.unwrap_or(scope.access());
        Ok(ApiKeyScope::Management(ManagementScope::try_new(access, workspaces)?))
    }

    fn limit_of(&self, before: Option<SpendLimit>) -> Result<Option<SpendLimit>, ChangeApiKeyError> {
        match self.limit.of(before.map(|limit| limit.amount)) {
            Some(amount) => {
                let reset = self.limit_reset.of(before.and_then(|limit| limit.reset));
                Ok(Some(SpendLimit { amount, reset }))
            }
            None if matches!(self.limit_reset, Edit::Set(_)) => Err(ChangeApiKeyError::ResetWithoutLimit),
            None => Ok(None),
        }
    }
}

/// Updates, disables, enables and deletes keys.
pub struct ManageApiKeys {
    keys: Arc<dyn ApiKeyRepository>,
    clock: Arc<dyn Clock>,
}

impl ManageApiKeys {
    /// Wires the ports.
    pub fn new(keys: Arc<dyn ApiKeyRepository>, clock: Arc<dyn Clock>) -> Self {
        Self { keys, clock }
    }

    /// Updates a key, and returns it. Concurrent changes are not lost: the later one is applied to the result of the
    /// earlier.
    pub async fn update(
        &self,
        by: &Authority,
        name: &KeyReference,
        change: &ApiKeyChange,
    ) -> Result<ApiKey, ChangeApiKeyError> {
        by.check(Right::Keys)?;
        for _ in 0..MAX_ATTEMPTS {
            let before = self.find(by, name).await?;
            let after = change.of(&before, self.clock.now())?;
            if after == before {
                return Ok(before);
            }
            let audit = audit_draft(by, "key.update", before.id, Some(view(&before)), Some(view(&after)));
            if self.keys.update(&before, &after, LastKeyRule::of(by), &audit).await? {
                return Ok(after);
            }
        }
        Err(ChangeApiKeyError::Contended)
    }

    /// Disables or enables a key, and returns it. A disabled key is rejected until it is enabled.
    pub async fn switch(
        &self,
        by: &Authority,
        name: &KeyReference,
        disabled: bool,
    ) -> Result<ApiKey, ChangeApiKeyError> {
        by.check(Right::Keys)?;
        let found = self.find(by, name).await?;
        let state = |disabled: bool| Some(Json::object([("disabled", if disabled { "true" } else { "false" })]));
        let audit = audit_draft(by, "key.set_disabled", found.id, state(found.disabled), state(disabled));
        let is_set = self.keys.set_disabled(found.id, disabled, LastKeyRule::of(by), &audit).await?;
        if is_set { Ok(ApiKey { disabled, ..found }) } else { Err(ChangeApiKeyError::UnknownKey(*name)) }
    }

    /// Deletes a key and returns it. It is rejected from then on, and its id and hash are never reused.
    pub async fn delete(&self, by: &Authority, name: &KeyReference) -> Result<ApiKey, ChangeApiKeyError> {
        by.check(Right::Keys)?;
        let before = self.find(by, name).await?;
        let audit = audit_draft(by, "key.delete", before.id, Some(view(&before)), None);
        let is_deleted = self.keys.delete(before.id, LastKeyRule::of(by), &audit).await?;
        if is_deleted { Ok(before) } else { Err(ChangeApiKeyError::UnknownKey(*name)) }
    }

    async fn find(&self, by: &Authority, name: &KeyReference) -> Result<ApiKey, ChangeApiKeyError> {
        find_visible(&*self.keys, by, name).await
    }
}

/// Finds a live key that exists for the caller.
pub(super) async fn find_visible(
    keys: &dyn ApiKeyRepository,
    by: &Authority,
    name: &KeyReference,
) -> Result<ApiKey, ChangeApiKeyError> {
    let found = keys.find(name).await?.filter(|key| key.scope.is_visible_to(by));
    found.ok_or(ChangeApiKeyError::UnknownKey(*name))
}

#[cfg(test)]
mod tests;
