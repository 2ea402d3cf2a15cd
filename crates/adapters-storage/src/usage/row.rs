//! Between a usage record and its row.

use domain::error::StoreError;
use domain::ids::{DecisionId, RequestId};
use domain::json::Json;
use domain::money::Usd;
use domain::routing::TokenPrices;
use domain::usage::{AttemptRecord, TokenSource, UsageOutcome, UsageRecord};
use serde::{Deserialize, Serialize};

use crate::convert::{duration, hash, hash_column, micros, millis, moment, parse, signed, unsigned};
use crate::entities::usage_records::Model;
use crate::errors::corrupt;

/// One attempt, as the column of attempts holds it.
#[derive(Serialize, Deserialize)]
struct StoredAttempt {
    provider: String,
    upstream_model: String,
    outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upstream_status: Option<u16>,
    latency_us: i64,
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
    })
}

pub(super) fn to_record(row: Model) -> Result<UsageRecord, StoreError> {
    let id: DecisionId = parse(&row.id, "usage_records.id", &row.id)?;
    let prices = TokenPrices {
        prompt: parse(&row.prompt_price, "usage_records.prompt_price", &id)?,
        completion: parse(&row.completion_price, "usage_records.completion_price", &id)?,
    };
    let trace = row.trace.as_deref().map(Json::parse).transpose().map_err(|_| corrupt("usage_records.trace", &id))?;
    Ok(UsageRecord {
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
        attempts: to_attempts(&row.attempts, &id)?,
        session_id: row.session_id,
        trace,
        user: row.user,
        created_at: moment(row.created_at, "usage_records.created_at", &id)?,
        latency: duration(row.latency_us, "usage_records.latency_us", &id)?,
        id,
    })
}

fn to_stored(attempt: &AttemptRecord) -> StoredAttempt {
    StoredAttempt {
        provider: attempt.provider.clone(),
        upstream_model: attempt.upstream_model.clone(),
        outcome: attempt.outcome.clone(),
        upstream_status: attempt.upstream_status,
        latency_us: micros(attempt.latency),
    }
}

fn to_attempts(text: &str, id: &DecisionId) -> Result<Vec<AttemptRecord>, StoreError> {
    let column = "usage_records.attempts";
    let stored: Vec<StoredAttempt> = serde_json::from_str(text).map_err(|_| corrupt(column, id))?;
    let read = |attempt: StoredAttempt| {
        Ok(AttemptRecord {
            latency: duration(attempt.latency_us, column, id)?,
            provider: attempt.provider,
            upstream_model: attempt.upstream_model,
            outcome: attempt.outcome,
            upstream_status: attempt.upstream_status,
        })
    };
    stored.into_iter().map(read).collect()
}
