//! Views of guardrails.

use api_actix::{GuardrailVersionView, GuardrailView};
use serde::Serialize;

/// A created guardrail.
#[derive(Serialize)]
pub struct CreatedGuardrail {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// A guardrail as in the HTTP interface, with its number of keys.
#[derive(Serialize)]
pub struct ShownGuardrail<'a> {
    /// The record.
    #[serde(flatten)]
    pub record: GuardrailView<'a>,
    /// The number of live keys with this guardrail.
    pub key_count: u64,
}

/// The versions of a guardrail as in the HTTP interface.
#[derive(Serialize)]
pub struct GuardrailVersions<'a> {
    /// The newest version first.
    pub data: Vec<GuardrailVersionView<'a>>,
}

/// The result of an assignment.
#[derive(Serialize)]
pub struct AssignmentView {
    /// The number of the given keys that now have the guardrail.
    pub assigned_count: u64,
}

/// The result of an unassignment.
#[derive(Serialize)]
pub struct UnassignmentView {
    /// The number of the given keys that had the guardrail.
    pub unassigned_count: u64,
}

/// The default guardrail of a workspace.
#[derive(Serialize)]
pub struct DefaultGuardrail {
    /// The workspace.
    pub workspace_id: String,
    /// The guardrail; null is none.
    pub default_guardrail_id: Option<String>,
}
