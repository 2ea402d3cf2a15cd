//! Making a guardrail.

use std::sync::Arc;

use super::{CreateGuardrailError, Guardrail, GuardrailName, GuardrailRepository, GuardrailRules};
use crate::audit::{Actor, AuditDraft};
use crate::ids::WorkspaceId;
use crate::json::Json;
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
    pub async fn execute(
        &self,
        actor: &Actor,
        workspace_id: WorkspaceId,
        name: &str,
    ) -> Result<Guardrail, CreateGuardrailError> {
        let guardrail = Guardrail {
            id: self.ids.guardrail_id(),
            workspace_id,
            name: GuardrailName::try_new(name)?,
            budget: None,
            rules: GuardrailRules::default(),
            version: 1,
            created_at: self.clock.now(),
            updated_at: None,
        };
        let name = Json::string(guardrail.name.as_str());
        let after = Json::object([("name", name.text())]);
        let details = Json::object([("after", after.text())]);
        let audit = AuditDraft::done(actor, "guardrail.create", format!("guardrail {}", guardrail.id), details);
        if self.guardrails.insert(&guardrail, &audit).await? {
            Ok(guardrail)
        } else {
            Err(CreateGuardrailError::UnknownWorkspace)
        }
    }
}
