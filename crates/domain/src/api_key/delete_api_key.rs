//! Deleting a key.

use std::sync::Arc;

use super::audited::view;
use super::{ApiKeyHash, ApiKeyRepository, ChangeApiKeyError};
use crate::audit::{Actor, AuditDraft};
use crate::json::Json;

/// Deletes a key for good.
pub struct DeleteApiKey {
    keys: Arc<dyn ApiKeyRepository>,
}

impl DeleteApiKey {
    /// Wires the port.
    pub fn new(keys: Arc<dyn ApiKeyRepository>) -> Self {
        Self { keys }
    }

    /// The key is refused from then on, and its hash is never used again.
    pub async fn execute(&self, actor: &Actor, hash: &ApiKeyHash) -> Result<(), ChangeApiKeyError> {
        let before = self.keys.find(hash).await?.ok_or(ChangeApiKeyError::UnknownKey(*hash))?;
        let details = Json::object([("before", view(&before).text())]);
        let audit = AuditDraft::done(actor, "key.delete", format!("key {hash}"), details);
        if self.keys.delete(hash, &audit).await? { Ok(()) } else { Err(ChangeApiKeyError::UnknownKey(*hash)) }
    }
}
