//! The record of one Decisions request, and what is stored with it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{AttemptOutcome, AttemptRecord, UsageSource};
use crate::ids::{ApiKeyId, DecisionId, DestinationId, GuardrailId, OutboxId, PresetId, RequestId, WorkspaceId};
use crate::json::Json;
use crate::model::ModelId;
use crate::money::Usd;
use crate::pricing::TokenPrices;

named_enum! {
    /// The outcome of a Decisions request that reached a provider.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum UsageOutcome {
        /// It was answered.
        Completed = "completed",
        /// Every attempt failed.
        Failed = "failed",
        /// The client disconnected before the end.
        Cancelled = "cancelled",
        /// The process crashed, so the outcome is unknown.
        Abandoned = "abandoned",
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

    /// Returns this share of an amount. Shares differ by at most a picodollar and sum to the whole; the first ones are
    /// larger.
    pub fn apply(self, whole: Usd) -> Usd {
        let (of, index) = (i64::from(self.of.max(1)), i64::from(self.index));
        let (each, rest) = (whole.pico() / of, whole.pico() % of);
        Usd::from_pico(each + i64::from(index < rest))
    }
}

/// A version of a preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PresetReference {
    /// The preset.
    pub id: PresetId,
    /// The number of the version.
    pub version: u32,
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
    /// The preset that the request named.
    pub preset: Option<PresetReference>,
    /// The outcome of each question of a preset with stages, see [`super::QuestionOutcomes::json`].
    pub outcomes: Option<Json>,
    /// The start of the request.
    pub created_at: DateTime<Utc>,
    /// The time from the start of the request to its end.
    pub latency: Duration,
}

impl UsageRecord {
    /// Returns the outcome of the last failed attempt, with the provider's status; `None` for a completed request.
    pub fn failure_reason(&self) -> Option<String> {
        if self.outcome == UsageOutcome::Completed {
            return None;
        }
        let failed = self.attempts.iter().rev().find(|attempt| attempt.outcome != AttemptOutcome::Completed)?;
        Some(match failed.upstream_status {
            Some(status) => format!("{} ({status})", failed.outcome),
            None => failed.outcome.to_string(),
        })
    }

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
            + [&self.trace, &self.outcomes]
                .map(|json| json.as_ref().map_or(0, |json| json.text().len()))
                .iter()
                .sum::<usize>();
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns the time from the start of the first attempt to the end of the last one; `None` without attempts.
    pub fn time_at_providers(&self) -> Option<Duration> {
        let began = self.attempts.iter().map(|attempt| attempt.began).min()?;
        let ended = self.attempts.iter().map(|attempt| attempt.began.saturating_add(attempt.latency)).max()?;
        Some(ended.saturating_sub(began))
    }
}

named_enum! {
    /// The action of a filter on a match.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum FilterAction {
        /// Records the match in the usage record.
        Flag = "flag",
        /// Replaces the match before the request is sent.
        Redact = "redact",
        /// Rejects the request.
        Block = "block",
    }
}

/// A finding of a filter, without the matched text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The guardrail of the filter.
    pub guardrail_id: GuardrailId,
    /// The filter's label.
    pub label: String,
    /// The action on the match.
    pub action: FilterAction,
    /// The path of the first match.
    pub path: String,
    /// The number of matches.
    pub count: u32,
}

/// The labels of a request, for its usage record and its trace. They are not sent to providers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestLabels {
    /// The caller's group of requests.
    pub session_id: Option<String>,
    /// Observability metadata: a JSON object.
    pub trace: Option<Json>,
    /// The end user.
    pub user: Option<String>,
}

impl RequestLabels {
    /// Returns true if there are no labels.
    pub fn is_empty(&self) -> bool {
        self.session_id.is_none() && self.trace.is_none() && self.user.is_none()
    }

    /// Returns the size of their text in bytes.
    pub fn len_bytes(&self) -> usize {
        let texts = [self.session_id.as_deref(), self.trace.as_ref().map(Json::text), self.user.as_deref()];
        texts.into_iter().flatten().map(str::len).sum()
    }
}

/// The trace of one request for one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxMessage {
    /// The id, by which the destination can detect a repeated delivery.
    pub id: OutboxId,
    /// The destination.
    pub destination_id: DestinationId,
    /// The trace in the encoding for destinations.
    pub payload: Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_sum_to_the_whole_and_differ_by_one_at_most(cost in 0..i64::MAX, of in 1_u32..300) {
            let share = |index| UsageShare { index, of }.apply(Usd::from_pico(cost)).pico();
            let shares: Vec<i64> = (0..of).map(share).collect();
            prop_assert_eq!(shares.iter().map(|share| i128::from(*share)).sum::<i128>(), i128::from(cost));
            prop_assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
