//! A guardrail's record.

use chrono::{DateTime, Utc};

use super::InvalidGuardrailName;
use crate::ids::{GuardrailId, WorkspaceId};

/// A named set of rules that keys of one workspace can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guardrail {
    /// Its id.
    pub id: GuardrailId,
    /// The workspace whose keys can hold it.
    pub workspace_id: WorkspaceId,
    /// What people call it.
    pub name: GuardrailName,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

/// A name of 1 to 200 characters without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailName(String);

impl GuardrailName {
    /// Checks length and characters.
    pub fn try_new(name: &str) -> Result<Self, InvalidGuardrailName> {
        let fits = (1..=200).contains(&name.chars().count());
        if fits && !name.chars().any(char::is_control) && !name.trim().is_empty() {
            Ok(Self(name.to_owned()))
        } else {
            Err(InvalidGuardrailName)
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
