//! Usage records, their sums, and counts of rejected requests.

use std::net::IpAddr;

use domain::json::Json;
use domain::pricing::TokenPrices;
use domain::usage::{AttemptRecord, Finding, RejectionSum, UsageRecord};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{UsdNumber, time};

/// A complete usage record.
#[derive(Serialize)]
pub struct UsageView {
    /// The id from the response.
    pub id: String,
    /// The workspace of the key.
    pub workspace_id: String,
    /// The id of the key.
    pub api_key: String,
    /// The id of the HTTP request.
    pub request_id: String,
    /// The requested model name.
    pub requested_model: String,
    /// The model that answered or was tried.
    pub model: String,
    /// The provider's slug.
    pub provider: String,
    /// The outcome of the request.
    pub outcome: &'static str,
    /// The reason of another outcome than `completed`: that of the last failed attempt, with the provider's status.
    pub reason: Option<String>,
    /// The input tokens.
    pub input_tokens: u64,
    /// The output tokens.
    pub output_tokens: u64,
    /// The source of the token counts.
    pub usage_source: &'static str,
    /// The cost in USD.
    pub cost: UsdNumber,
    /// The request's share of the cost of its attempts.
    pub cost_share: ShareView,
    /// The prices of the first endpoint that answered.
    pub prices: PricesView,
    /// Every attempt, in order.
    pub attempts: Vec<AttemptView>,
    /// The guardrails of the request, the workspace's first.
    pub guardrails: Vec<String>,
    /// The findings of their filters.
    pub findings: Vec<FindingView>,
    /// The time that determines the day, week and month of the cost.
    pub charged_at: String,
    /// The client's group of requests.
    pub session_id: Option<String>,
    /// The client's observability metadata.
    pub trace: Option<Box<RawValue>>,
    /// The client's end user.
    pub user: Option<String>,
    /// The client's IP address; null if it is unknown or not recorded.
    pub client_address: Option<IpAddr>,
    /// The start of the request.
    pub created_at: String,
    /// The duration of the request in milliseconds.
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

/// A share of a cost that is split equally.
#[derive(Serialize)]
pub struct ShareView {
    /// The position among the requests of a shared call, from 0.
    pub index: u32,
    /// The number of requests that share the cost.
    pub of: u32,
}

/// A finding of a filter. The matched text is not stored.
#[derive(Serialize)]
pub struct FindingView {
    /// The guardrail of the filter.
    pub guardrail_id: String,
    /// The filter's label.
    pub label: String,
    /// `redact` or `flag`.
    pub action: &'static str,
    /// The position of the first match.
    pub path: String,
    /// The number of matches.
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

/// A provider attempt.
#[derive(Serialize)]
pub struct AttemptView {
    /// The provider's slug.
    pub provider: String,
    /// The requested model.
    pub model: String,
    /// The model's name at the provider.
    pub upstream_model: String,
    /// The sub-request that it belongs to, from 0.
    pub part: u32,
    /// `completed`, or the kind of failure.
    pub outcome: &'static str,
    /// The status of a provider's error response.
    pub upstream_status: Option<u16>,
    /// The time from the request's start to the attempt's, in milliseconds.
    pub began_ms: u64,
    /// The duration in milliseconds.
    pub latency_ms: u64,
    /// The input tokens.
    pub input_tokens: u64,
    /// The output tokens.
    pub output_tokens: u64,
    /// The source of the token counts.
    pub usage_source: &'static str,
    /// The cost in USD, rounded up per attempt; null if it exceeds the range of money.
    pub cost: Option<UsdNumber>,
    /// The prices of the attempt.
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
            outcome: attempt.outcome.as_str(),
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
            reason: record.failure_reason(),
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
            client_address: record.client_address,
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

/// Sums of rejected requests per status and reason.
#[derive(Debug, Serialize)]
pub struct RejectionSumsView {
    /// The property of the groups: `reason`.
    pub by: &'static str,
    /// The sum of each status and reason.
    pub data: Vec<RejectionSumView>,
    /// The sum of all.
    pub total: RejectionTotalsView,
}

/// The number of rejected requests with one status and reason.
#[derive(Debug, Serialize)]
pub struct RejectionSumView {
    /// The reason.
    pub group: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// The number of requests.
    pub requests: u64,
    /// The start of the newest hour with such a request.
    pub last_hour: String,
}

impl RejectionSumView {
    /// Returns the row of a table.
    pub fn line(&self) -> [String; 4] {
        [self.group.to_owned(), self.status.to_string(), self.requests.to_string(), self.last_hour.clone()]
    }
}

impl From<&RejectionSum> for RejectionSumView {
    fn from(sum: &RejectionSum) -> Self {
        Self {
            group: sum.reason.as_str(),
            status: sum.status.code(),
            requests: sum.count,
            last_hour: time(sum.last_hour),
        }
    }
}

/// The number of all rejected requests.
#[derive(Debug, Serialize)]
pub struct RejectionTotalsView {
    /// The number of requests.
    pub requests: u64,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::DateTime;
    use domain::usage::{AttemptOutcome, UsageOutcome, UsageShare, UsageSource};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn attempt_view_shows_part_tokens_and_exact_cost() {
        let prices = TokenPrices { prompt: "0.000000042".parse().unwrap(), completion: "0.10".parse().unwrap() };
        let attempt = AttemptRecord {
            provider: "acme".to_owned(),
            model: "acme/judge".parse().unwrap(),
            upstream_model: "judge-1".to_owned(),
            part: 1,
            outcome: AttemptOutcome::TimedOut,
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
            client_address: None,
            preset: None,
            created_at: DateTime::from_timestamp(1_767_225_600, 0).unwrap(),
            latency: Duration::from_millis(50),
        };
        let text = serde_json::to_string(&UsageView::from(&record)).unwrap();
        assert!(text.contains(r#""cost":0.000009009,"cost_share":{"index":1,"of":2},"#), "{text}");
        assert!(text.contains(r#""usage_source":"upper_bound","cost":0.000018018,"prices""#), "{text}");
        let shown: Value = serde_json::from_str(&text).unwrap();
        let attempt = &shown["attempts"][0];
        assert_eq!(attempt["prices"], json!({"prompt": "0.000000042", "completion": "0.10"}));
        let shown =
            ["model", "part", "outcome", "upstream_status", "began_ms", "latency_ms", "input_tokens", "output_tokens"];
        let shown: Vec<Value> = shown.iter().map(|&name| attempt[name].clone()).collect();
        assert_eq!(Value::from(shown), json!(["acme/judge", 1, "timed_out", 504, 20, 30, 429, 0]));
    }
}
