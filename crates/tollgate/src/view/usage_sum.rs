//! Views of sums of usage records.

use serde::Serialize;

use super::UsdNumber;

/// Sums of usage records per group.
#[derive(Debug, Serialize)]
pub struct UsageSumsView {
    /// The property of the groups: `key`, `model` or `day`.
    pub by: &'static str,
    /// The sum of each group.
    pub data: Vec<UsageSumView>,
    /// The sum of all groups.
    pub total: UsageTotalsView,
}

/// The sum of a group.
#[derive(Debug, Serialize)]
pub struct UsageSumView {
    /// The key's id, the model or the date.
    pub group: String,
    /// The name of a live key.
    pub name: Option<String>,
    /// The sum.
    pub sum: UsageTotalsView,
}

/// A sum of usage records.
#[derive(Debug, Serialize)]
pub struct UsageTotalsView {
    /// The number of records.
    pub requests: u64,
    /// The input tokens.
    pub input_tokens: u64,
    /// The output tokens.
    pub output_tokens: u64,
    /// The exact cost in USD.
    pub cost: UsdNumber,
}

impl UsageTotalsView {
    /// Returns the cells of a table row.
    pub fn cells(&self) -> [String; 4] {
        let Self { requests, input_tokens, output_tokens, cost } = self;
        [requests.to_string(), input_tokens.to_string(), output_tokens.to_string(), cost.0.to_string()]
    }
}
