//! Conversion of a usage record to spans, and the JSON body of traces.

use std::time::Duration;

use domain::decision::TraceContent;
use domain::json::Json;
use domain::observability::{TraceMetadata, span_id};
use domain::usage::{AttemptOutcome, AttemptRecord, Finding, RequestLabels, UsageOutcome, UsageRecord};

use super::attributes::{Attributes, add_content, add_metadata, truncate};
use super::span::{Span, SpanKind, TimeRange};

/// The name of the top-level member.
const RESOURCE_SPANS: &str = "resourceSpans";
/// The operation name of all spans.
const OPERATION: &str = "decisions";
/// Most attempts and most findings with their own spans and events.
const MAX_DETAILS: usize = 64;
/// Most bytes of a name.
const MAX_NAME_BYTES: usize = TraceMetadata::MAX_NAME_BYTES;
/// Most bytes of a JSON path.
const MAX_PATH_BYTES: usize = 1024;

/// Joins encoded traces to one body; without traces the body has no span. Values that are no OTLP are omitted.
pub(crate) fn merged<'a>(bodies: impl IntoIterator<Item = &'a Json>) -> Json {
    let resource_spans = |body: &Json| {
        let members = body.members()?;
        members.into_iter().find(|(name, _)| name == RESOURCE_SPANS)?.1.elements()
    };
    let elements: Vec<Json> = bodies.into_iter().filter_map(resource_spans).flatten().collect();
    let elements = Json::array(elements.iter().map(Json::text));
    Json::object([(RESOURCE_SPANS, elements.text())])
}

/// Builds the trace of a request: the spans that the caller named, below them the operation span, and below that one
/// span per attempt. Without `exchange` it contains neither content nor text of the caller.
pub(super) fn trace(record: &UsageRecord, exchange: Option<&TraceContent<'_>>) -> Json {
    let labels = exchange.map(|exchange| exchange.labels(record)).unwrap_or_default();
    let metadata = TraceMetadata::parse(labels.trace.as_ref());
    let trace_id = metadata.trace_id(&record.id);
    let own = |role: &str| span_id(&format!("{} {role}", record.id));
    let whole = TimeRange::after(record.created_at, Duration::ZERO, record.latency);
    let error = failure(record);
    let mut spans = Vec::new();
    let mut parent = metadata.parent_span_id();
    let named = [("trace", &metadata.trace_name), ("span", &metadata.span_name)];
    for (role, name) in named.into_iter().filter_map(|(role, name)| Some((role, name.as_deref()?))) {
        let id = own(role);
        let mut attributes = Attributes::default();
        attributes
            .optional_text("session.id", labels.session_id.as_deref())
            .optional_text("user.id", labels.user.as_deref());
        let span = Span {
            trace_id: &trace_id,
            id: &id,
            parent: parent.as_deref(),
            name,
            kind: SpanKind::Internal,
            time_range: whole,
            attributes,
            events: Vec::new(),
            error: error.clone(),
        };
        spans.push(span.json());
        parent = Some(id);
    }
    let operation = own("operation");
    let default_name = format!("{OPERATION} {}", truncate(&record.requested_model, MAX_NAME_BYTES));
    let span = Span {
        trace_id: &trace_id,
        id: &operation,
        parent: parent.as_deref(),
        name: metadata.generation_name.as_deref().unwrap_or(&default_name),
        kind: SpanKind::Client,
        time_range: whole,
        attributes: attributes(record, (&labels, &metadata), exchange),
        events: record.findings.iter().take(MAX_DETAILS).map(finding).collect(),
        error,
    };
    spans.push(span.json());
    for (number, attempt) in record.attempts.iter().take(MAX_DETAILS).enumerate() {
        let id = own(&format!("attempt {number}"));
        spans.push(attempt_span(record, attempt, &trace_id, &id, &operation).json());
    }
    wrapped(&spans.join(","))
}

/// Wraps spans, separated by commas, into the body of a request.
pub(super) fn wrapped(spans: &str) -> Json {
    let version = env!("CARGO_PKG_VERSION");
    let mut resource = Attributes::default();
    resource.text("service.name", "tollgate").text("service.version", version);
    let element = format!(
        "[{{\"resource\":{{\"attributes\":{}}},\"scopeSpans\":[{{\"scope\":{{\"name\":\"tollgate\",\"version\":\"{version}\"}},\
         \"spans\":[{spans}]}}]}}]",
        resource.json()
    );
    Json::object([(RESOURCE_SPANS, element.as_str())])
}

fn attributes(
    record: &UsageRecord,
    (labels, caller): (&RequestLabels, &TraceMetadata),
    exchange: Option<&TraceContent<'_>>,
) -> Attributes {
    let mut attributes = Attributes::default();
    let cost = record.cost.to_string();
    attributes
        .text("gen_ai.operation.name", OPERATION)
        .text("gen_ai.provider.name", &record.provider)
        .text("gen_ai.system", &record.provider)
        .text("gen_ai.request.model", truncate(&record.requested_model, MAX_NAME_BYTES))
        .text("gen_ai.response.model", record.model.as_str())
        .text("gen_ai.response.id", record.id.as_str())
        .int("gen_ai.usage.input_tokens", record.input_tokens)
        .int("gen_ai.usage.output_tokens", record.output_tokens)
        .double("gen_ai.usage.cost", &cost)
        .text("tollgate.cost_usd", &cost)
        .text("tollgate.usage_source", record.usage_source.as_str())
        .text("tollgate.outcome", record.outcome.as_str())
        .text("tollgate.request_id", record.request_id.as_str())
        .text("tollgate.workspace_id", &record.workspace_id.to_string())
        .text("tollgate.api_key_id", &record.api_key.to_string())
        .int("tollgate.attempts", i128::try_from(record.attempts.len()).unwrap_or(i128::MAX))
        .optional_text("session.id", labels.session_id.as_deref())
        .optional_text("gen_ai.conversation.id", labels.session_id.as_deref())
        .optional_text("user.id", labels.user.as_deref());
    if let Some(preset) = record.preset {
        attributes.text("tollgate.preset_id", &preset.id.to_string()).int("tollgate.preset_version", preset.version);
    }
    if record.outcome != UsageOutcome::Completed {
        attributes.text("error.type", last_outcome(record));
    }
    add_metadata(&mut attributes, caller);
    if let Some(exchange) = exchange {
        add_content(&mut attributes, exchange);
    }
    attributes
}

/// Returns the reason for a missing answer.
fn failure(record: &UsageRecord) -> Option<String> {
    match record.outcome {
        UsageOutcome::Completed => None,
        UsageOutcome::Failed => Some(format!("every attempt failed; the last one: {}", last_outcome(record))),
        UsageOutcome::Cancelled => Some("the client disconnected before the end".to_owned()),
        UsageOutcome::Abandoned => Some("the process died before the end".to_owned()),
    }
}

fn last_outcome(record: &UsageRecord) -> &str {
    match record.outcome {
        UsageOutcome::Failed => {
            record.attempts.last().map_or(record.outcome.as_str(), |attempt| attempt.outcome.as_str())
        }
        other => other.as_str(),
    }
}

fn finding(finding: &Finding) -> (&'static str, Attributes) {
    let mut attributes = Attributes::default();
    attributes
        .text("tollgate.guardrail.id", &finding.guardrail_id.to_string())
        .text("tollgate.guardrail.label", truncate(&finding.label, MAX_NAME_BYTES))
        .text("tollgate.guardrail.action", finding.action.as_str())
        .text("tollgate.guardrail.path", truncate(&finding.path, MAX_PATH_BYTES))
        .int("tollgate.guardrail.count", finding.count);
    ("tollgate.guardrail.finding", attributes)
}

/// Builds the span of an attempt. Its tokens have separate names: the names of the conventions are on the operation
/// span, so that a sum over all spans counts them once.
fn attempt_span<'a>(
    record: &UsageRecord,
    attempt: &'a AttemptRecord,
    trace_id: &'a str,
    id: &'a str,
    parent: &'a str,
) -> Span<'a> {
    let mut attributes = Attributes::default();
    attributes
        .text("gen_ai.provider.name", &attempt.provider)
        .text("gen_ai.request.model", &attempt.upstream_model)
        .text("tollgate.attempt.model", attempt.model.as_str())
        .text("tollgate.attempt.outcome", attempt.outcome.as_str())
        .int("tollgate.attempt.part", attempt.part)
        .int("tollgate.attempt.input_tokens", attempt.input_tokens)
        .int("tollgate.attempt.output_tokens", attempt.output_tokens)
        .text("tollgate.attempt.usage_source", attempt.usage_source.as_str());
    if let Some(status) = attempt.http_status() {
        attributes.int("http.response.status_code", status);
    }
    let failed = attempt.outcome != AttemptOutcome::Completed;
    if failed {
        attributes.text("error.type", attempt.outcome.as_str());
    }
    Span {
        trace_id,
        id,
        parent: Some(parent),
        name: &attempt.provider,
        kind: SpanKind::Client,
        time_range: TimeRange::after(record.created_at, attempt.began, attempt.latency),
        attributes,
        events: Vec::new(),
        error: failed.then(|| attempt.outcome.to_string()),
    }
}
