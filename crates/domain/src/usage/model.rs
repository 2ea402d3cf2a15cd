//! The record of one Decisions request.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::ids::{ApiKeyId, DecisionId, GuardrailId, RequestId, WorkspaceId};
use crate::json::Json;
use crate::model::ModelId;
use crate::money::Usd;
use crate::pricing::TokenPrices;
use crate::usage::Finding;

/// The outcome of a Decisions request that reached a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageOutcome {
    /// It was answered.
    Completed,
    /// Every attempt failed.
    Failed,
    /// The client disconnected before the end.
    Cancelled,
    /// The process crashed, so the outcome is unknown.
    Abandoned,
}

impl UsageOutcome {
    /// Returns the name in stores and on all interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Abandoned => "abandoned",
        }
    }

    /// Returns the outcome of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Completed, Self::Failed, Self::Cancelled, Self::Abandoned];
        all.into_iter().find(|outcome| outcome.as_str() == name)
    }
}

/// One attempt at one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// The provider's slug.
    pub provider: String,
    /// The requested model, by its name in the catalogue.
    pub model: ModelId,
    /// The model's name at the provider.
    pub upstream_model: String,
    /// The index of the sub-request that it was for, from 0.
    pub part: u32,
    /// `completed`, or the kind of failure.
    pub outcome: String,
    /// The provider's HTTP status, if it failed with one.
    pub upstream_status: Option<u16>,
    /// The time from the start of the request to the start of the attempt.
    pub began: Duration,
    /// The duration of the attempt.
    pub latency: Duration,
    /// The number of input tokens.
    pub input_tokens: u64,
    /// The number of output tokens.
    pub output_tokens: u64,
    /// The source of the token counts.
    pub usage_source: UsageSource,
    /// The prices of the attempt.
    pub prices: TokenPrices,
}

impl AttemptRecord {
    /// Returns the cost of this attempt, rounded up by itself. The cost of a request is rounded up once over all
    /// attempts, so that the sum of these can be a few picodollars higher. Returns `None` on overflow.
    pub fn cost(&self) -> Option<Usd> {
        self.prices.charge(self.input_tokens, self.output_tokens)?.round_up()
    }
}

/// The source of token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageSource {
    /// The provider reported them.
    Reported,
    /// The provider reported none; the counts are the upper bound by the size of the request.
    UpperBound,
    /// No usage: nothing was sent, or the provider rejected the request and bills nothing.
    None,
}

impl UsageSource {
    /// Returns its name in stores and on surfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::UpperBound => "upper_bound",
            Self::None => "none",
        }
    }

    /// Returns the source with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Reported, Self::UpperBound, Self::None].into_iter().find(|source| source.as_str() == name)
    }

    /// Returns the source of a sum: one upper bound makes the sum an upper bound.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        match (self, other) {
            (Self::UpperBound, _) | (_, Self::UpperBound) => Self::UpperBound,
            (Self::Reported, _) | (_, Self::Reported) => Self::Reported,
            (Self::None, Self::None) => Self::None,
        }
    }
}

/// The share of a call's cost that a request pays, if several identical requests shared the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageShare {
    /// The index among the requests, from 0; the first ones pay the remainder of the division.
    pub index: u32,
    /// The number of requests that share the cost, at least 1.
    pub of: u32,
}

impl UsageShare {
    /// The whole cost.
    pub const WHOLE: Self = Self { index: 0, of: 1 };
}

/// The record of one Decisions request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRecord {
    /// The id in the response.
    pub id: DecisionId,
    /// The workspace of the caller.
    pub workspace_id: WorkspaceId,
    /// The caller's key.
    pub api_key: ApiKeyId,
    /// The id of the HTTP request.
    pub request_id: RequestId,
    /// The model as the caller named it.
    pub requested_model: String,
    /// The model that was served or tried.
    pub model: ModelId,
    /// The slug of the provider that answered, or else of the last one tried.
    pub provider: String,
    /// The outcome.
    pub outcome: UsageOutcome,
    /// The number of input tokens.
    pub input_tokens: u64,
    /// The number of output tokens.
    pub output_tokens: u64,
    /// The source of the token counts.
    pub usage_source: UsageSource,
    /// The cost.
    pub cost: Usd,
    /// The prices of the endpoint that answered first. Each attempt has its own prices, so that the charge can be
    /// audited: tokens times prices, summed over the attempts, rounded up once, then shared.
    pub prices: TokenPrices,
    /// The share of the attempts' cost that this request pays.
    pub share: UsageShare,
    /// Every attempt, in order.
    pub attempts: Arc<[AttemptRecord]>,
    /// The guardrails that applied to the key, the workspace's first. The cost counts in their budgets.
    pub guardrails: Vec<GuardrailId>,
    /// The redacted and flagged matches of their filters.
    pub findings: Vec<Finding>,
    /// The time that decides to which day, week and month the cost belongs: that of the hold, or else `created_at`.
    pub charged_at: DateTime<Utc>,
    /// The caller's group of requests.
    pub session_id: Option<String>,
    /// The caller's observability metadata: a JSON object.
    pub trace: Option<Json>,
    /// The caller's end user.
    pub user: Option<String>,
    /// The client's address; `None` if it is unknown or not recorded.
    pub client_address: Option<IpAddr>,
    /// The start of the request.
    pub created_at: DateTime<Utc>,
    /// The time from the start of the request to its end.
    pub latency: Duration,
}

impl UsageRecord {
    /// Estimates the bytes that the record takes in a store: its text, and an allowance for numbers, names and indexes.
    pub fn stored_bytes(&self) -> u64 {
        const RECORD: usize = 512;
        const ATTEMPT: usize = 256;
        const FINDING: usize = 128;
        const GUARDRAIL: usize = 40;
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let attempt = |attempt: &AttemptRecord| {
            ATTEMPT + attempt.provider.len() + attempt.model.as_str().len() + attempt.upstream_model.len()
        };
        let bytes = RECORD
            + self.requested_model.len()
            + self.model.as_str().len()
            + self.provider.len()
            + self.attempts.iter().map(attempt).sum::<usize>()
            + self.findings.iter().map(|found| FINDING + found.label.len() + found.path.len()).sum::<usize>()
            + self.guardrails.len() * GUARDRAIL
            + text(&self.session_id)
            + text(&self.user)
            + self.trace.as_ref().map_or(0, |trace| trace.text().len());
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns the time from the start of the first attempt to the end of the last one; `None` without attempts.
    pub fn time_at_providers(&self) -> Option<Duration> {
        let began = self.attempts.iter().map(|attempt| attempt.began).min()?;
        let ended = self.attempts.iter().map(|attempt| attempt.began.saturating_add(attempt.latency)).max()?;
        Some(ended.saturating_sub(began))
    }
}
