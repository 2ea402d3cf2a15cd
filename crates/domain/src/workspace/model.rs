//! A workspace and what belongs to it.

use chrono::{DateTime, Utc};

use crate::budget::WorkspaceBudgets;
use crate::ids::{GuardrailId, WorkspaceId};
use crate::money::Usd;
use crate::rate::RateLimits;

/// A tenant: keys, guardrails, files and usage live in exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Its display name, 1 to 100 characters.
    pub name: WorkspaceName,
    /// The owner's id in the operator's own directory, where one is set; error envelopes carry it as `user_id`.
    pub owner_id: Option<String>,
    /// True for the one that commands and keys use when none is named.
    pub is_default: bool,
    /// True while every call of its keys is refused.
    pub suspended: bool,
    /// What is left of the prepaid credit, reservations not counted; `None` means unlimited. A repository that is
    /// given a new workspace takes it as the credit granted.
    pub credit: Option<Usd>,
    /// What it may spend in each period.
    pub budgets: WorkspaceBudgets,
    /// How often all of its keys together may call; what is `None` here follows the configuration.
    pub rates: RateLimits,
    /// The guardrail that all of its traffic is under.
    pub default_guardrail_id: Option<GuardrailId>,
    /// Bytes that its documents hold, those being written included.
    pub storage_used_bytes: u64,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

/// A name of 1 to 100 characters without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceName(String);

impl WorkspaceName {
    /// Checks length and characters.
    pub fn try_new(name: &str) -> Result<Self, crate::workspace::InvalidWorkspaceName> {
        let length = name.chars().count();
        if (1..=100).contains(&length) && !name.chars().any(char::is_control) && !name.trim().is_empty() {
            Ok(Self(name.to_owned()))
        } else {
            Err(crate::workspace::InvalidWorkspaceName)
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
