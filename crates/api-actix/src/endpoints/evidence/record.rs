//! Evidence as JSON and as CSV.

use std::borrow::Cow;

use domain::evidence::{Evidence, Label};
use domain::text::escape;

use crate::endpoints::prelude::*;
use crate::http::export::{Column, CsvValue};

/// The evidence of one answer of a preset.
#[derive(Serialize, ToSchema)]
#[schema(as = Evidence)]
pub(super) struct EvidenceView<'a> {
    /// The id of the Decisions request.
    generation_id: &'a str,
    created_at: DateTime,
    workspace_id: Uuid,
    preset_id: Uuid,
    /// The id of the version that was asked.
    preset_version_id: String,
    #[schema(value_type = u64, minimum = 1)]
    preset_version: u32,
    question: &'a str,
    /// The resolved model.
    model: &'a str,
    provider: &'a str,
    wire: &'a str,
    /// `native` to decision models; of chat models `label_probabilities` or `stated`.
    method: &'static str,
    /// True or false, the option, or the number of the level.
    #[schema(value_type = Value)]
    decision: Box<RawValue>,
    /// The largest probability; null without a distribution.
    #[schema(required)]
    score: Option<Decimal>,
    /// The 8 largest probabilities as returned; of a yes-or-no question that of `true`.
    #[schema(required)]
    probabilities: Option<Object>,
    /// The current label.
    #[schema(required)]
    label: Option<LabelView<'a>>,
    /// The cost of the whole request in USD; null if its record was removed.
    #[schema(required)]
    total_cost: Option<Decimal>,
    /// The duration of the whole request in milliseconds; null if its record was removed.
    #[schema(required, value_type = Option<u64>)]
    latency: Option<u128>,
}

/// The right decision of an answer.
#[derive(Serialize, ToSchema)]
#[schema(as = Label)]
pub(super) struct LabelView<'a> {
    #[schema(value_type = Value)]
    value: Box<RawValue>,
    /// `human`, `reference` or `system`.
    source: &'static str,
    /// The number of the version: each change adds one.
    #[schema(value_type = u64, minimum = 1)]
    version: u32,
    /// The author: `key:` and the id of a key, or `user:` and an operating system user.
    created_by: &'a str,
    created_at: DateTime,
}

impl<'a> EvidenceView<'a> {
    pub(super) fn new(row: &'a Evidence) -> Self {
        let answer = &row.answer;
        Self {
            generation_id: row.id.as_str(),
            created_at: time(row.created_at),
            workspace_id: row.workspace_id.to_string(),
            preset_id: row.preset.id.to_string(),
            preset_version_id: version_id(row),
            preset_version: row.preset.version,
            question: &answer.question,
            model: answer.model.as_str(),
            provider: &answer.provider,
            wire: &answer.wire,
            method: answer.method.as_str(),
            decision: opaque(&answer.decision),
            score: score(row).map(raw),
            probabilities: answer.probabilities.as_ref().map(opaque),
            label: row.label.as_ref().map(LabelView::new),
            total_cost: row.cost.map(usd),
            latency: row.latency.map(|latency| latency.as_millis()),
        }
    }
}

impl<'a> LabelView<'a> {
    pub(super) fn new(label: &'a Label) -> Self {
        Self {
            value: opaque(&label.value),
            source: label.source.as_str(),
            version: label.version,
            created_by: &label.created_by,
            created_at: time(label.created_at),
        }
    }
}

fn version_id(row: &Evidence) -> String {
    format!("{}.{}", row.preset.id, row.preset.version)
}

fn score(row: &Evidence) -> Option<String> {
    row.answer.score().map(|score| score.get().to_string())
}

/// The columns of CSV. Decisions and labels that are strings are written without quotes, or as JSON if a character is
/// escaped: so they can be read as they were.
pub(super) const COLUMNS: &[Column<Evidence>] = &[
    ("generation_id", |row| CsvValue::plain(row.id.as_str())),
    ("created_at", |row| CsvValue::Plain(time(row.created_at))),
    ("preset_version_id", |row| CsvValue::Plain(version_id(row))),
    ("question", |row| CsvValue::of(Some(&row.answer.question))),
    ("model", |row| CsvValue::of(Some(row.answer.model.as_str()))),
    ("provider", |row| CsvValue::of(Some(&row.answer.provider))),
    ("wire", |row| CsvValue::plain(&row.answer.wire)),
    ("method", |row| CsvValue::plain(row.answer.method.as_str())),
    ("decision", |row| value(&row.answer.decision)),
    ("score", |row| CsvValue::optional(score(row))),
    ("probabilities", |row| CsvValue::of(row.answer.probabilities.as_ref().map(Json::text))),
    ("label", |row| row.label.as_ref().map_or(CsvValue::Empty, |label| value(&label.value))),
    ("label_source", |row| CsvValue::optional(row.label.as_ref().map(|label| label.source.as_str()))),
    ("label_version", |row| CsvValue::optional(row.label.as_ref().map(|label| label.version))),
    ("labelled_at", |row| CsvValue::optional(row.label.as_ref().map(|label| time(label.created_at)))),
    ("cost_usd", |row| CsvValue::optional(row.cost)),
    ("latency_ms", |row| CsvValue::optional(row.latency.map(|latency| latency.as_millis()))),
];

fn value(json: &Json) -> CsvValue {
    let text = json.as_string().filter(|text| matches!(escape(text), Cow::Borrowed(_)));
    CsvValue::Text(text.unwrap_or_else(|| json.text().to_owned()))
}
