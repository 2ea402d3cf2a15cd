//! What the caller says of its own trace.

use super::attributes::{Attributes, cut};
use super::ids;
use crate::ids::DecisionId;
use crate::json::{Json, JsonKind};

/// Most bytes of a name that a caller gives.
pub(super) const NAME: usize = 256;
/// Most members that are passed on.
const MEMBERS: usize = 64;
/// Most bytes of one of them.
const MEMBER: usize = 4 * 1024;
/// Most bytes of all of them.
const ALL: usize = 64 * 1024;

/// The members of `trace`: those that mean something here, and the others.
#[derive(Debug, Default)]
pub(super) struct TraceMetadata {
    trace_id: Option<String>,
    parent_span_id: Option<String>,
    pub(super) trace_name: Option<String>,
    pub(super) span_name: Option<String>,
    pub(super) generation_name: Option<String>,
    others: Vec<(String, Json)>,
    is_cut: bool,
}

impl TraceMetadata {
    /// Reads them. Of members with the same name the last one counts; null is none.
    pub(super) fn of(trace: Option<&Json>) -> Self {
        let mut read = Self::default();
        for (name, value) in trace.and_then(Json::members).unwrap_or_default() {
            match name.as_str() {
                "trace_id" => read.trace_id = text(&value),
                "parent_span_id" => read.parent_span_id = text(&value),
                "trace_name" => read.trace_name = text(&value),
                "span_name" => read.span_name = text(&value),
                "generation_name" => read.generation_name = text(&value),
                _ => read.keep(name, value),
            }
        }
        read
    }

    fn keep(&mut self, name: String, value: Json) {
        let known = self.others.iter().position(|(other, _)| *other == name);
        match known {
            Some(place) => self.others[place].1 = value,
            None if self.others.len() < MEMBERS => self.others.push((name, value)),
            None => self.is_cut = true,
        }
    }

    /// The trace's id; that of the request where the caller gave none.
    pub(super) fn trace_id(&self, request: &DecisionId) -> String {
        ids::trace_id(self.trace_id.as_deref().unwrap_or(request.as_str()))
    }

    /// The id of the caller's span that the request belongs below.
    pub(super) fn parent_span_id(&self) -> Option<String> {
        self.parent_span_id.as_deref().map(ids::span_id)
    }

    /// Adds the members without a meaning here.
    pub(super) fn add_to(&self, attributes: &mut Attributes) {
        let (mut size, mut is_cut) = (0, self.is_cut);
        for (name, value) in &self.others {
            let whole = value.as_string().unwrap_or_else(|| value.text().to_owned());
            let told = cut(&whole, MEMBER);
            size += name.len() + told.len();
            if size > ALL || name.len() > NAME {
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
}

/// As the narrowest kind that holds it exactly, or at least as exactly as its reader would.
fn number<'a>(attributes: &'a mut Attributes, key: &str, text: &str) -> &'a mut Attributes {
    if let Ok(whole) = text.parse::<i64>() {
        return attributes.int(key, whole);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => attributes.double(key, text),
        _ => attributes.text(key, text),
    }
}

/// A name: a string, or whatever else stands there as it is written.
fn text(value: &Json) -> Option<String> {
    if value.kind() == JsonKind::Null {
        return None;
    }
    let text = value.as_string().unwrap_or_else(|| value.text().to_owned());
    (!text.is_empty()).then(|| cut(&text, NAME).to_owned())
}
