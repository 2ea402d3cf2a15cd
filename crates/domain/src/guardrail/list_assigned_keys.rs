//! Lists the keys that have a guardrail assigned.

use std::sync::Arc;

use super::{AssignKeysError, AssignmentPage, GuardrailRepository};
use crate::ids::GuardrailId;

/// Lists the keys that have a guardrail assigned.
pub struct ListAssignedKeys {
    guardrails: Arc<dyn GuardrailRepository>,
}

impl ListAssignedKeys {
    /// Wires the port.
    pub fn new(guardrails: Arc<dyn GuardrailRepository>) -> Self {
        Self { guardrails }
    }

    /// Returns up to `limit` assignments after the first `offset`, newest first.
    ///
    /// # Errors
    /// Fails if the guardrail does not exist, which includes a malformed id, or if the store fails.
    pub async fn execute(&self, id: &str, offset: u64, limit: u64) -> Result<AssignmentPage, AssignKeysError> {
        let id: GuardrailId = id.parse().map_err(|_| AssignKeysError::UnknownGuardrail)?;
        self.guardrails.list_keys(id, offset, limit).await?.ok_or(AssignKeysError::UnknownGuardrail)
    }
}
