//! Disabling, enabling and deleting a key.

use std::sync::Arc;

use super::model::view;
use super::{ApiKey, ApiKeyRepository, ChangeApiKeyError, KeyReference};
use crate::audit::{Actor, AuditDraft};
use crate::json::Json;

/// Disables and enables a key.
pub struct SwitchApiKey {
    keys: Arc<dyn ApiKeyRepository>,
}

impl SwitchApiKey {
    /// Wires the port.
    pub fn new(keys: Arc<dyn ApiKeyRepository>) -> Self {
        Self { keys }
    }

    /// Disables or enables a key, and returns it. A disabled key is rejected until it is enabled.
    pub async fn execute(
        &self,
        actor: &Actor,
        name: &KeyReference,
        disabled: bool,
    ) -> Result<ApiKey, ChangeApiKeyError> {
        let found = self.keys.find(name).await?.ok_or(ChangeApiKeyError::UnknownKey(*name))?;
        let state = |disabled: bool| Json::object([("disabled", if disabled { "true" } else { "false" })]);
        let (before, after) = (state(found.disabled), state(disabled));
        let details = Json::object([("before", before.text()), ("after", after.text())]);
        let audit = AuditDraft::done(actor, "key.set_disabled", format!("key {}", found.id), details);
        let is_set = self.keys.set_disabled(found.id, disabled, &audit).await?;
        if is_set { Ok(ApiKey { disabled, ..found }) } else { Err(ChangeApiKeyError::UnknownKey(*name)) }
    }
}

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
