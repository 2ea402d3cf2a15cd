//! Updating, disabling, enabling and deleting keys.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::create_api_key::check_limits;
use super::model::{audit_draft, view};
use super::{ApiKey, ApiKeyName, ApiKeyRepository, ChangeApiKeyError, KeyReference};
use crate::audit::Actor;
use crate::budget::{ResetInterval, SpendLimit};
use crate::edit::Edit;
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
            limit: self.limit_of(before.limit)?,
            rates: RateLimits {
                requests_per_minute: self.requests_per_minute.of(before.rates.requests_per_minute),
                tokens_per_minute: self.tokens_per_minute.of(before.rates.tokens_per_minute),
            },
            expires_at,
            ..before.clone()
        };
        check_limits(after.scope, after.limit, after.rates)?;
        Ok(after)
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
        actor: &Actor,
        name: &KeyReference,
        change: &ApiKeyChange,
    ) -> Result<ApiKey, ChangeApiKeyError> {
        for _ in 0..MAX_ATTEMPTS {
            let before = self.find(name).await?;
            let after = change.of(&before, self.clock.now())?;
            if after == before {
                return Ok(before);
            }
            let audit = audit_draft(actor, "key.update", before.id, Some(view(&before)), Some(view(&after)));
            if self.keys.update(&before, &after, &audit).await? {
                return Ok(after);
            }
        }
        Err(ChangeApiKeyError::Contended)
    }

    /// Disables or enables a key, and returns it. A disabled key is rejected until it is enabled.
    pub async fn switch(
        &self,
        actor: &Actor,
        name: &KeyReference,
        disabled: bool,
    ) -> Result<ApiKey, ChangeApiKeyError> {
        let found = self.find(name).await?;
        let state = |disabled: bool| Some(Json::object([("disabled", if disabled { "true" } else { "false" })]));
        let audit = audit_draft(actor, "key.set_disabled", found.id, state(found.disabled), state(disabled));
        let is_set = self.keys.set_disabled(found.id, disabled, &audit).await?;
        if is_set { Ok(ApiKey { disabled, ..found }) } else { Err(ChangeApiKeyError::UnknownKey(*name)) }
    }

    /// Deletes a key and returns it. It is rejected from then on, and its id and hash are never reused.
    pub async fn delete(&self, actor: &Actor, name: &KeyReference) -> Result<ApiKey, ChangeApiKeyError> {
        let before = self.find(name).await?;
        let audit = audit_draft(actor, "key.delete", before.id, Some(view(&before)), None);
        if self.keys.delete(before.id, &audit).await? { Ok(before) } else { Err(ChangeApiKeyError::UnknownKey(*name)) }
    }

    async fn find(&self, name: &KeyReference) -> Result<ApiKey, ChangeApiKeyError> {
        self.keys.find(name).await?.ok_or(ChangeApiKeyError::UnknownKey(*name))
    }
}

#[cfg(test)]
mod tests;
