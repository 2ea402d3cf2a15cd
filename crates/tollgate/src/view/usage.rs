//! Usage records.

use domain::json::Json;
use domain::usage::{AttemptRecord, UsageRecord};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{UsdNumber, time};

/// A usage record with every field.
#[derive(Serialize)]
pub struct UsageView {
    /// The id that the answer carried.
    pub id: String,
    /// The caller's workspace.
    pub workspace_id: String,
    /// The hash of the caller's key.
    pub api_key: String,
    /// The HTTP request.
    pub request_id: String,
    /// The model as the caller named it.
    pub requested_model: String,
    /// The model that was served or tried.
    pub model: String,
    /// The provider's slug.
    pub provider: String,
    /// How it ended.
    pub outcome: &'static str,
    /// Tokens in.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Where the token counts come from.
    pub token_source: &'static str,
    /// What it cost, in USD.
    pub cost: UsdNumber,
    /// The prices that it was charged at.
    pub prices: PricesView,
    /// Every attempt, in order.
    pub attempts: Vec<AttemptView>,
    /// The caller's group of requests.
    pub session_id: Option<String>,
    /// The caller's observability metadata.
    pub trace: Option<Box<RawValue>>,
    /// The caller's end user.
    pub user: Option<String>,
    /// When the request began.
    pub created_at: String,
    /// From its beginning to its end, in milliseconds.
    pub latency_ms: u64,
}

/// Prices in USD per token, as decimal strings.
#[derive(Serialize)]
pub struct PricesView {
    /// Per input token.
    pub prompt: String,
    /// Per output token.
    pub completion: String,
}

/// One attempt.
#[derive(Serialize)]
pub struct AttemptView {
    /// The provider's slug.
    pub provider: String,
    /// The model's name at the provider.
    pub upstream_model: String,
    /// `completed`, or how it failed.
    pub outcome: String,
    /// The provider's status, where it failed with one.
    pub upstream_status: Option<u16>,
    /// How long it took, in milliseconds.
    pub latency_ms: u64,
}

impl From<&AttemptRecord> for AttemptView {
    fn from(attempt: &AttemptRecord) -> Self {
        Self {
            provider: attempt.provider.clone(),
            upstream_model: attempt.upstream_model.clone(),
            outcome: attempt.outcome.clone(),
            upstream_status: attempt.upstream_status,
            latency_ms: milliseconds(attempt.latency),
        }
    }
}

impl From<&UsageRecord> for UsageView {
    fn from(record: &UsageRecord) -> Self {
        Self {
            id: record.id.to_string(),
            workspace_id: record.workspace_id.to_string(),
            api_key: record.api_key.to_string(),
            request_id: record.request_id.to_string(),
            requested_model: record.requested_model.clone(),
            model: record.model.to_string(),
            provider: record.provider.clone(),
            outcome: record.outcome.as_str(),
            input_tokens: record.input_tokens,
            output_tokens: record.output_tokens,
            token_source: record.token_source.as_str(),
            cost: UsdNumber(record.cost),
            prices: PricesView {
                prompt: record.prices.prompt.to_string(),
                completion: record.prices.completion.to_string(),
            },
            attempts: record.attempts.iter().map(AttemptView::from).collect(),
            session_id: record.session_id.clone(),
            trace: record.trace.as_ref().and_then(raw),
            user: record.user.clone(),
            created_at: time(record.created_at),
            latency_ms: milliseconds(record.latency),
        }
    }
}

fn raw(json: &Json) -> Option<Box<RawValue>> {
    RawValue::from_string(json.text().to_owned()).ok()
}

fn milliseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
