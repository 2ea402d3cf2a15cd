//! The workspace.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::budget::WorkspaceBudgets;
use crate::ids::{GuardrailId, WorkspaceId};
use crate::json::Json;
use crate::money::Usd;
use crate::rate::RateLimits;

/// A tenant: each key, guardrail, file and usage record belongs to exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// The id.
    pub id: WorkspaceId,
    /// The display name, 1 to 100 characters.
    pub name: WorkspaceName,
    /// The owner's id in the operator's directory; error envelopes carry it as `user_id`.
    pub owner_id: Option<String>,
    /// True for the workspace that commands and keys use by default.
    pub is_default: bool,
    /// True while all calls of its keys are rejected.
    pub suspended: bool,
    /// The balance of the prepaid credit, without holds; `None` is unlimited. For a new workspace it is the granted
    /// credit.
    pub credit: Option<Usd>,
    /// The budgets by period.
    pub budgets: WorkspaceBudgets,
    /// The rate limits of all keys together; `None` follows the configuration.
    pub rates: RateLimits,
    /// The default guardrail, which applies to all requests of the workspace.
    pub default_guardrail_id: Option<GuardrailId>,
    /// The bytes of its documents, including documents that are being written.
    pub storage_used_bytes: u64,
    /// The creation time.
    pub created_at: DateTime<Utc>,
}

impl Workspace {
    /// Returns a workspace that is unlimited, empty and not the default.
    pub(super) fn draft(
        id: WorkspaceId,
        name: WorkspaceName,
        owner_id: Option<String>,
        created_at: DateTime<Utc>,
    ) -> Self {
        Self {
            id,
            name,
            owner_id,
            is_default: false,
            suspended: false,
            credit: None,
            budgets: WorkspaceBudgets::default(),
            rates: RateLimits::default(),
            default_guardrail_id: None,
            storage_used_bytes: 0,
            created_at,
        }
    }
}

/// The name is empty, too long or has control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a workspace name has 1 to 100 characters and no control characters")]
pub struct InvalidWorkspaceName;

/// A name of 1 to 100 characters without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceName(String);

impl WorkspaceName {
    /// Validates length and characters.
    pub fn try_new(name: &str) -> Result<Self, InvalidWorkspaceName> {
        let length = name.chars().count();
        if (1..=100).contains(&length) && !name.chars().any(char::is_control) && !name.trim().is_empty() {
            Ok(Self(name.to_owned()))
        } else {
            Err(InvalidWorkspaceName)
        }
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The contents that keep a workspace from being deleted, by number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkspaceContents {
    /// Keys that are not deleted.
    pub keys: u64,
    /// Documents, pending ones included.
    pub documents: u64,
    /// Guardrails.
    pub guardrails: u64,
    /// Destinations of traces.
    pub destinations: u64,
}

impl WorkspaceContents {
    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for WorkspaceContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, documents, guardrails, destinations } = self;
        let counts =
            [(keys, "keys"), (documents, "documents"), (guardrails, "guardrails"), (destinations, "destinations")];
        let present: Vec<String> =
            counts.iter().filter(|(count, _)| **count > 0).map(|(count, name)| format!("{name}: {count}")).collect();
        f.write_str(&present.join(", "))
    }
}

/// The result of [`WorkspaceRepository::delete`](super::WorkspaceRepository::delete).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceDeletion {
    /// The workspace is deleted.
    Deleted,
    /// The workspace does not exist.
    Unknown,
    /// It is the default workspace; nothing was changed.
    IsDefault,
    /// It has contents; nothing was changed.
    NotEmpty(WorkspaceContents),
}

pub(super) fn usd(amount: Option<Usd>) -> String {
    amount.map_or_else(|| "null".to_owned(), |amount| amount.to_string())
}

pub(super) fn budgets(budgets: &WorkspaceBudgets) -> Json {
    Json::object([
        ("daily_usd", usd(budgets.daily).as_str()),
        ("weekly_usd", &usd(budgets.weekly)),
        ("monthly_usd", &usd(budgets.monthly)),
        ("lifetime_usd", &usd(budgets.lifetime)),
    ])
}

pub(super) fn rates(rates: RateLimits) -> Json {
    let number = |rate: Option<u32>| rate.map_or_else(|| "null".to_owned(), |rate| rate.to_string());
    Json::object([
        ("requests_per_minute", number(rates.requests_per_minute).as_str()),
        ("tokens_per_minute", &number(rates.tokens_per_minute)),
    ])
}

pub(super) fn named(name: &WorkspaceName) -> Json {
    Json::object([("name", Json::string(name.as_str()).text())])
}
