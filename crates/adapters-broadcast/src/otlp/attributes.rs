//! Attributes, and the JSON of spans; the questions and answers of a request, for destinations that may receive content; the
//! caller's own trace members.

use domain::decision::TraceContent;
use domain::json::{Json, JsonKind};
use domain::observability::TraceMetadata;

/// Attributes in insertion order.
#[derive(Debug, Default)]
pub(super) struct Attributes(String);

impl Attributes {
    /// Adds a string.
    pub(super) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.raw(key, "stringValue", &json_string(value))
    }

    /// Adds a string if it is given.
    pub(super) fn optional_text(&mut self, key: &str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(key, value),
            None => self,
        }
    }

    /// Adds a whole number.
    pub(super) fn int(&mut self, key: &str, value: impl Into<i128>) -> &mut Self {
        self.raw(key, "intValue", &format!("\"{}\"", value.into()))
    }

    /// Adds any other number by its JSON text.
    pub(super) fn double(&mut self, key: &str, text: &str) -> &mut Self {
        self.raw(key, "doubleValue", text)
    }

    /// Adds a boolean.
    pub(super) fn flag(&mut self, key: &str, value: bool) -> &mut Self {
        self.raw(key, "boolValue", if value { "true" } else { "false" })
    }

    /// Returns the JSON array.
    pub(super) fn json(&self) -> String {
        format!("[{}]", self.0)
    }

    fn raw(&mut self, key: &str, kind: &str, value: &str) -> &mut Self {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        for part in ["{\"key\":", &json_string(key), ",\"value\":{\"", kind, "\":", value, "}}"] {
            self.0.push_str(part);
        }
        self
    }
}

/// Returns a JSON string.
pub(super) fn json_string(text: &str) -> String {
    // A string always has a JSON form; the fallback is unreachable.
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}

/// Truncates a text to a number of bytes, at a character boundary.
pub(super) fn truncate(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Most bytes of the input, and of the output.
const MAX_CONTENT_BYTES: usize = 256 * 1024;

pub(super) fn add_content(attributes: &mut Attributes, exchange: &TraceContent<'_>) {
    let questions = exchange.provider_input.questions.json.text();
    let state = exchange.provider_input.state.as_ref().map_or("null", Json::text);
    let (asked, is_cut) = joined(&["{\"state\":", state, ",\"questions\":", questions, "}"]);
    attributes.text("gen_ai.input.messages", &message("user", &asked, None));
    if is_cut {
        attributes.flag("tollgate.input.truncated", true);
    }
    if let Some(answers) = exchange.answers {
        let (answered, is_cut) = joined(&[answers.text()]);
        attributes.text("gen_ai.output.messages", &message("assistant", &answered, Some("stop")));
        if is_cut {
            attributes.flag("tollgate.output.truncated", true);
        }
    }
    if let Some(outcomes) = exchange.outcomes {
        let (outcomes, is_cut) = joined(&[outcomes.text()]);
        attributes.text("tollgate.outcomes", &outcomes);
        if is_cut {
            attributes.flag("tollgate.outcomes.truncated", true);
        }
    }
}

/// Concatenates texts up to the limit; also returns whether they were truncated.
fn joined(texts: &[&str]) -> (String, bool) {
    let mut whole = String::new();
    for text in texts {
        let left = MAX_CONTENT_BYTES - whole.len();
        if text.len() > left {
            whole.push_str(truncate(text, left));
            return (whole, true);
        }
        whole.push_str(text);
    }
    (whole, false)
}

/// Returns a list of one message in the format of the conventions. It stays valid JSON if the content is truncated.
fn message(role: &str, content: &str, finish_reason: Option<&str>) -> String {
    let reason = finish_reason.map(|reason| format!(",\"finish_reason\":\"{reason}\"")).unwrap_or_default();
    format!("[{{\"role\":\"{role}\",\"parts\":[{{\"type\":\"text\",\"content\":{}}}]{reason}}}]", json_string(content))
}

/// Most bytes of one member.
const MAX_MEMBER_BYTES: usize = 4 * 1024;
/// Most bytes of all members.
const MAX_TOTAL_BYTES: usize = 64 * 1024;

/// Adds the members that have no predefined meaning.
pub(super) fn add_metadata(attributes: &mut Attributes, metadata: &TraceMetadata) {
    let (mut size, mut is_cut) = (0, metadata.is_truncated);
    for (name, value) in &metadata.others {
        let whole = value.as_string().unwrap_or_else(|| value.text().to_owned());
        let told = truncate(&whole, MAX_MEMBER_BYTES);
        size += name.len() + told.len();
        if size > MAX_TOTAL_BYTES || name.len() > TraceMetadata::MAX_NAME_BYTES {
            is_cut = true;
            continue;
        }
        is_cut |= told.len() < whole.len();
        let key = format!("trace.metadata.{name}");
        match value.kind() {
            JsonKind::Null => continue,
            JsonKind::Bool => attributes.flag(&key, told == "true"),
            JsonKind::Number => number(attributes, &key, told),
            JsonKind::String | JsonKind::Array | JsonKind::Object => attributes.text(&key, told),
        };
    }
    if is_cut {
        attributes.flag("tollgate.trace.truncated", true);
    }
}

/// Adds a number as the narrowest type that holds it without additional loss.
fn number<'a>(attributes: &'a mut Attributes, key: &str, text: &str) -> &'a mut Attributes {
    if let Ok(whole) = text.parse::<i64>() {
        return attributes.int(key, whole);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => attributes.double(key, text),
        _ => attributes.text(key, text),
    }
}
