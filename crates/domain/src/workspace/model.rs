//! The workspace.

use chrono::{DateTime, Utc};

use super::WorkspaceSlug;
use crate::audit::RowHasher;
use crate::budget::{ResetInterval, WorkspaceBudgets};
use crate::ids::{GuardrailId, WorkspaceId};
use crate::money::Usd;
use crate::rate::RateLimits;
use crate::version::Version;

/// A tenant: each key, guardrail, file and usage record belongs to exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// The id.
    pub id: WorkspaceId,
    /// The display name, 1 to 100 characters.
    pub name: WorkspaceName,
    /// The name in URLs, which no other workspace has.
    pub slug: WorkspaceSlug,
    /// A label of the operator.
    pub description: Option<String>,
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
    /// The time of the last change of its settings or budgets.
    pub updated_at: Option<DateTime<Utc>>,
}

impl Workspace {
    /// Returns a workspace that is unlimited, empty and not the default.
    pub(super) fn draft(id: WorkspaceId, name: WorkspaceName, created_at: DateTime<Utc>) -> Self {
        Self {
            id,
            slug: WorkspaceSlug::of_name(name.as_str()),
            name,
            description: None,
            owner_id: None,
            is_default: false,
            suspended: false,
            credit: None,
            budgets: WorkspaceBudgets::default(),
            rates: RateLimits::default(),
            default_guardrail_id: None,
            storage_used_bytes: 0,
            created_at,
            updated_at: None,
        }
    }

    /// Returns true if both have the same settings and budgets.
    pub fn has_settings_of(&self, other: &Self) -> bool {
        let settings = |workspace: &Self| {
            let Self { name, slug, description, owner_id, suspended, budgets, rates, default_guardrail_id, .. } =
                workspace.clone();
            (name, slug, description, owner_id, suspended, budgets, rates, default_guardrail_id)
        };
        settings(self) == settings(other)
    }

    /// Returns the version of the settings, without the budgets, which have their own.
    pub fn version(&self) -> Version {
        let rate = |rate: Option<u32>| rate.map(i64::from);
        RowHasher::new("workspace")
            .text(self.id.to_string().as_str())
            .text(self.name.as_str())
            .text(self.slug.as_str())
            .text(self.description.as_deref())
            .text(self.owner_id.as_deref())
            .number(i64::from(self.suspended))
            .number(rate(self.rates.requests_per_minute))
            .number(rate(self.rates.tokens_per_minute))
            .text(self.default_guardrail_id.map(|id| id.to_string()).as_deref())
            .finish()
            .into()
    }

    /// Returns the version of the budget of a period; `None` if it is not set.
    pub fn budget_version(&self, period: Option<ResetInterval>) -> Option<Version> {
        let hash = |amount: Usd| {
            RowHasher::new("budget")
                .text(self.id.to_string().as_str())
                .text(period.map(ResetInterval::as_str))
                .number(amount.pico())
                .finish()
                .into()
        };
        self.budgets.of(period).map(hash)
    }
}

/// The name is empty, too long or has control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a workspace name has 1 to 100 characters, not all of them blank, and no control characters")]
pub struct InvalidWorkspaceName;

display_name!(
    /// A name of 1 to 100 characters without control characters.
    WorkspaceName,
    100,
    InvalidWorkspaceName
);

/// The result of [`WorkspaceRepository::insert`](super::WorkspaceRepository::insert).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceInsertion {
    /// The workspace is added.
    Inserted,
    /// Another workspace has the name, and names must be unique.
    NameTaken,
    /// Another workspace has the slug.
    SlugTaken,
}

/// The result of [`WorkspaceRepository::update`](super::WorkspaceRepository::update).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceUpdate {
    /// The workspace is changed.
    Updated,
    /// The workspace differs from the expected one, or does not exist.
    Differs,
    /// Another workspace has the slug.
    SlugTaken,
    /// The default guardrail is none of the workspace.
    UnknownGuardrail,
}
