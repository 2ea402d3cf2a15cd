//! The trace that a request belongs to, in no wire format.

use sha2::{Digest, Sha256};

use crate::ids::DecisionId;
use crate::json::{Json, JsonKind};
use crate::text::hex;

/// The most members without a meaning that are kept.
const MAX_MEMBERS: usize = 64;

/// The members of a request's `trace`: those with a meaning, and the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceMetadata {
    trace_id: Option<String>,
    parent_span_id: Option<String>,
    /// The name of the outermost span, at most [`Self::MAX_NAME_BYTES`].
    pub trace_name: Option<String>,
    /// The name of the span below it, at most [`Self::MAX_NAME_BYTES`].
    pub span_name: Option<String>,
    /// The name of the request's own span, at most [`Self::MAX_NAME_BYTES`].
    pub generation_name: Option<String>,
    /// The members without a meaning, at most 64, each name once.
    pub others: Vec<(String, Json)>,
    /// True if further members were left out.
    pub is_truncated: bool,
}

impl TraceMetadata {
    /// Longest name, in bytes of UTF-8.
    pub const MAX_NAME_BYTES: usize = 256;

    /// Reads the members. Of members with the same name the last one counts; null is none.
    pub fn parse(trace: Option<&Json>) -> Self {
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
            Some(position) => self.others[position].1 = value,
            None if self.others.len() < MAX_MEMBERS => self.others.push((name, value)),
            None => self.is_truncated = true,
        }
    }

    /// Returns the trace's id, 32 hexadecimal digits; that of the request where the caller gave none.
    pub fn trace_id(&self, request: &DecisionId) -> String {
        trace_id(self.trace_id.as_deref().unwrap_or(request.as_str()))
    }

    /// Returns the id of the caller's span that the request belongs below, 16 hexadecimal digits.
    pub fn parent_span_id(&self) -> Option<String> {
        self.parent_span_id.as_deref().map(span_id)
    }
}

/// Returns a name: a string, or any other value as it is written.
fn text(value: &Json) -> Option<String> {
    if value.kind() == JsonKind::Null {
        return None;
    }
    let text = value.as_string().unwrap_or_else(|| value.text().to_owned());
    let end = text.floor_char_boundary(TraceMetadata::MAX_NAME_BYTES);
    (!text.is_empty()).then(|| text[..end].to_owned())
}

/// Returns the trace's id for a caller's name: the name in lower case where it is an id, else the first 16 bytes of its
/// SHA-256 in hexadecimal.
fn trace_id(name: &str) -> String {
    as_it_is(name, 32).unwrap_or_else(|| hashed(name, 16))
}

/// Returns the span's id for a name: the name in lower case where it is an id, else the first 8 bytes of its SHA-256 in
/// hexadecimal.
pub fn span_id(name: &str) -> String {
    as_it_is(name, 16).unwrap_or_else(|| hashed(name, 8))
}

/// Returns the name as an id, unless it is all zeros.
fn as_it_is(name: &str, digits: usize) -> Option<String> {
    let is_id = name.len() == digits
        && name.bytes().all(|byte| byte.is_ascii_hexdigit())
        && name.bytes().any(|byte| byte != b'0');
    is_id.then(|| name.to_ascii_lowercase())
}

fn hashed(name: &str, bytes: usize) -> String {
    let mut id = hex(&Sha256::digest(name.as_bytes()));
    id.truncate(2 * bytes);
    id
}

#[cfg(test)]
mod tests;
