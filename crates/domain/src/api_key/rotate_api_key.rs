//! Rotating a key.

use std::sync::Arc;

use super::manage_api_keys::find_visible;
use super::model::{audit_draft, view};
use super::{ApiKey, ApiKeyRepository, ChangeApiKeyError, GrantCache, KeyReference};
use crate::authority::{Authority, Right};
use crate::secret::ApiKeySecret;
use crate::system::SecretGenerator;

/// Replaces the secret of a key.
pub struct RotateApiKey {
    keys: Arc<dyn ApiKeyRepository>,
    cache: Arc<dyn GrantCache>,
    secrets: Arc<dyn SecretGenerator>,
}

impl RotateApiKey {
    /// Wires the ports; `cache` is that of the process.
    pub fn new(keys: Arc<dyn ApiKeyRepository>, cache: Arc<dyn GrantCache>, secrets: Arc<dyn SecretGenerator>) -> Self {
        Self { keys, cache, secrets }
    }

    /// Replaces the secret. Returns the key with the new secret, which cannot be read later. The old secret is rejected
    /// from then on, at once in this process. Id, limits, history and guardrail stay, and so does a disabled or expired
    /// state.
    ///
    /// # Errors
    /// A missing right; an unknown key; a concurrent rotation, so that each old secret gets at most one new secret; a
    /// failure of the store or the random source.
    pub async fn execute(
        &self,
        by: &Authority,
        name: &KeyReference,
    ) -> Result<(ApiKey, ApiKeySecret), ChangeApiKeyError> {
        by.check(Right::Keys)?;
        let before = find_visible(&*self.keys, by, name).await?;
        let secret = self.secrets.api_key_secret()?;
        let after = ApiKey { hash: secret.hash(), label: secret.label(), ..before.clone() };
        let audit = audit_draft(by, "key.rotate", before.id, Some(view(&before)), Some(view(&after)));
        if !self.keys.rotate(&before, &after, &audit).await? {
            // The key existed before: it was deleted since, or rotated.
            find_visible(&*self.keys, by, name).await?;
            return Err(ChangeApiKeyError::Contended);
        }
        if let Err(error) = self.cache.invalidate(&before.hash).await {
            // The secret can be returned only now, so this is no error. Caches also read the change feed.
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, api_key.id = %before.id, "cached keys not invalidated; the change feed will do it");
        }
        Ok((after, secret))
    }
}

#[cfg(test)]
mod tests;
