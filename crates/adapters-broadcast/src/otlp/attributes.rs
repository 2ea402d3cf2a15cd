//! Attributes, and the JSON of spans.

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
