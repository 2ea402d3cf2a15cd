//! Making a guardrail.

use std::sync::Arc;

use super::{CreateGuardrailError, Guardrail, GuardrailName, GuardrailRepository};
use crate::ids::WorkspaceId;
use crate::system::{Clock, IdGenerator};

/// Makes a guardrail.
pub struct CreateGuardrail {
    guardrails: Arc<dyn GuardrailRepository>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGenerator>,
}

impl CreateGuardrail {
    /// Wires the ports.
    pub fn new(guardrails: Arc<dyn GuardrailRepository>, clock: Arc<dyn Clock>, ids: Arc<dyn IdGenerator>) -> Self {
        Self { guardrails, clock, ids }
    }

    /// Adds a guardrail to a workspace. No key holds it yet.
    pub async fn execute(&self, workspace_id: WorkspaceId, name: &str) -> Result<Guardrail, CreateGuardrailError> {
        let guardrail = Guardrail {
            id: self.ids.guardrail_id(),
            workspace_id,
            name: GuardrailName::try_new(name)?,
            created_at: self.clock.now(),
        };
        if self.guardrails.insert(&guardrail).await? {
            Ok(guardrail)
        } else {
            Err(CreateGuardrailError::UnknownWorkspace)
        }
    }
}
