//! Creating a key.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::model::{audit_draft, view};
use super::{ApiKey, ApiKeyName, ApiKeyRepository, ApiKeyScope, CreateApiKeyError, InvalidKeyLimit, KeyInsertion};
use crate::audit::AuditDraft;
use crate::authority::{Authority, Right};
use crate::budget::SpendLimit;
use crate::money::Usd;
use crate::rate::RateLimits;
use crate::secret::ApiKeySecret;
use crate::system::{Clock, IdGenerator, SecretGenerator};

/// The properties of a new key.
#[derive(Debug, Clone)]
pub struct NewApiKey {
    /// The display name, 1 to 200 characters.
    pub name: String,
    /// The scope.
    pub scope: ApiKeyScope,
    /// The spend limit, above zero.
    pub limit: Option<SpendLimit>,
    /// The rate limits.
    pub rates: RateLimits,
    /// The expiry, in the future.
    pub expires_at: Option<DateTime<Utc>>,
}

/// Creates a key.
pub struct CreateApiKey {
    keys: Arc<dyn ApiKeyRepository>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGenerator>,
    secrets: Arc<dyn SecretGenerator>,
}

impl CreateApiKey {
    /// Wires the ports.
    pub fn new(
        keys: Arc<dyn ApiKeyRepository>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGenerator>,
        secrets: Arc<dyn SecretGenerator>,
    ) -> Self {
        Self { keys, clock, ids, secrets }
    }

    /// Creates a key. Returns it with its secret, which cannot be read later.
    pub async fn execute(&self, by: &Authority, new: NewApiKey) -> Result<(ApiKey, ApiKeySecret), CreateApiKeyError> {
        let (key, secret, audit) = self.draft(by, &new)?;
        if self.keys.insert(&key, &audit).await? { Ok((key, secret)) } else { Err(CreateApiKeyError::UnknownWorkspace) }
    }

    /// Creates a key like [`Self::execute`], unless a key of its workspace, or another management key, has its name.
    pub async fn execute_unique(
        &self,
        by: &Authority,
        new: NewApiKey,
    ) -> Result<(ApiKey, ApiKeySecret), CreateApiKeyError> {
        let (key, secret, audit) = self.draft(by, &new)?;
        match self.keys.insert_unique(&key, &audit).await? {
            KeyInsertion::Inserted => Ok((key, secret)),
            KeyInsertion::UnknownWorkspace => Err(CreateApiKeyError::UnknownWorkspace),
            KeyInsertion::NameTaken => Err(CreateApiKeyError::NameTaken(key.name.as_str().to_owned())),
        }
    }

    fn draft(&self, by: &Authority, new: &NewApiKey) -> Result<(ApiKey, ApiKeySecret, AuditDraft), CreateApiKeyError> {
        by.check(if new.scope.management().is_some() { Right::Unrestricted } else { Right::Keys })?;
        if !new.scope.is_visible_to(by) {
            return Err(CreateApiKeyError::UnknownWorkspace);
        }
        let now = self.clock.now();
        check_limits(&new.scope, new.limit, new.rates)?;
        if new.expires_at.is_some_and(|at| at <= now) {
            return Err(CreateApiKeyError::ExpiryInThePast);
        }
        let name = ApiKeyName::try_new(&new.name)?;
        let secret = self.secrets.api_key_secret()?;
        let key = ApiKey {
            id: self.ids.api_key_id(),
            hash: secret.hash(),
            label: secret.label(),
            name,
            scope: new.scope.clone(),
            disabled: false,
            expires_at: new.expires_at,
            limit: new.limit,
            rates: new.rates,
            guardrail_id: None,
            created_at: now,
        };
        let audit = audit_draft(by, "key.create", key.id, None, Some(view(&key)));
        Ok((key, secret, audit))
    }
}

/// Checks that a key of this scope can have these limits.
pub(super) fn check_limits(
    scope: &ApiKeyScope,
    limit: Option<SpendLimit>,
    rates: RateLimits,
) -> Result<(), InvalidKeyLimit> {
    if scope.management().is_some() && (limit.is_some() || !rates.is_none()) {
        return Err(InvalidKeyLimit::OfManagementKey);
    }
    if limit.is_some_and(|limit| limit.amount <= Usd::ZERO) {
        return Err(InvalidKeyLimit::NotPositive);
    }
    if [rates.requests_per_minute, rates.tokens_per_minute].contains(&Some(0)) {
        return Err(InvalidKeyLimit::NoRate);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
