//! Rotating a key.

use std::sync::Arc;
use std::time::Duration;

use super::manage_api_keys::find_visible;
use super::model::{audit_draft, view};
use super::{ApiKey, ApiKeyRepository, ChangeApiKeyError, CreatedKey, GrantCache, PreviousSecret};
use crate::authority::Right;
use crate::change::{Change, MAX_ATTEMPTS};
use crate::naming::ResourceName;
use crate::system::{Clock, SecretGenerator};

/// The longest time that an old secret stays valid.
pub const MAX_GRACE: Duration = Duration::from_hours(7 * 24);

/// Replaces the secret of a key.
pub struct RotateApiKey {
    keys: Arc<dyn ApiKeyRepository>,
    cache: Arc<dyn GrantCache>,
    secrets: Arc<dyn SecretGenerator>,
    clock: Arc<dyn Clock>,
}

impl RotateApiKey {
    /// Wires the ports; `cache` is that of the process.
    pub fn new(
        keys: Arc<dyn ApiKeyRepository>,
        cache: Arc<dyn GrantCache>,
        secrets: Arc<dyn SecretGenerator>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { keys, cache, secrets, clock }
    }

    /// Replaces the secret. Returns the key with the new secret, which cannot be read later. The old secret stays valid
    /// for `grace` as the same key, unless the key is disabled; without a grace period it is rejected from then on, at
    /// once in this process. A secret that an earlier rotation replaced is rejected. Id, limits, history and guardrail
    /// stay, and so does a disabled or expired state.
    ///
    /// # Errors
    /// A missing right; a grace period over [`MAX_GRACE`]; an unknown or ambiguous name; a concurrent rotation, so that
    /// each old secret gets at most one new secret; a failure of the store or the random source.
    pub async fn execute(
        &self,
        change: &Change<'_, CreatedKey>,
        name: &ResourceName,
        grace: Duration,
    ) -> Result<CreatedKey, ChangeApiKeyError> {
        let by = change.by();
        by.check(Right::Keys)?;
        if grace > MAX_GRACE {
            return Err(ChangeApiKeyError::GraceTooLong);
        }
        let mut before = find_visible(&*self.keys, by, name).await?;
        for _ in 0..MAX_ATTEMPTS {
            change.check_version(before.version())?;
            if let Some(rotated) = self.try_rotate(change, &before, grace).await? {
                return Ok(rotated);
            }
            // The key existed before: it was deleted since, changed, or rotated.
            let now = find_visible(&*self.keys, by, &(&before.id).into()).await?;
            if now.hash != before.hash {
                break;
            }
            before = now;
        }
        Err(ChangeApiKeyError::Contended)
    }

    /// Replaces the secret of the key; `None` if the stored key is not `before`.
    async fn try_rotate(
        &self,
        change: &Change<'_, CreatedKey>,
        before: &ApiKey,
        grace: Duration,
    ) -> Result<Option<CreatedKey>, ChangeApiKeyError> {
        let secret = self.secrets.api_key_secret()?;
        let has_grace = !grace.is_zero() && !before.disabled;
        let after = ApiKey {
            hash: secret.hash(),
            label: secret.label(),
            previous_secret: has_grace
                .then(|| PreviousSecret { hash: before.hash, expires_at: self.clock.now() + grace }),
            ..before.clone()
        };
        let audit = audit_draft(change.by(), "key.rotate", before.id, Some(view(before)), Some(view(&after)));
        let rotated = (after, secret);
        let audit = change.audited(audit, &rotated);
        if !self.keys.rotate(before, &rotated.0, &audit).await? {
            return Ok(None);
        }
        for hash in before.previous_secret.map(|secret| secret.hash).iter().chain([&before.hash]) {
            if let Err(error) = self.cache.invalidate(hash).await {
                // The secret can be returned only now, so this is no error. Caches also read the change feed.
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, api_key.id = %before.id, "cached keys not invalidated; the change feed will do it");
            }
        }
        Ok(Some(rotated))
    }
}

#[cfg(test)]
mod tests;
