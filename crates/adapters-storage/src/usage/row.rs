//! Conversion between usage records and rows, and the expected cost of a stored record.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use domain::budget::cost_of_tokens;
use domain::error::StoreError;
use domain::ids::{DecisionId, PresetId};
use domain::json::Json;
use domain::money::{Price, Usd};
use domain::pricing::TokenPrices;
use domain::usage::{
    AttemptOutcome, AttemptRecord, FilterAction, Finding, PresetReference, UsageOutcome, UsageRecord, UsageShare,
    UsageSource,
};
use sea_orm::QueryResult;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ids;
use crate::connections::RowWriter;
use crate::convert::{duration, key_column, key_id, micros, millis, moment, parse, signed, unsigned};
use crate::entities::usage_records::Model;
use crate::errors::corrupt;
use crate::statements::column;

/// An attempt as stored in its column. Missing members follow from the record: see [`to_attempt`].
#[derive(Serialize, Deserialize)]
struct StoredAttempt<'a> {
    #[serde(borrow, rename = "p", skip_serializing_if = "Option::is_none")]
    provider: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "u", skip_serializing_if = "Option::is_none")]
    upstream_model: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "r", skip_serializing_if = "Option::is_none")]
    outcome: Option<Cow<'a, str>>,
    #[serde(rename = "s", skip_serializing_if = "Option::is_none")]
    upstream_status: Option<u16>,
    #[serde(rename = "l")]
    latency_us: i64,
    #[serde(borrow, rename = "m", skip_serializing_if = "Option::is_none")]
    model: Option<Cow<'a, str>>,
    #[serde(rename = "k", default, skip_serializing_if = "is_zero")]
    part: u32,
    #[serde(rename = "b", skip_serializing_if = "Option::is_none")]
    began_us: Option<i64>,
    #[serde(rename = "i", skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    #[serde(rename = "o", skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    #[serde(borrow, rename = "t", skip_serializing_if = "Option::is_none")]
    usage_source: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "pi", skip_serializing_if = "Option::is_none")]
    prompt_price: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "po", skip_serializing_if = "Option::is_none")]
    completion_price: Option<Cow<'a, str>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

pub(super) fn to_record(row: Model) -> Result<UsageRecord, StoreError> {
    let id: DecisionId = ids::decision_id(&row.id)?;
    let prices = TokenPrices {
        prompt: parse(&row.prompt_price, "usage_records.prompt_price", &id)?,
        completion: parse(&row.completion_price, "usage_records.completion_price", &id)?,
    };
    let attempts = row.attempts;
    let json = |text: Option<&str>, column| text.map(Json::parse).transpose().map_err(|_| corrupt(column, &id));
    let trace = json(row.trace.as_deref(), "usage_records.trace")?;
    let outcomes = json(row.outcomes.as_deref(), "usage_records.outcomes")?;
    let record = UsageRecord {
        workspace_id: ids::workspace_id(&row.workspace_id).ok_or_else(|| corrupt("usage_records.workspace_id", &id))?,
        api_key: key_id(&row.api_key, "usage_records.api_key", &id)?,
        request_id: ids::request_id(&row.request_id).ok_or_else(|| corrupt("usage_records.request_id", &id))?,
        requested_model: row.requested_model.unwrap_or_else(|| row.model.clone()),
        model: parse(&row.model, "usage_records.model", &id)?,
        provider: row.provider,
        outcome: UsageOutcome::from_name(&row.outcome).ok_or_else(|| corrupt("usage_records.outcome", &id))?,
        input_tokens: unsigned(row.input_tokens, "usage_records.input_tokens", &id)?,
        output_tokens: unsigned(row.output_tokens, "usage_records.output_tokens", &id)?,
        usage_source: match &row.usage_source {
            Some(name) => UsageSource::from_name(name).ok_or_else(|| corrupt("usage_records.usage_source", &id))?,
            None => UsageSource::Reported,
        },
        cost: Usd::from_pico(row.cost_pico),
        prices,
        share: share(row.share_index.unwrap_or(0), row.share_of.unwrap_or(1))
            .ok_or_else(|| corrupt("usage_records.share_of", &id))?,
        attempts: std::sync::Arc::default(),
        guardrails: ids::guardrails(row.guardrails.as_deref())
            .ok_or_else(|| corrupt("usage_records.guardrails", &id))?,
        findings: read_findings(row.findings.as_deref()).ok_or_else(|| corrupt("usage_records.findings", &id))?,
        charged_at: moment(row.charged_at, "usage_records.charged_at", &id)?,
        session_id: row.session_id,
        trace,
        user: row.user,
        client_address: client_address(row.client_address.as_deref())
            .ok_or_else(|| corrupt("usage_records.client_address", &id))?,
        preset: preset(row.preset_id.as_deref(), row.preset_version)
            .ok_or_else(|| corrupt("usage_records.preset_id", &id))?,
        outcomes,
        created_at: moment(row.created_at, "usage_records.created_at", &id)?,
        latency: duration(row.latency_us, "usage_records.latency_us", &id)?,
        id,
    };
    read_attempts(&attempts, record)
}

/// Returns the address of 4 or 16 bytes; `None` if the bytes are no address.
#[expect(clippy::option_option, reason = "malformed, absent, present")]
fn client_address(bytes: Option<&[u8]>) -> Option<Option<IpAddr>> {
    let Some(bytes) = bytes else { return Some(None) };
    let short = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    short.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok().map(Some)
}

/// Returns the preset of a record; `None` if the columns are malformed.
#[expect(clippy::option_option, reason = "malformed, absent, present")]
fn preset(id: Option<&[u8]>, version: Option<i64>) -> Option<Option<PresetReference>> {
    let (id, version) = match (id, version) {
        (None, None) => return Some(None),
        (id, version) => (id?, version?),
    };
    let id = PresetId::from_uuid(Uuid::from_slice(id).ok()?);
    Some(Some(PresetReference { id, version: version.try_into().ok()? }))
}

fn client_address_column(address: Option<IpAddr>) -> Option<Vec<u8>> {
    address.map(|address| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    })
}

/// A finding of a filter, as stored in its column.
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

/// Encodes the attempts, without members that follow from the record.
fn write_attempts(record: &UsageRecord) -> Result<String, serde_json::Error> {
    let mut end_of_last = Duration::ZERO;
    let mut stored = Vec::with_capacity(record.attempts.len());
    for attempt in &*record.attempts {
        stored.push(to_stored(attempt, record, end_of_last));
        end_of_last = attempt.began.saturating_add(attempt.latency);
    }
    serde_json::to_string(&stored)
}

pub(super) fn share(index: i64, of: i64) -> Option<UsageShare> {
    let share = UsageShare { index: index.try_into().ok()?, of: of.try_into().ok()? };
    (share.index < share.of).then_some(share)
}

/// Encodes an attempt without the members that [`to_attempt`] fills in.
fn to_stored<'a>(attempt: &'a AttemptRecord, record: &UsageRecord, end_of_last: Duration) -> StoredAttempt<'a> {
    let charged = attempt.outcome == AttemptOutcome::Completed;
    let of_record = |tokens: u64| if charged { tokens } else { 0 };
    let (model, began) = (attempt.model.as_str(), micros(attempt.began));
    let unless = |is_known: bool, text: &'a str| (!is_known).then_some(Cow::Borrowed(text));
    // Equal prices may have different digits.
    let price = |own: Price, of_record: Price| (own.parts() != of_record.parts()).then(|| own.to_string().into());
    StoredAttempt {
        provider: unless(*attempt.provider == *record.provider, &attempt.provider),
        upstream_model: unless(*attempt.upstream_model == *model, &attempt.upstream_model),
        outcome: unless(attempt.outcome.as_str() == record.outcome.as_str(), attempt.outcome.as_str()),
        upstream_status: attempt.upstream_status,
        latency_us: micros(attempt.latency),
        model: unless(attempt.model == record.model, model),
        part: attempt.part,
        began_us: Some(began).filter(|began| *began != micros(end_of_last)),
        input_tokens: Some(attempt.input_tokens).filter(|tokens| *tokens != of_record(record.input_tokens)),
        output_tokens: Some(attempt.output_tokens).filter(|tokens| *tokens != of_record(record.output_tokens)),
        usage_source: unless(attempt.usage_source == record.usage_source, attempt.usage_source.as_str()),
        prompt_price: price(attempt.prices.prompt, record.prices.prompt),
        completion_price: price(attempt.prices.completion, record.prices.completion),
    }
}

/// Decodes the attempts of `record`, which has none yet.
fn read_attempts(text: &str, record: UsageRecord) -> Result<UsageRecord, StoreError> {
    let column = "usage_records.attempts";
    let stored: Vec<StoredAttempt<'_>> = serde_json::from_str(text).map_err(|_| corrupt(column, &record.id))?;
    let mut attempts: Vec<AttemptRecord> = Vec::with_capacity(stored.len());
    for attempt in stored {
        let end_of_last = attempts.last().map_or(Duration::ZERO, |last| last.began.saturating_add(last.latency));
        attempts.push(to_attempt(attempt, &record, end_of_last).ok_or_else(|| corrupt(column, &record.id))?);
    }
    Ok(UsageRecord { attempts: attempts.into(), ..record })
}

fn to_attempt(stored: StoredAttempt<'_>, record: &UsageRecord, end_of_last: Duration) -> Option<AttemptRecord> {
    let span = |micros: i64| u64::try_from(micros).ok().map(Duration::from_micros);
    let price = |text: Option<Cow<'_, str>>, of_record| text.map_or(Some(of_record), |text| text.parse().ok());
    let outcome = stored.outcome.as_deref().unwrap_or(record.outcome.as_str());
    let charged = outcome == UsageOutcome::Completed.as_str();
    let of_record = |tokens: u64| if charged { tokens } else { 0 };
    let model = stored.model.as_deref().unwrap_or(record.model.as_str());
    let usage_source = stored.usage_source.as_deref().unwrap_or(record.usage_source.as_str());
    Some(AttemptRecord {
        model: model.parse().ok()?,
        part: stored.part,
        began: span(stored.began_us.unwrap_or_else(|| micros(end_of_last)))?,
        latency: span(stored.latency_us)?,
        input_tokens: stored.input_tokens.unwrap_or_else(|| of_record(record.input_tokens)),
        output_tokens: stored.output_tokens.unwrap_or_else(|| of_record(record.output_tokens)),
        usage_source: UsageSource::from_name(usage_source)?,
        prices: TokenPrices {
            prompt: price(stored.prompt_price, record.prices.prompt)?,
            completion: price(stored.completion_price, record.prices.completion)?,
        },
        provider: stored.provider.as_deref().unwrap_or(&record.provider).into(),
        upstream_model: stored.upstream_model.as_deref().unwrap_or(model).into(),
        outcome: AttemptOutcome::from_name(outcome),
        upstream_status: stored.upstream_status,
    })
}

/// Replaces NUL, which PostgreSQL does not store in texts: no caller's text may fail the fold of a charge.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// The columns of [`write_record`].
pub(crate) const RECORD_COLUMNS: [&str; 29] = [
    "id",
    "workspace_id",
    "api_key",
    "request_id",
    "requested_model",
    "model",
    "provider",
    "outcome",
    "input_tokens",
    "output_tokens",
    "usage_source",
    "cost_pico",
    "prompt_price",
    "completion_price",
    "attempts",
    "session_id",
    "trace",
    "\"user\"",
    "created_at",
    "latency_us",
    "share_index",
    "share_of",
    "guardrails",
    "charged_at",
    "findings",
    "client_address",
    "preset_id",
    "preset_version",
    "outcomes",
];

/// Writes the row of a record, in the order of [`RECORD_COLUMNS`].
pub(crate) fn write_record(record: &UsageRecord, row: &mut dyn RowWriter) -> Result<(), StoreError> {
    let id = &record.id;
    let attempts = write_attempts(record).map_err(|_| corrupt("usage_records.attempts", id))?;
    let findings = write_findings(&record.findings).map_err(|_| corrupt("usage_records.findings", id))?;
    let model = record.model.as_str();
    row.bytes(Some(ids::decision_column(id)))?;
    row.bytes(Some(ids::workspace_column(record.workspace_id)))?;
    row.bytes(Some(key_column(record.api_key)))?;
    row.bytes(Some(ids::request_column(&record.request_id)))?;
    row.text((record.requested_model != model).then(|| storable(&record.requested_model)).as_deref())?;
    row.text(Some(model))?;
    row.text(Some(&record.provider))?;
    row.text(Some(record.outcome.as_str()))?;
    row.integer(Some(signed(record.input_tokens, "usage_records.input_tokens", id)?))?;
    row.integer(Some(signed(record.output_tokens, "usage_records.output_tokens", id)?))?;
    row.text((record.usage_source != UsageSource::Reported).then(|| record.usage_source.as_str()))?;
    row.integer(Some(record.cost.pico()))?;
    row.text(Some(&record.prices.prompt.to_string()))?;
    row.text(Some(&record.prices.completion.to_string()))?;
    row.text(Some(&attempts))?;
    row.text(record.session_id.as_deref().map(storable).as_deref())?;
    row.text(record.trace.as_ref().map(Json::text))?;
    row.text(record.user.as_deref().map(storable).as_deref())?;
    row.integer(Some(millis(record.created_at)))?;
    row.integer(Some(micros(record.latency)))?;
    row.integer((record.share.index != 0).then(|| i64::from(record.share.index)))?;
    row.integer((record.share.of != 1).then(|| i64::from(record.share.of)))?;
    row.bytes(ids::guardrails_column(&record.guardrails))?;
    row.integer(Some(millis(record.charged_at)))?;
    row.text(findings.as_deref())?;
    row.bytes(client_address_column(record.client_address))?;
    row.bytes(record.preset.map(|preset| preset.id.uuid().as_bytes().to_vec()))?;
    row.integer(record.preset.map(|preset| preset.version.into()))?;
    row.text(record.outcomes.as_ref().map(Json::text))
}

/// The columns for [`StoredCosts::read`].
pub(crate) const COST_COLUMNS: &str =
    "input_tokens, output_tokens, prompt_price, completion_price, outcome, attempts, share_index, share_of";

/// Most cached prices.
const MAX_PRICES: usize = 1_024;

/// Computes the costs of stored records. Caches parsed prices, because most records have one of a few.
#[derive(Default)]
pub(crate) struct StoredCosts {
    prices: HashMap<String, Price>,
}

impl StoredCosts {
    /// Computes the cost of a row whose columns from `first` on are [`COST_COLUMNS`]; `None` on overflow. `id` is the
    /// column of the record's id, for errors.
    pub(crate) fn read(&mut self, row: &QueryResult, first: usize, id: &[u8]) -> Result<Option<Usd>, StoreError> {
        let unreadable = |column| corrupt(column, ids::display_id(id));
        let tokens = |place, name| u64::try_from(column::<i64>(row, first + place)?).map_err(|_| unreadable(name));
        let input_tokens = tokens(0, "usage_records.input_tokens")?;
        let output_tokens = tokens(1, "usage_records.output_tokens")?;
        let prices = TokenPrices {
            prompt: self.price(&column::<String>(row, first + 2)?, "usage_records.prompt_price", id)?,
            completion: self.price(&column::<String>(row, first + 3)?, "usage_records.completion_price", id)?,
        };
        let outcome: String = column(row, first + 4)?;
        UsageOutcome::from_name(&outcome).ok_or_else(|| unreadable("usage_records.outcome"))?;
        let text: String = column(row, first + 5)?;
        let stored: Vec<StoredAttempt<'_>> =
            serde_json::from_str(&text).map_err(|_| unreadable("usage_records.attempts"))?;
        let (index, of) = (column::<Option<i64>>(row, first + 6)?, column::<Option<i64>>(row, first + 7)?);
        let share = share(index.unwrap_or(0), of.unwrap_or(1)).ok_or_else(|| unreadable("usage_records.share_of"))?;
        if stored.is_empty() {
            return Ok(cost_of_tokens([(prices, input_tokens, output_tokens)], share));
        }
        let mut attempts = Vec::with_capacity(stored.len());
        for attempt in stored {
            let is_charged = attempt.outcome.as_deref().unwrap_or(&outcome) == UsageOutcome::Completed.as_str();
            let of_record = |tokens: u64| if is_charged { tokens } else { 0 };
            let mut price = |text: Option<Cow<'_, str>>, of_record| match text {
                Some(text) => self.price(&text, "usage_records.attempts", id),
                None => Ok(of_record),
            };
            let prices = TokenPrices {
                prompt: price(attempt.prompt_price, prices.prompt)?,
                completion: price(attempt.completion_price, prices.completion)?,
            };
            let input_tokens = attempt.input_tokens.unwrap_or_else(|| of_record(input_tokens));
            let output_tokens = attempt.output_tokens.unwrap_or_else(|| of_record(output_tokens));
            attempts.push((prices, input_tokens, output_tokens));
        }
        Ok(cost_of_tokens(attempts, share))
    }

    fn price(&mut self, text: &str, column: &str, id: &[u8]) -> Result<Price, StoreError> {
        if let Some(price) = self.prices.get(text) {
            return Ok(*price);
        }
        let price: Price = text.parse().map_err(|_| corrupt(column, ids::display_id(id)))?;
        if self.prices.len() >= MAX_PRICES {
            self.prices.clear();
        }
        self.prices.insert(text.to_owned(), price);
        Ok(price)
    }
}
