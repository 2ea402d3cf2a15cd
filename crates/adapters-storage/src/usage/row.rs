//! Between a usage record and its row.

use std::time::Duration;

use domain::error::StoreError;
use domain::guardrail::FilterAction;
use domain::guardrail::filter::Finding;
use domain::ids::{DecisionId, GuardrailId, RequestId};
use domain::json::Json;
use domain::money::Usd;
use domain::routing::TokenPrices;
use domain::usage::{AttemptRecord, TokenSource, UsageOutcome, UsageRecord, UsageShare};
use sea_orm::Value;
use serde::{Deserialize, Serialize};

use crate::convert::{duration, hash, hash_column, micros, millis, moment, parse, signed, unsigned};
use crate::entities::usage_records::Model;
use crate::errors::corrupt;

/// One attempt, as it is written into the column of attempts.
#[derive(Serialize)]
struct WrittenAttempt<'a> {
    provider: &'a str,
    upstream_model: &'a str,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_status: Option<u16>,
    latency_us: i64,
    model: &'a str,
    part: u32,
    began_us: i64,
    input_tokens: u64,
    output_tokens: u64,
    token_source: &'a str,
    prompt_price: String,
    completion_price: String,
}

/// One attempt, as the column of attempts holds it. Older rows have nothing behind `latency_us`.
#[derive(Deserialize)]
struct StoredAttempt {
    provider: String,
    upstream_model: String,
    outcome: String,
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

pub(super) fn to_row(record: UsageRecord) -> Result<Model, StoreError> {
    let id = &record.id;
    Ok(Model {
        workspace_id: record.workspace_id.to_string(),
        api_key: hash_column(&record.api_key),
        request_id: record.request_id.as_str().to_owned(),
        model: record.model.as_str().to_owned(),
        outcome: record.outcome.as_str().to_owned(),
        input_tokens: signed(record.input_tokens, "usage_records.input_tokens", id)?,
        output_tokens: signed(record.output_tokens, "usage_records.output_tokens", id)?,
        token_source: record.token_source.as_str().to_owned(),
        cost_pico: record.cost.pico(),
        prompt_price: record.prices.prompt.to_string(),
        completion_price: record.prices.completion.to_string(),
        attempts: write_attempts(&record.attempts).map_err(|_| corrupt("usage_records.attempts", id))?,
        trace: record.trace.as_ref().map(|trace| trace.text().to_owned()),
        created_at: millis(record.created_at),
        latency_us: micros(record.latency),
        share_index: record.share.index.into(),
        share_of: record.share.of.into(),
        guardrails: write_guardrails(&record.guardrails),
        charged_at: millis(record.charged_at),
        findings: write_findings(&record.findings).map_err(|_| corrupt("usage_records.findings", id))?,
        id: id.as_str().to_owned(),
        requested_model: record.requested_model,
        provider: record.provider,
        session_id: record.session_id,
        user: record.user,
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
    if ids.is_empty() {
        return "[]".to_owned();
    }
    let quoted: Vec<String> = ids.iter().map(|id| format!("\"{id}\"")).collect();
    format!("[{}]", quoted.join(","))
}

pub(crate) fn read_guardrails(text: &str) -> Option<Vec<GuardrailId>> {
    let ids: Vec<String> = serde_json::from_str(text).ok()?;
    ids.iter().map(|id| id.parse().ok()).collect()
}

/// The column of attempts.
pub(super) fn write_attempts(attempts: &[AttemptRecord]) -> Result<String, serde_json::Error> {
    serde_json::to_string(&attempts.iter().map(to_written).collect::<Vec<_>>())
}

/// What [`write_attempts`] wrote.
pub(super) fn read_whole_attempts(text: &str) -> Option<Vec<AttemptRecord>> {
    let stored: Vec<StoredAttempt> = serde_json::from_str(text).ok()?;
    stored.into_iter().map(whole_attempt).collect()
}

fn share(index: i64, of: i64) -> Option<UsageShare> {
    let share = UsageShare { index: index.try_into().ok()?, of: of.try_into().ok()? };
    (share.index < share.of).then_some(share)
}

fn to_written(attempt: &AttemptRecord) -> WrittenAttempt<'_> {
    WrittenAttempt {
        provider: &attempt.provider,
        upstream_model: &attempt.upstream_model,
        outcome: &attempt.outcome,
        upstream_status: attempt.upstream_status,
        latency_us: micros(attempt.latency),
        model: attempt.model.as_str(),
        part: attempt.part,
        began_us: micros(attempt.began),
        input_tokens: attempt.input_tokens,
        output_tokens: attempt.output_tokens,
        token_source: attempt.token_source.as_str(),
        prompt_price: attempt.prices.prompt.to_string(),
        completion_price: attempt.prices.completion.to_string(),
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
    let filled = StoredAttempt {
        model: stored.model.or_else(|| Some(record.model.as_str().to_owned())),
        began_us: stored.began_us.or_else(|| Some(micros(end_of_last))),
        input_tokens: stored.input_tokens.or_else(|| Some(of_record(record.input_tokens))),
        output_tokens: stored.output_tokens.or_else(|| Some(of_record(record.output_tokens))),
        token_source: stored.token_source.or_else(|| Some(record.token_source.as_str().to_owned())),
        prompt_price: stored.prompt_price.or_else(|| Some(record.prices.prompt.to_string())),
        completion_price: stored.completion_price.or_else(|| Some(record.prices.completion.to_string())),
        ..stored
    };
    whole_attempt(filled)
}

fn whole_attempt(stored: StoredAttempt) -> Option<AttemptRecord> {
    let span = |micros: i64| u64::try_from(micros).ok().map(Duration::from_micros);
    Some(AttemptRecord {
        model: stored.model?.parse().ok()?,
        part: stored.part,
        began: span(stored.began_us?)?,
        latency: span(stored.latency_us)?,
        input_tokens: stored.input_tokens?,
        output_tokens: stored.output_tokens?,
        token_source: TokenSource::from_name(&stored.token_source?)?,
        prices: TokenPrices {
            prompt: stored.prompt_price?.parse().ok()?,
            completion: stored.completion_price?.parse().ok()?,
        },
        provider: stored.provider,
        upstream_model: stored.upstream_model,
        outcome: stored.outcome,
        upstream_status: stored.upstream_status,
    })
}

/// In the order of the columns.
pub(super) fn values(row: &Model) -> [Value; 25] {
    [
        row.id.as_str().into(),
        row.workspace_id.as_str().into(),
        row.api_key.as_slice().into(),
        row.request_id.as_str().into(),
        row.requested_model.as_str().into(),
        row.model.as_str().into(),
        row.provider.as_str().into(),
        row.outcome.as_str().into(),
        row.input_tokens.into(),
        row.output_tokens.into(),
        row.token_source.as_str().into(),
        row.cost_pico.into(),
        row.prompt_price.as_str().into(),
        row.completion_price.as_str().into(),
        row.attempts.as_str().into(),
        row.session_id.as_deref().into(),
        row.trace.as_deref().into(),
        row.user.as_deref().into(),
        row.created_at.into(),
        row.latency_us.into(),
        row.share_index.into(),
        row.share_of.into(),
        row.guardrails.as_str().into(),
        row.charged_at.into(),
        row.findings.as_deref().into(),
    ]
}
