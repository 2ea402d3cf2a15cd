//! Deleting a key.

use std::sync::Arc;

use super::audited::view;
use super::{ApiKeyRepository, ChangeApiKeyError, KeyReference};
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

    /// The key is refused from then on, and its id and hash are never used again.
    pub async fn execute(&self, actor: &Actor, name: &KeyReference) -> Result<(), ChangeApiKeyError> {
        let before = self.keys.find(name).await?.ok_or(ChangeApiKeyError::UnknownKey(*name))?;
        let details = Json::object([("before", view(&before).text())]);
        let audit = AuditDraft::done(actor, "key.delete", format!("key {}", before.id), details);
        if self.keys.delete(before.id, &audit).await? { Ok(()) } else { Err(ChangeApiKeyError::UnknownKey(*name)) }
    }
}
