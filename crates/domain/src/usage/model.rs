//! The record of one Decisions request.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::ids::{ApiKeyId, DecisionId, GuardrailId, RequestId, WorkspaceId};
use crate::json::Json;
use crate::model::ModelId;
use crate::money::Usd;
use crate::pricing::TokenPrices;
use crate::usage::Finding;

/// How a Decisions request that reached a provider ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageOutcome {
    /// It was answered.
    Completed,
    /// Every attempt failed.
    Failed,
    /// The caller left before the end.
    Cancelled,
    /// The process died; nobody knows how it ended.
    Abandoned,
}

impl UsageOutcome {
    /// Its name in stores and on surfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Abandoned => "abandoned",
        }
    }

    /// The outcome of that name.
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
    /// The model that it was asked for, by its name in the catalogue.
    pub model: ModelId,
    /// The model's name at the provider.
    pub upstream_model: String,
    /// Which part of a split request it was for, from 0.
    pub part: u32,
    /// `completed`, or how it failed.
    pub outcome: String,
    /// The provider's HTTP status, where it failed with one.
    pub upstream_status: Option<u16>,
    /// From the request's beginning to this attempt's.
    pub began: Duration,
    /// How long it took.
    pub latency: Duration,
    /// Tokens in.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Where the token counts come from.
    pub token_source: TokenSource,
    /// The prices that it is charged at.
    pub prices: TokenPrices,
}

impl AttemptRecord {
    /// What it adds to the cost of its request, rounded up by itself: the request's cost is rounded up once for all of
    /// its attempts, so that these may come to a few picodollars more. `None` where that leaves the range of money.
    pub fn cost(&self) -> Option<Usd> {
        self.prices.charge(self.input_tokens, self.output_tokens)?.round_up()
    }
}

/// Where token counts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenSource {
    /// The provider reported them.
    Reported,
    /// The provider reported none; the bound by the size of what was sent stands in for them.
    Bound,
}

impl TokenSource {
    /// Its name in stores and on surfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Bound => "bound",
        }
    }

    /// The source of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Reported, Self::Bound].into_iter().find(|source| source.as_str() == name)
    }
}

/// Which share of a call's cost a request bears, where several identical requests shared the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageShare {
    /// Its place among the requests, from 0; the first ones bear what does not divide.
    pub index: u32,
    /// How many requests shared the cost, at least 1.
    pub of: u32,
}

impl UsageShare {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, of: 1 };
}

/// The record of one Decisions request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRecord {
    /// The id that the answer carries.
    pub id: DecisionId,
    /// The workspace of the caller.
    pub workspace_id: WorkspaceId,
    /// The caller's key.
    pub api_key: ApiKeyId,
    /// The HTTP request.
    pub request_id: RequestId,
    /// The model as the caller named it.
    pub requested_model: String,
    /// The model that was served or tried.
    pub model: ModelId,
    /// The slug of the provider that answered; of the last one tried where none did.
    pub provider: String,
    /// How it ended.
    pub outcome: UsageOutcome,
    /// Tokens in.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Where the token counts come from.
    pub token_source: TokenSource,
    /// What it cost.
    pub cost: Usd,
    /// The prices of the endpoint that answered first. Each attempt has its own, so that the charge can be computed
    /// again: tokens times prices, summed over the attempts, rounded up once, then shared.
    pub prices: TokenPrices,
    /// Which share of the cost of its attempts it bears.
    pub share: UsageShare,
    /// Every attempt, in order.
    pub attempts: Arc<[AttemptRecord]>,
    /// The guardrails that the key was under, the workspace's first; the cost counts in their budgets.
    pub guardrails: Vec<GuardrailId>,
    /// What their filters redacted or flagged.
    pub findings: Vec<Finding>,
    /// The moment whose day, week and month the cost belongs to: that of its reservation, else `created_at`.
    pub charged_at: DateTime<Utc>,
    /// The caller's group of requests.
    pub session_id: Option<String>,
    /// The caller's observability metadata: a JSON object.
    pub trace: Option<Json>,
    /// The caller's end user.
    pub user: Option<String>,
    /// When the request began.
    pub created_at: DateTime<Utc>,
    /// From the request's beginning to its end.
    pub latency: Duration,
}

impl UsageRecord {
    /// The bytes that the record takes in a store: its texts, and an allowance for its numbers, names and indexes.
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

    /// From the first attempt's beginning to the last one's end; `None` where none was made.
    pub fn time_at_providers(&self) -> Option<Duration> {
        let began = self.attempts.iter().map(|attempt| attempt.began).min()?;
        let ended = self.attempts.iter().map(|attempt| attempt.began.saturating_add(attempt.latency)).max()?;
        Some(ended.saturating_sub(began))
    }
}
