//! Switching a key off and on.

use std::sync::Arc;

use super::{ApiKeyHash, ApiKeyRepository, ChangeApiKeyError};
use crate::audit::{Actor, AuditDraft};
use crate::json::Json;

/// Switches a key off and on.
pub struct SwitchApiKey {
    keys: Arc<dyn ApiKeyRepository>,
}

impl SwitchApiKey {
    /// Wires the port.
    pub fn new(keys: Arc<dyn ApiKeyRepository>) -> Self {
        Self { keys }
    }

    /// A disabled key is refused until it is enabled again.
    pub async fn execute(&self, actor: &Actor, hash: &ApiKeyHash, disabled: bool) -> Result<(), ChangeApiKeyError> {
        let before = self.keys.find(hash).await?.ok_or(ChangeApiKeyError::UnknownKey(*hash))?;
        let state = |disabled: bool| Json::object([("disabled", if disabled { "true" } else { "false" })]);
        let (before, after) = (state(before.disabled), state(disabled));
        let details = Json::object([("before", before.text()), ("after", after.text())]);
        let audit = AuditDraft::done(actor, "key.set_disabled", format!("key {hash}"), details);
        let found = self.keys.set_disabled(hash, disabled, &audit).await?;
        if found { Ok(()) } else { Err(ChangeApiKeyError::UnknownKey(*hash)) }
    }
}
