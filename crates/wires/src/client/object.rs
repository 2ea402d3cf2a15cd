//! A writer for JSON objects that keeps member order and exact numbers.

use std::fmt::{Display, Write};

use domain::json::push_string;
use serde_json::Value;

/// A JSON object under construction.
#[derive(Debug)]
pub struct ObjectWriter(String);

impl Default for ObjectWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl ObjectWriter {
    /// Begins an object.
    pub fn new() -> Self {
        Self(String::from("{"))
    }

    /// Creates an object with capacity for `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        text.push('{');
        Self(text)
    }

    /// Creates an object with that `type` member.
    pub fn with_type(name: &str) -> Self {
        Self::new().text("type", name)
    }

    /// Adds a member whose value is already JSON.
    #[must_use]
    pub fn json(mut self, name: &str, value: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        push_string(&mut self.0, name);
        self.0.push(':');
        self.0.push_str(value);
        self
    }

    /// Adds a string member.
    #[must_use]
    pub fn text(mut self, name: &str, value: &str) -> Self {
        self = self.json(name, "");
        push_string(&mut self.0, value);
        self
    }

    /// Adds a whole number.
    #[must_use]
    pub fn count(self, name: &str, value: u64) -> Self {
        self.shown(name, value)
    }

    /// Adds a member whose displayed value is JSON.
    #[must_use]
    pub fn shown(mut self, name: &str, value: impl Display) -> Self {
        self = self.json(name, "");
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{value}");
        self
    }

    /// Adds a number, or null if it is not finite.
    #[must_use]
    pub fn number(self, name: &str, value: f64) -> Self {
        self.json(name, &number(value))
    }

    /// Adds a member if it has a value.
    #[must_use]
    pub fn maybe(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.json(name, value),
            None => self,
        }
    }

    /// Adds the service metadata under its name, if the client asked for it.
    #[must_use]
    pub fn service_metadata(self, member: Option<(&'static str, &Value)>) -> Self {
        match member {
            Some((name, value)) => self.shown(name, value),
            None => self,
        }
    }

    /// Returns the text of the object.
    pub fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Returns a string as JSON.
pub(crate) fn string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    push_string(&mut json, text);
    json
}

/// Returns an array of JSON values.
pub(crate) fn array(elements: impl IntoIterator<Item = String>) -> String {
    let elements: Vec<String> = elements.into_iter().collect();
    format!("[{}]", elements.join(","))
}

/// Returns the shortest text that parses to the same number.
pub(crate) fn number(value: f64) -> String {
    serde_json::Number::from_f64(value).map_or_else(|| "null".to_owned(), |number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_keeps_member_order_and_escapes_names() {
        let object =
            ObjectWriter::with_type("x\u{1}").json("b\"", "[1]").count("a", 7).number("n", 0.1).maybe("no", None).end();
        assert_eq!(object, r#"{"type":"x\u0001","b\"":[1],"a":7,"n":0.1}"#);
        assert_eq!(array(["1".to_owned(), object.clone()]), format!("[1,{object}]"));
        assert_eq!((ObjectWriter::new().end(), array([])), ("{}".to_owned(), "[]".to_owned()));
    }
}
