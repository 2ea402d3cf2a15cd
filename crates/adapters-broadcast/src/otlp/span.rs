//! One span.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::attributes::{Attributes, json_string};

/// The role of a span between services.
#[derive(Debug, Clone, Copy)]
pub(super) enum SpanKind {
    Internal,
    Client,
}

/// A time range.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeRange {
    began: i128,
    ended: i128,
}

impl TimeRange {
    /// Returns the range that begins `offset` after a timestamp and lasts `took`.
    pub(super) fn after(moment: DateTime<Utc>, offset: Duration, took: Duration) -> Self {
        let nanos = |duration: Duration| i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX / 4);
        let epoch = i128::from(moment.timestamp_nanos_opt().unwrap_or_default());
        let began = epoch + nanos(offset);
        Self { began, ended: began + nanos(took) }
    }
}

/// A span to encode.
#[derive(Debug)]
pub(super) struct Span<'a> {
    pub(super) trace_id: &'a str,
    pub(super) id: &'a str,
    pub(super) parent: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) kind: SpanKind,
    pub(super) time_range: TimeRange,
    pub(super) attributes: Attributes,
    /// The attributes of each event. All events have one name and happen at the span's start.
    pub(super) events: Vec<(&'static str, Attributes)>,
    /// The error of a failed span.
    pub(super) error: Option<String>,
}

impl Span<'_> {
    /// Returns the JSON.
    pub(super) fn json(&self) -> String {
        let parent = self.parent.map(|id| format!(",\"parentSpanId\":\"{id}\"")).unwrap_or_default();
        let kind = match self.kind {
            SpanKind::Internal => 1,
            SpanKind::Client => 3,
        };
        let TimeRange { began, ended } = self.time_range;
        let events = match self.events.as_slice() {
            [] => String::new(),
            events => {
                format!(",\"events\":[{}]", events.iter().map(|one| event(began, one)).collect::<Vec<_>>().join(","))
            }
        };
        let status = match &self.error {
            Some(message) => format!("{{\"code\":2,\"message\":{}}}", json_string(message)),
            None => "{}".to_owned(),
        };
        format!(
            "{{\"traceId\":\"{}\",\"spanId\":\"{}\"{parent},\"name\":{},\"kind\":{kind},\"startTimeUnixNano\":\"{began}\",\
             \"endTimeUnixNano\":\"{ended}\",\"attributes\":{}{events},\"status\":{status}}}",
            self.trace_id,
            self.id,
            json_string(self.name),
            self.attributes.json(),
        )
    }
}

fn event(at: i128, (name, attributes): &(&str, Attributes)) -> String {
    let attributes = attributes.json();
    format!("{{\"timeUnixNano\":\"{at}\",\"name\":\"{name}\",\"attributes\":{attributes}}}")
}
