//! Deleting a key.

use std::sync::Arc;

use super::model::view;
use super::{ApiKey, ApiKeyRepository, ChangeApiKeyError, KeyReference};
use crate::audit::{Actor, AuditDraft};
use crate::json::Json;

/// Deletes a key permanently.
pub struct DeleteApiKey {
    keys: Arc<dyn ApiKeyRepository>,
}

impl DeleteApiKey {
    /// Wires the port.
    pub fn new(keys: Arc<dyn ApiKeyRepository>) -> Self {
        Self { keys }
    }

    /// Deletes a key and returns it. It is rejected from then on, and its id and hash are never reused.
    pub async fn execute(&self, actor: &Actor, name: &KeyReference) -> Result<ApiKey, ChangeApiKeyError> {
        let before = self.keys.find(name).await?.ok_or(ChangeApiKeyError::UnknownKey(*name))?;
        let details = Json::object([("before", view(&before).text())]);
        let audit = AuditDraft::done(actor, "key.delete", format!("key {}", before.id), details);
        if self.keys.delete(before.id, &audit).await? { Ok(before) } else { Err(ChangeApiKeyError::UnknownKey(*name)) }
    }
}
