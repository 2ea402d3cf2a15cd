//! Sums of usage a day.

use chrono::NaiveDate;

use crate::error::StoreError;
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::money::Usd;

named_enum! {
    /// A property by which usage is summed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum UsageGroup {
        /// The UTC day of the charge.
        Day = "day",
        /// The workspace.
        Workspace = "workspace",
        /// The key.
        Key = "key",
        /// The model of the record.
        Model = "model",
        /// The provider of the record.
        Provider = "provider",
        /// The end user; summed from records.
        User = "user",
    }
}

/// The usage to sum, and its groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageSumQuery {
    /// The groups, in the order of the rows.
    pub groups: Vec<UsageGroup>,
    /// The first day.
    pub since: NaiveDate,
    /// The day after the last one.
    pub until: NaiveDate,
    /// Only usage of these workspaces; `None` is every workspace.
    pub workspaces: Option<Vec<WorkspaceId>>,
    /// Only usage of this key.
    pub api_key: Option<ApiKeyId>,
    /// Only usage of this model.
    pub model: Option<String>,
    /// Only usage of this provider.
    pub provider: Option<String>,
    /// Only usage of this end user.
    pub user: Option<String>,
    /// Only rows after this one, in the order of the groups. A query without groups has none.
    pub after: Option<Box<UsageSum>>,
}

impl UsageSumQuery {
    /// Returns true if the sums of days do not suffice: they have no end users.
    pub fn needs_records(&self) -> bool {
        self.user.is_some() || self.groups.contains(&UsageGroup::User)
    }
}

/// Totals of usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageTotals {
    /// The number of requests.
    pub requests: u64,
    /// The input tokens.
    pub input_tokens: u64,
    /// The output tokens.
    pub output_tokens: u64,
    /// The exact cost.
    pub cost: Usd,
}

impl UsageTotals {
    /// Adds other totals.
    ///
    /// # Errors
    /// The cost exceeds the range of amounts.
    pub fn checked_add(self, other: Self) -> Result<Self, StoreError> {
        let cost = self.cost.checked_add(other.cost);
        Ok(Self {
            requests: self.requests.saturating_add(other.requests),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost: cost.ok_or_else(|| StoreError::Corrupt("a sum of usage exceeds the range of amounts".to_owned()))?,
        })
    }
}

/// A row of sums. It has the members of the query's groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageSum {
    /// The UTC day of the charges.
    pub day: Option<NaiveDate>,
    /// The workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// The name of the workspace, if it exists.
    pub workspace_name: Option<String>,
    /// The key.
    pub api_key: Option<ApiKeyId>,
    /// The name of the key, deleted or not.
    pub key_name: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The provider.
    pub provider: Option<String>,
    /// The end user; `None` also for requests without one.
    pub user: Option<String>,
    /// The totals.
    pub totals: UsageTotals,
}
