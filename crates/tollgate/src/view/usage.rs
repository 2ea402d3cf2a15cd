//! Usage records.

use domain::guardrail::filter::Finding;
use domain::json::Json;
use domain::routing::TokenPrices;
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
    /// The id of the caller's key.
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
    pub usage_source: &'static str,
    /// What it cost, in USD.
    pub cost: UsdNumber,
    /// Which share of the cost of its attempts that is.
    pub cost_share: ShareView,
    /// The prices of the endpoint that answered first.
    pub prices: PricesView,
    /// Every attempt, in order.
    pub attempts: Vec<AttemptView>,
    /// The guardrails that the key was under, the workspace's first.
    pub guardrails: Vec<String>,
    /// What their filters redacted or flagged.
    pub findings: Vec<FindingView>,
    /// The moment whose day, week and month the cost belongs to.
    pub charged_at: String,
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

/// One of so many equal shares.
#[derive(Serialize)]
pub struct ShareView {
    /// Its place among the requests that shared a call, from 0.
    pub index: u32,
    /// How many requests share the cost.
    pub of: u32,
}

/// What a filter did. The text that it matched is kept nowhere.
#[derive(Serialize)]
pub struct FindingView {
    /// Whose filter.
    pub guardrail_id: String,
    /// The filter's label.
    pub label: String,
    /// `redact` or `flag`.
    pub action: &'static str,
    /// Where the first match was.
    pub path: String,
    /// How many there were.
    pub count: u32,
}

impl From<&Finding> for FindingView {
    fn from(finding: &Finding) -> Self {
        Self {
            guardrail_id: finding.guardrail_id.to_string(),
            label: finding.label.clone(),
            action: finding.action.as_str(),
            path: finding.path.clone(),
            count: finding.count,
        }
    }
}

/// One attempt.
#[derive(Serialize)]
pub struct AttemptView {
    /// The provider's slug.
    pub provider: String,
    /// The model that it was asked for.
    pub model: String,
    /// The model's name at the provider.
    pub upstream_model: String,
    /// Which part of a split request it was for, from 0.
    pub part: u32,
    /// `completed`, or how it failed.
    pub outcome: String,
    /// The provider's status, where it failed with one.
    pub upstream_status: Option<u16>,
    /// From the request's beginning to its own, in milliseconds.
    pub began_ms: u64,
    /// How long it took, in milliseconds.
    pub latency_ms: u64,
    /// Tokens in.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Where the token counts come from.
    pub usage_source: &'static str,
    /// What it adds to the cost, in USD, rounded up by itself; none where that is beyond what money can hold.
    pub cost: Option<UsdNumber>,
    /// The prices that it is charged at.
    pub prices: PricesView,
}

impl From<TokenPrices> for PricesView {
    fn from(prices: TokenPrices) -> Self {
        Self { prompt: prices.prompt.to_string(), completion: prices.completion.to_string() }
    }
}

impl From<&AttemptRecord> for AttemptView {
    fn from(attempt: &AttemptRecord) -> Self {
        Self {
            provider: attempt.provider.clone(),
            model: attempt.model.to_string(),
            upstream_model: attempt.upstream_model.clone(),
            part: attempt.part,
            outcome: attempt.outcome.clone(),
            upstream_status: attempt.upstream_status,
            began_ms: milliseconds(attempt.began),
            latency_ms: milliseconds(attempt.latency),
            input_tokens: attempt.input_tokens,
            output_tokens: attempt.output_tokens,
            usage_source: attempt.usage_source.as_str(),
            cost: attempt.cost().map(UsdNumber),
            prices: attempt.prices.into(),
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
            usage_source: record.usage_source.as_str(),
            cost: UsdNumber(record.cost),
            cost_share: ShareView { index: record.share.index, of: record.share.of },
            prices: record.prices.into(),
            attempts: record.attempts.iter().map(AttemptView::from).collect(),
            guardrails: record.guardrails.iter().map(ToString::to_string).collect(),
            findings: record.findings.iter().map(FindingView::from).collect(),
            charged_at: time(record.charged_at),
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

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use domain::usage::{UsageOutcome, UsageShare, UsageSource};
    use serde_json::{Value, json};
    use std::time::Duration;

    #[test]
    fn each_attempt_is_shown_with_its_part_tokens_and_exact_cost() {
        let prices = TokenPrices { prompt: "0.000000042".parse().unwrap(), completion: "0.10".parse().unwrap() };
        let attempt = AttemptRecord {
            provider: "acme".to_owned(),
            model: "acme/judge".parse().unwrap(),
            upstream_model: "judge-1".to_owned(),
            part: 1,
            outcome: "timed_out".to_owned(),
            upstream_status: Some(504),
            began: Duration::from_millis(20),
            latency: Duration::from_millis(30),
            input_tokens: 429,
            output_tokens: 0,
            usage_source: UsageSource::UpperBound,
            prices,
        };
        let record = UsageRecord {
            id: "gen-dec-1".parse().unwrap(),
            workspace_id: "01990000-0000-7000-8000-000000000001".parse().unwrap(),
            api_key: "01990000-0000-7000-8000-000000000007".parse().unwrap(),
            request_id: "r-1".parse().unwrap(),
            requested_model: "judge".to_owned(),
            model: "acme/judge".parse().unwrap(),
            provider: "acme".to_owned(),
            outcome: UsageOutcome::Failed,
            input_tokens: 429,
            output_tokens: 0,
            usage_source: UsageSource::UpperBound,
            cost: "0.000009009".parse().unwrap(),
            prices,
            share: UsageShare { index: 1, of: 2 },
            attempts: vec![attempt].into(),
            guardrails: Vec::new(),
            findings: Vec::new(),
            charged_at: DateTime::from_timestamp(1_767_225_600, 0).unwrap(),
            session_id: None,
            trace: None,
            user: None,
            created_at: DateTime::from_timestamp(1_767_225_600, 0).unwrap(),
            latency: Duration::from_millis(50),
        };
        let text = serde_json::to_string(&UsageView::from(&record)).unwrap();
        assert!(text.contains(r#""cost":0.000009009,"cost_share":{"index":1,"of":2},"#), "{text}");
        assert!(text.contains(r#""usage_source":"upper_bound","cost":0.000018018,"prices""#), "{text}");
        let shown: Value = serde_json::from_str(&text).unwrap();
        let attempt = &shown["attempts"][0];
        assert_eq!(attempt["prices"], json!({"prompt": "0.000000042", "completion": "0.10"}));
        let told =
            ["model", "part", "outcome", "upstream_status", "began_ms", "latency_ms", "input_tokens", "output_tokens"];
        let told: Vec<Value> = told.iter().map(|&name| attempt[name].clone()).collect();
        assert_eq!(Value::from(told), json!(["acme/judge", 1, "timed_out", 504, 20, 30, 429, 0]));
    }
}
