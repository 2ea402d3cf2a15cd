//! Creating a key.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::model::{audit_draft, view};
use super::{
    ApiKey, ApiKeyName, ApiKeyRepository, ApiKeyScope, CreateApiKeyError, InvalidKeyLimit, KeyInsertion, KeyUsers,
    UserLabel,
};
use crate::audit::AuditDraft;
use crate::authority::Right;
use crate::budget::SpendLimit;
use crate::change::Change;
use crate::ids::GuardrailId;
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
    /// The guardrail, of the key's workspace; requires [`Right::Write`].
    pub guardrail_id: Option<GuardrailId>,
    /// The label of the user who created the key.
    pub creator_user_id: Option<String>,
    /// The label of the user that the key belongs to.
    pub external_user: Option<String>,
}

impl NewApiKey {
    /// Returns a key without limits and labels.
    pub fn named(name: impl Into<String>, scope: ApiKeyScope) -> Self {
        Self {
            name: name.into(),
            scope,
            limit: None,
            rates: RateLimits::default(),
            expires_at: None,
            guardrail_id: None,
            creator_user_id: None,
            external_user: None,
        }
    }
}

/// A key with its new secret, which cannot be read later.
pub type CreatedKey = (ApiKey, ApiKeySecret);

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
    pub async fn execute(
        &self,
        change: &Change<'_, CreatedKey>,
        new: NewApiKey,
    ) -> Result<CreatedKey, CreateApiKeyError> {
        let (created, audit) = self.draft(change, &new)?;
        let insertion = self.keys.insert(&created.0, &audit).await?;
        to_created(insertion, created)
    }

    /// Creates a key like [`Self::execute`], unless a key of its workspace, or another management key, has its name.
    pub async fn execute_unique(
        &self,
        change: &Change<'_, CreatedKey>,
        new: NewApiKey,
    ) -> Result<CreatedKey, CreateApiKeyError> {
        let (created, audit) = self.draft(change, &new)?;
        let insertion = self.keys.insert_unique(&created.0, &audit).await?;
        to_created(insertion, created)
    }

    fn draft(
        &self,
        change: &Change<'_, CreatedKey>,
        new: &NewApiKey,
    ) -> Result<(CreatedKey, AuditDraft), CreateApiKeyError> {
        let by = change.by();
        by.check(if new.scope.management().is_some() { Right::Unrestricted } else { Right::Keys })?;
        if !new.scope.is_visible_to(by) {
            return Err(CreateApiKeyError::UnknownWorkspace);
        }
        if new.guardrail_id.is_some() {
            by.check(Right::Write)?;
        }
        let now = self.clock.now();
        check_limits(&new.scope, new.limit, new.rates)?;
        if new.scope.management().is_some() && new.guardrail_id.is_some() {
            return Err(CreateApiKeyError::UnknownGuardrail);
        }
        if new.expires_at.is_some_and(|at| at <= now) {
            return Err(CreateApiKeyError::ExpiryInThePast);
        }
        let name = ApiKeyName::try_new(&new.name)?;
        let label = |text: &Option<String>| text.as_deref().map(UserLabel::try_new).transpose();
        let users = KeyUsers { creator: label(&new.creator_user_id)?, external: label(&new.external_user)? };
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
            guardrail_id: new.guardrail_id,
            users,
            previous_secret: None,
            created_at: now,
            updated_at: None,
        };
        let audit = audit_draft(by, "key.create", key.id, None, Some(view(&key)));
        let created = (key, secret);
        let audit = change.audited(audit, &created);
        Ok((created, audit))
    }
}

fn to_created(insertion: KeyInsertion, created: CreatedKey) -> Result<CreatedKey, CreateApiKeyError> {
    match insertion {
        KeyInsertion::Inserted => Ok(created),
        KeyInsertion::UnknownWorkspace => Err(CreateApiKeyError::UnknownWorkspace),
        KeyInsertion::UnknownGuardrail => Err(CreateApiKeyError::UnknownGuardrail),
        KeyInsertion::NameTaken => Err(CreateApiKeyError::NameTaken(created.0.name.as_str().to_owned())),
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
