//! Bulk creation of keys through the storage port, without a process per key.

use std::sync::Arc;

use adapters_storage::{Database, SeaOrmApiKeyRepository, StorageSettings};
use adapters_system::{OsSecrets, SystemClock, UuidV7Ids};
use anyhow::{Result, bail};
use domain::api_key::{ApiKey, ApiKeyName, ApiKeyRepository as _, ApiKeyScope};
use domain::audit::{Actor, AuditDraft};
use domain::ids::WorkspaceId;
use domain::json::Json;
use domain::rate::RateLimits;
use domain::system::{Clock as _, IdGenerator as _, SecretGenerator as _};

/// A created key.
pub struct SeededKey {
    /// Its hash.
    pub hash: String,
    /// Its secret.
    pub secret: String,
}

/// Adds `count` inference keys to a workspace and returns them in the order of their creation.
pub async fn keys(database_url: &str, workspace: WorkspaceId, count: usize) -> Result<Vec<SeededKey>> {
    let settings = StorageSettings::new(database_url);
    let repository = SeaOrmApiKeyRepository::new(Database::open(&settings, Arc::new(SystemClock::new())).await?);
    let name = ApiKeyName::try_new("bench")?;
    let created_at = SystemClock::new().now();
    let audit = AuditDraft::done(&Actor::system(), "key.create", "keys of the benchmark", Json::object([]));
    let mut keys = Vec::with_capacity(count);
    for _ in 0..count {
        let secret = OsSecrets.api_key_secret()?;
        let key = ApiKey {
            id: UuidV7Ids.api_key_id(),
            hash: secret.hash(),
            label: secret.label(),
            name: name.clone(),
            scope: ApiKeyScope::Inference(workspace),
            disabled: false,
            expires_at: None,
            limit: None,
            rates: RateLimits::default(),
            guardrail_id: None,
            users: domain::api_key::KeyUsers::default(),
            previous_secret: None,
            created_at,
            updated_at: None,
        };
        if !repository.insert(&key, &audit).await?.is_inserted() {
            bail!("the workspace of the benchmark is gone");
        }
        keys.push(SeededKey { hash: key.hash.to_string(), secret: secret.expose().to_owned() });
    }
    Ok(keys)
}
