//! Between a usage record and its row.

use std::time::Duration;

use domain::error::StoreError;
use domain::guardrail::FilterAction;
use domain::guardrail::filter::Finding;
use domain::ids::{DecisionId, GuardrailId, RequestId};
use domain::json::Json;
use domain::money::{Price, Usd};
use domain::routing::TokenPrices;
use domain::usage::{AttemptRecord, TokenSource, UsageOutcome, UsageRecord, UsageShare};
use serde::{Deserialize, Serialize};

use crate::convert::{duration, hash, hash_column, micros, millis, moment, parse, signed, unsigned};
use crate::entities::usage_records::Model;
use crate::errors::corrupt;

/// One attempt, as the column of attempts holds it. Older rows have nothing behind `latency_us`.
#[derive(Serialize, Deserialize)]
struct StoredAttempt {
    provider: String,
    upstream_model: String,
    outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upstream_status: Option<u16>,
    latency_us: i64,
    model: Option<String>,
    #[serde(default)]
    part: u32,
    began_us: Option<i64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    token_source: Option<String>,
    prompt_price: Option<String>,
    completion_price: Option<String>,
}

pub(super) fn to_row(record: &UsageRecord) -> Result<Model, StoreError> {
    let id = &record.id;
    let attempts: Vec<StoredAttempt> = record.attempts.iter().map(to_stored).collect();
    Ok(Model {
        id: id.as_str().to_owned(),
        workspace_id: record.workspace_id.to_string(),
        api_key: hash_column(&record.api_key),
        request_id: record.request_id.as_str().to_owned(),
        requested_model: record.requested_model.clone(),
        model: record.model.as_str().to_owned(),
        provider: record.provider.clone(),
        outcome: record.outcome.as_str().to_owned(),
        input_tokens: signed(record.input_tokens, "usage_records.input_tokens", id)?,
        output_tokens: signed(record.output_tokens, "usage_records.output_tokens", id)?,
        token_source: record.token_source.as_str().to_owned(),
        cost_pico: record.cost.pico(),
        prompt_price: record.prices.prompt.to_string(),
        completion_price: record.prices.completion.to_string(),
        attempts: serde_json::to_string(&attempts).map_err(|_| corrupt("usage_records.attempts", id))?,
        session_id: record.session_id.clone(),
        trace: record.trace.as_ref().map(|trace| trace.text().to_owned()),
        user: record.user.clone(),
        created_at: millis(record.created_at),
        latency_us: micros(record.latency),
        share_index: record.share.index.into(),
        share_of: record.share.of.into(),
        guardrails: write_guardrails(&record.guardrails),
        charged_at: millis(record.charged_at),
        findings: write_findings(&record.findings).map_err(|_| corrupt("usage_records.findings", id))?,
    })
}

pub(super) fn to_record(row: Model) -> Result<UsageRecord, StoreError> {
    let id: DecisionId = parse(&row.id, "usage_records.id", &row.id)?;
    let prices = TokenPrices {
        prompt: parse(&row.prompt_price, "usage_records.prompt_price", &id)?,
        completion: parse(&row.completion_price, "usage_records.completion_price", &id)?,
    };
    let attempts = row.attempts;
    let trace = row.trace.as_deref().map(Json::parse).transpose().map_err(|_| corrupt("usage_records.trace", &id))?;
    let record = UsageRecord {
        workspace_id: parse(&row.workspace_id, "usage_records.workspace_id", &id)?,
        api_key: hash(&row.api_key, "usage_records.api_key", &id)?,
        request_id: parse::<RequestId>(&row.request_id, "usage_records.request_id", &id)?,
        requested_model: row.requested_model,
        model: parse(&row.model, "usage_records.model", &id)?,
        provider: row.provider,
        outcome: UsageOutcome::from_name(&row.outcome).ok_or_else(|| corrupt("usage_records.outcome", &id))?,
        input_tokens: unsigned(row.input_tokens, "usage_records.input_tokens", &id)?,
        output_tokens: unsigned(row.output_tokens, "usage_records.output_tokens", &id)?,
        token_source: TokenSource::from_name(&row.token_source)
            .ok_or_else(|| corrupt("usage_records.token_source", &id))?,
        cost: Usd::from_pico(row.cost_pico),
        prices,
        share: share(row.share_index, row.share_of).ok_or_else(|| corrupt("usage_records.share_of", &id))?,
        attempts: std::sync::Arc::default(),
        guardrails: read_guardrails(&row.guardrails).ok_or_else(|| corrupt("usage_records.guardrails", &id))?,
        findings: read_findings(row.findings.as_deref()).ok_or_else(|| corrupt("usage_records.findings", &id))?,
        charged_at: moment(row.charged_at, "usage_records.charged_at", &id)?,
        session_id: row.session_id,
        trace,
        user: row.user,
        created_at: moment(row.created_at, "usage_records.created_at", &id)?,
        latency: duration(row.latency_us, "usage_records.latency_us", &id)?,
        id,
    };
    read_attempts(&attempts, record)
}

/// A finding of a filter, as its column holds it.
#[derive(Serialize, Deserialize)]
struct StoredFinding {
    guardrail_id: String,
    label: String,
    action: FilterAction,
    path: String,
    count: u32,
}

fn write_findings(findings: &[Finding]) -> Result<Option<String>, serde_json::Error> {
    if findings.is_empty() {
        return Ok(None);
    }
    let stored = findings.iter().map(|finding| StoredFinding {
        guardrail_id: finding.guardrail_id.to_string(),
        label: finding.label.clone(),
        action: finding.action,
        path: finding.path.clone(),
        count: finding.count,
    });
    serde_json::to_string(&stored.collect::<Vec<_>>()).map(Some)
}

fn read_findings(text: Option<&str>) -> Option<Vec<Finding>> {
    let Some(text) = text else { return Some(Vec::new()) };
    let stored: Vec<StoredFinding> = serde_json::from_str(text).ok()?;
    let finding = |stored: StoredFinding| {
        let StoredFinding { guardrail_id, label, action, path, count } = stored;
        Some(Finding { guardrail_id: guardrail_id.parse().ok()?, label, action, path, count })
    };
    stored.into_iter().map(finding).collect()
}

/// The guardrails of a payer: an array of ids.
pub(crate) fn write_guardrails(ids: &[GuardrailId]) -> String {
    let quoted: Vec<String> = ids.iter().map(|id| format!("\"{id}\"")).collect();
    format!("[{}]", quoted.join(","))
}

pub(crate) fn read_guardrails(text: &str) -> Option<Vec<GuardrailId>> {
    let ids: Vec<String> = serde_json::from_str(text).ok()?;
    ids.iter().map(|id| id.parse().ok()).collect()
}

fn share(index: i64, of: i64) -> Option<UsageShare> {
    let share = UsageShare { index: index.try_into().ok()?, of: of.try_into().ok()? };
    (share.index < share.of).then_some(share)
}

fn to_stored(attempt: &AttemptRecord) -> StoredAttempt {
    StoredAttempt {
        provider: attempt.provider.clone(),
        upstream_model: attempt.upstream_model.clone(),
        outcome: attempt.outcome.clone(),
        upstream_status: attempt.upstream_status,
        latency_us: micros(attempt.latency),
        model: Some(attempt.model.as_str().to_owned()),
        part: attempt.part,
        began_us: Some(micros(attempt.began)),
        input_tokens: Some(attempt.input_tokens),
        output_tokens: Some(attempt.output_tokens),
        token_source: Some(attempt.token_source.as_str().to_owned()),
        prompt_price: Some(attempt.prices.prompt.to_string()),
        completion_price: Some(attempt.prices.completion.to_string()),
    }
}

/// Fills in the attempts of `record`, which has none yet. What an older row does not say of an attempt follows from
/// its record: then there was one model, attempts were made one after another, and only the one that was answered
/// was charged.
fn read_attempts(text: &str, record: UsageRecord) -> Result<UsageRecord, StoreError> {
    let column = "usage_records.attempts";
    let stored: Vec<StoredAttempt> = serde_json::from_str(text).map_err(|_| corrupt(column, &record.id))?;
    let mut attempts: Vec<AttemptRecord> = Vec::with_capacity(stored.len());
    for attempt in stored {
        let end_of_last = attempts.last().map_or(Duration::ZERO, |last| last.began.saturating_add(last.latency));
        attempts.push(to_attempt(attempt, &record, end_of_last).ok_or_else(|| corrupt(column, &record.id))?);
    }
    Ok(UsageRecord { attempts: attempts.into(), ..record })
}

fn to_attempt(stored: StoredAttempt, record: &UsageRecord, end_of_last: Duration) -> Option<AttemptRecord> {
    let charged = stored.outcome == UsageOutcome::Completed.as_str();
    let of_record = |tokens: u64| if charged { tokens } else { 0 };
    let span = |micros: i64| u64::try_from(micros).ok().map(Duration::from_micros);
    let price = |text: Option<String>, of_record: Price| text.map_or(Some(of_record), |text| text.parse().ok());
    Some(AttemptRecord {
        model: stored.model.map_or_else(|| Some(record.model.clone()), |model| model.parse().ok())?,
        part: stored.part,
        began: stored.began_us.map_or(Some(end_of_last), span)?,
        latency: span(stored.latency_us)?,
        input_tokens: stored.input_tokens.unwrap_or_else(|| of_record(record.input_tokens)),
        output_tokens: stored.output_tokens.unwrap_or_else(|| of_record(record.output_tokens)),
        token_source: stored.token_source.map_or(Some(record.token_source), |name| TokenSource::from_name(&name))?,
        prices: TokenPrices {
            prompt: price(stored.prompt_price, record.prices.prompt)?,
            completion: price(stored.completion_price, record.prices.completion)?,
        },
        provider: stored.provider,
        upstream_model: stored.upstream_model,
        outcome: stored.outcome,
        upstream_status: stored.upstream_status,
    })
}
