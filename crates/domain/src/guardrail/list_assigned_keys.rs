//! Listing the keys that hold a guardrail.

use std::sync::Arc;

use super::{AssignKeysError, AssignmentPage, GuardrailAssignments};
use crate::ids::GuardrailId;

/// Lists the keys that hold a guardrail.
pub struct ListAssignedKeys {
    assignments: Arc<dyn GuardrailAssignments>,
}

impl ListAssignedKeys {
    /// Wires the port.
    pub fn new(assignments: Arc<dyn GuardrailAssignments>) -> Self {
        Self { assignments }
    }

    /// Up to `limit` assignments, the newest first, without the first `offset`.
    ///
    /// # Errors
    /// There is no such guardrail, a malformed id included; the store.
    pub async fn execute(&self, id: &str, offset: u64, limit: u64) -> Result<AssignmentPage, AssignKeysError> {
        let id: GuardrailId = id.parse().map_err(|_| AssignKeysError::UnknownGuardrail)?;
        self.assignments.list(id, offset, limit).await?.ok_or(AssignKeysError::UnknownGuardrail)
    }
}
