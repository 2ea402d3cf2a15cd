//! Deleting a key.

use std::sync::Arc;

use super::audited::view;
use super::{ApiKey, ApiKeyRepository, ChangeApiKeyError, KeyReference};
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

    /// Returns the key as it was. It is refused from then on, and its id and hash are never used again.
    pub async fn execute(&self, actor: &Actor, name: &KeyReference) -> Result<ApiKey, ChangeApiKeyError> {
        let before = self.keys.find(name).await?.ok_or(ChangeApiKeyError::UnknownKey(*name))?;
        let details = Json::object([("before", view(&before).text())]);
        let audit = AuditDraft::done(actor, "key.delete", format!("key {}", before.id), details);
        if self.keys.delete(before.id, &audit).await? { Ok(before) } else { Err(ChangeApiKeyError::UnknownKey(*name)) }
    }
}
