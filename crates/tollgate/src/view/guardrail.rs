//! Guardrails.

use api_actix::{GuardrailVersionView, GuardrailView};
use serde::Serialize;

/// A guardrail that was made now.
#[derive(Serialize)]
pub struct CreatedGuardrail {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// A guardrail, in the JSON of HTTP, and who holds it.
#[derive(Serialize)]
pub struct ShownGuardrail<'a> {
    /// The record.
    #[serde(flatten)]
    pub record: GuardrailView<'a>,
    /// How many live keys hold it.
    pub key_count: u64,
}

/// The states that a guardrail was in, in the JSON of HTTP.
#[derive(Serialize)]
pub struct GuardrailVersions<'a> {
    /// The newest first.
    pub data: Vec<GuardrailVersionView<'a>>,
}

/// What an assignment did.
#[derive(Serialize)]
pub struct Assigned {
    /// How many of the keys that were named hold the guardrail now.
    pub assigned_count: u64,
}

/// What a removal did.
#[derive(Serialize)]
pub struct Unassigned {
    /// How many of the keys that were named held the guardrail.
    pub unassigned_count: u64,
}

/// What a workspace is under now.
#[derive(Serialize)]
pub struct DefaultGuardrail {
    /// The workspace.
    pub workspace_id: String,
    /// The guardrail; null is none.
    pub default_guardrail_id: Option<String>,
}
