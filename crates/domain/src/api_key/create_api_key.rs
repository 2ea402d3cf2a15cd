//! Making a key.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::{ApiKey, ApiKeyName, ApiKeyRepository, ApiKeyScope, ApiKeySecret, CreateApiKeyError, SpendLimit};
use crate::money::Usd;
use crate::system::{Clock, SecretGenerator};

/// What a new key is to be.
#[derive(Debug, Clone)]
pub struct NewApiKey {
    /// 1 to 200 characters.
    pub name: String,
    /// What it may do.
    pub scope: ApiKeyScope,
    /// How much it may spend; more than zero.
    pub limit: Option<SpendLimit>,
    /// When it stops; in the future.
    pub expires_at: Option<DateTime<Utc>>,
}

/// Makes a key.
pub struct CreateApiKey {
    keys: Arc<dyn ApiKeyRepository>,
    clock: Arc<dyn Clock>,
    secrets: Arc<dyn SecretGenerator>,
}

impl CreateApiKey {
    /// Wires the ports.
    pub fn new(keys: Arc<dyn ApiKeyRepository>, clock: Arc<dyn Clock>, secrets: Arc<dyn SecretGenerator>) -> Self {
        Self { keys, clock, secrets }
    }

    /// Returns the key and its secret: the only time that the secret can be read.
    pub async fn execute(&self, new: NewApiKey) -> Result<(ApiKey, ApiKeySecret), CreateApiKeyError> {
        let now = self.clock.now();
        if new.limit.is_some_and(|limit| limit.amount <= Usd::ZERO) {
            return Err(CreateApiKeyError::InvalidLimit);
        }
        if new.expires_at.is_some_and(|at| at <= now) {
            return Err(CreateApiKeyError::ExpiryInThePast);
        }
        let name = ApiKeyName::try_new(&new.name)?;
        let secret = self.secrets.api_key_secret()?;
        let key = ApiKey {
            hash: secret.hash(),
            label: secret.label(),
            name,
            scope: new.scope,
            disabled: false,
            expires_at: new.expires_at,
            limit: new.limit,
            guardrail_id: None,
            created_at: now,
        };
        if self.keys.insert(&key).await? { Ok((key, secret)) } else { Err(CreateApiKeyError::UnknownWorkspace) }
    }
}
