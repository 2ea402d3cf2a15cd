//! Updating and deleting keys.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::create_api_key::check_limits;
use super::model::{audit_draft, view};
use super::{
    ApiKey, ApiKeyName, ApiKeyRepository, ApiKeyScope, ChangeApiKeyError, KeyUpdate, KeyUsers, LastKeyRule, UserLabel,
};
use crate::authority::{Authority, ManagementScope, Right};
use crate::budget::{ResetInterval, SpendLimit};
use crate::change::{Change, MAX_ATTEMPTS};
use crate::edit::Edit;
use crate::ids::{GuardrailId, WorkspaceId};
use crate::money::Usd;
use crate::naming::{ResourceName, only_match};
use crate::rate::RateLimits;
use crate::system::Clock;

/// The changes of a key.
#[derive(Debug, Clone, Default)]
pub struct ApiKeyChange {
    /// The display name, 1 to 200 characters.
    pub name: Option<String>,
    /// The workspace that the caller believes the key to have. A key does not move.
    pub workspace_id: Option<WorkspaceId>,
    /// The scope of a management key, as a whole. An inference key has none.
    pub management: Edit<ManagementScope>,
    /// The spend limit, above zero; clearing it clears the reset as well.
    pub limit: Edit<Usd>,
    /// The reset interval; requires a limit.
    pub limit_reset: Edit<ResetInterval>,
    /// At least 1.
    pub requests_per_minute: Edit<u32>,
    /// At least 1.
    pub tokens_per_minute: Edit<u32>,
    /// The expiry; a new one is in the future.
    pub expires_at: Edit<DateTime<Utc>>,
    /// True rejects the key until it is enabled, and ends its previous secret.
    pub disabled: Option<bool>,
    /// The guardrail, of the key's workspace; requires [`Right::Write`].
    pub guardrail_id: Edit<GuardrailId>,
    /// The label of the user who created the key.
    pub creator_user_id: Edit<String>,
    /// The label of the user that the key belongs to.
    pub external_user: Edit<String>,
}

impl ApiKeyChange {
    /// Returns true if no field changes.
    pub fn is_empty(&self) -> bool {
        self.name.is_none()
            && self.management.is_keep()
            && self.limit.is_keep()
            && self.limit_reset.is_keep()
            && self.requests_per_minute.is_keep()
            && self.tokens_per_minute.is_keep()
            && self.expires_at.is_keep()
            && self.disabled.is_none()
            && self.guardrail_id.is_keep()
            && self.creator_user_id.is_keep()
            && self.external_user.is_keep()
    }

    fn of(&self, before: &ApiKey, now: DateTime<Utc>) -> Result<ApiKey, ChangeApiKeyError> {
        // The record of a management key has the default workspace in place of its own.
        if before.scope.workspace_id().is_some_and(|own| self.workspace_id.is_some_and(|named| named != own)) {
            return Err(ChangeApiKeyError::OtherWorkspace);
        }
        let name = self.name.as_deref().map(ApiKeyName::try_new).transpose()?;
        let expires_at = self.expires_at.of(before.expires_at);
        if expires_at != before.expires_at && expires_at.is_some_and(|at| at <= now) {
            return Err(ChangeApiKeyError::ExpiryInThePast);
        }
        let label = |edit: &Edit<String>, before: &Option<UserLabel>| match edit {
            Edit::Keep => Ok(before.clone()),
            Edit::Clear => Ok(None),
            Edit::Set(label) => UserLabel::try_new(label).map(Some),
        };
        let disabled = self.disabled.unwrap_or(before.disabled);
        let after = ApiKey {
            name: name.unwrap_or_else(|| before.name.clone()),
            scope: self.scope_of(&before.scope)?,
            limit: self.limit_of(before.limit)?,
            rates: RateLimits {
                requests_per_minute: self.requests_per_minute.of(before.rates.requests_per_minute),
                tokens_per_minute: self.tokens_per_minute.of(before.rates.tokens_per_minute),
            },
            expires_at,
            disabled,
            guardrail_id: self.guardrail_id.of(before.guardrail_id),
            users: KeyUsers {
                creator: label(&self.creator_user_id, &before.users.creator)?,
                external: label(&self.external_user, &before.users.external)?,
            },
            previous_secret: before.previous_secret.filter(|_| !disabled),
            ..before.clone()
        };
        check_limits(&after.scope, after.limit, after.rates)?;
        if after.scope.management().is_some() && after.guardrail_id.is_some() {
            return Err(ChangeApiKeyError::UnknownGuardrail);
        }
        Ok(after)
    }

    fn scope_of(&self, before: &ApiKeyScope) -> Result<ApiKeyScope, ChangeApiKeyError> {
        match (&self.management, before) {
            (Edit::Keep, _) | (Edit::Clear, ApiKeyScope::Inference(_)) => Ok(before.clone()),
            (Edit::Set(scope), ApiKeyScope::Management(_)) => Ok(ApiKeyScope::Management(scope.clone())),
            _ => Err(ChangeApiKeyError::OtherKind),
        }
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

/// Updates and deletes keys.
pub struct ManageApiKeys {
    pub(crate) keys: Arc<dyn ApiKeyRepository>,
    clock: Arc<dyn Clock>,
}

impl ManageApiKeys {
    /// Wires the ports.
    pub fn new(keys: Arc<dyn ApiKeyRepository>, clock: Arc<dyn Clock>) -> Self {
        Self { keys, clock }
    }

    /// Updates a key, and returns it. Concurrent changes are not lost: the later one is applied to the result of the
    /// earlier. A change that changes nothing is not written.
    pub async fn update(
        &self,
        change: &Change<'_, ApiKey>,
        name: &ResourceName,
        edit: &ApiKeyChange,
    ) -> Result<ApiKey, ChangeApiKeyError> {
        let by = change.by();
        by.check(Right::Keys)?;
        for _ in 0..MAX_ATTEMPTS {
            let before = find_visible(&*self.keys, by, name).await?;
            let now = self.clock.now();
            change.check_version(before.version())?;
            let after = edit.of(&before, now)?;
            if after == before {
                return Ok(before);
            }
            if after.guardrail_id != before.guardrail_id {
                by.check(Right::Write)?;
            }
            let after = ApiKey { updated_at: Some(now), ..after };
            let audit = audit_draft(by, "key.update", before.id, Some(view(&before)), Some(view(&after)));
            let audit = change.audited(audit, &after);
            match self.keys.update(&before, &after, LastKeyRule::of(by), &audit).await? {
                KeyUpdate::Updated => return Ok(after),
                KeyUpdate::Conflict => {}
                KeyUpdate::UnknownWorkspace => return Err(ChangeApiKeyError::UnknownWorkspace),
                KeyUpdate::UnknownGuardrail => return Err(ChangeApiKeyError::UnknownGuardrail),
            }
        }
        Err(ChangeApiKeyError::Contended)
    }

    /// Deletes a key and returns it. It is rejected from then on, and its id and hash are never reused.
    pub async fn delete(&self, change: &Change<'_, ApiKey>, name: &ResourceName) -> Result<ApiKey, ChangeApiKeyError> {
        let by = change.by();
        by.check(Right::Keys)?;
        for _ in 0..MAX_ATTEMPTS {
            let before = find_visible(&*self.keys, by, name).await?;
            change.check_version(before.version())?;
            let audit = change.audited(audit_draft(by, "key.delete", before.id, Some(view(&before)), None), &before);
            if self.keys.delete(&before, LastKeyRule::of(by), &audit).await? {
                return Ok(before);
            }
        }
        Err(ChangeApiKeyError::Contended)
    }
}

/// Finds a live key that exists for the caller.
pub(super) async fn find_visible(
    keys: &dyn ApiKeyRepository,
    by: &Authority,
    name: &ResourceName,
) -> Result<ApiKey, ChangeApiKeyError> {
    Ok(only_match(keys.find_named(name, by.scope()).await?, |key| key.id.to_string())?)
}

#[cfg(test)]
mod tests;
