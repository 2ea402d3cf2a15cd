//! Guardrails.

use domain::guardrail::Guardrail;
use serde::Serialize;

use super::time;

/// A guardrail that was made now.
#[derive(Serialize)]
pub struct CreatedGuardrail {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// A guardrail.
#[derive(Serialize)]
pub struct GuardrailView {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its workspace.
    pub workspace_id: String,
    /// When it was made.
    pub created_at: String,
    /// How many live keys hold it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_count: Option<u64>,
}

impl From<&Guardrail> for GuardrailView {
    fn from(guardrail: &Guardrail) -> Self {
        Self {
            id: guardrail.id.to_string(),
            name: guardrail.name.as_str().to_owned(),
            workspace_id: guardrail.workspace_id.to_string(),
            created_at: time(guardrail.created_at),
            key_count: None,
        }
    }
}

/// What an assignment did.
#[derive(Serialize)]
pub struct Assigned {
    /// How many of the keys that were named hold the guardrail now.
    pub assigned_count: u64,
}
