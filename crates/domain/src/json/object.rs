//! A writer for JSON objects that keeps the order of members and exact numbers.

use std::fmt::{Display, Write};

use super::{Json, push_string};

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

    /// Begins an object with capacity for `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        text.push('{');
        Self(text)
    }

    /// Begins an object with that `type` member.
    pub fn with_type(name: &str) -> Self {
        Self::new().text("type", name)
    }

    /// Adds a member whose value is already JSON.
    #[must_use]
    pub fn json(mut self, name: &str, value: &str) -> Self {
        // No value ends with a brace that opens.
        if !self.0.ends_with('{') {
            self.0.push(',');
        }
        push_string(&mut self.0, name);
        self.0.push(':');
        self.0.push_str(value);
        self
    }

    /// Adds an object with these members.
    #[must_use]
    pub fn object(mut self, name: &str, members: impl FnOnce(Self) -> Self) -> Self {
        self = members(self.json(name, "{"));
        self.0.push('}');
        self
    }

    /// Adds a string.
    #[must_use]
    pub fn text(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self = self.json(name, "");
        push_string(&mut self.0, value.as_ref());
        self
    }

    /// Adds a string, or null.
    #[must_use]
    pub fn text_or_null(self, name: &str, value: Option<impl AsRef<str>>) -> Self {
        match value {
            Some(value) => self.text(name, value),
            None => self.json(name, "null"),
        }
    }

    /// Adds an array of strings.
    #[must_use]
    pub fn texts(mut self, name: &str, values: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        self = self.json(name, "[");
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            push_string(&mut self.0, value.as_ref());
        }
        self.0.push(']');
        self
    }

    /// Adds a member whose displayed value is JSON, such as a number or a boolean.
    #[must_use]
    pub fn shown(mut self, name: &str, value: impl Display) -> Self {
        self = self.json(name, "");
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{value}");
        self
    }

    /// Adds a member whose displayed value is JSON, or null.
    #[must_use]
    pub fn shown_or_null(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.shown(name, value),
            None => self.json(name, "null"),
        }
    }

    /// Adds a number, or null if it is not finite.
    #[must_use]
    pub fn number(self, name: &str, value: f64) -> Self {
        self.shown_or_null(name, serde_json::Number::from_f64(value))
    }

    /// Adds a member whose displayed value is JSON, if there is one.
    #[must_use]
    pub fn member(self, member: Option<(&str, impl Display)>) -> Self {
        match member {
            Some((name, value)) => self.shown(name, value),
            None => self,
        }
    }

    /// Adds a member if it has a value, which is already JSON.
    #[must_use]
    pub fn maybe(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.json(name, value),
            None => self,
        }
    }

    /// Returns the text of the object.
    pub fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }

    /// Returns the object.
    pub fn finish(self) -> Json {
        Json::from_checked(&self.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_keeps_member_order_and_escapes_names() {
        let object = ObjectWriter::with_type("x\u{1}").json("b\"", "[1]").shown("a", 7).maybe("no", None);
        let object = object.text_or_null("n", None::<&str>).shown_or_null("s", Some(0.1)).texts("t", ["a\"", "b"]);
        let empty = ObjectWriter::new().texts("e", [""; 0]).end();
        let nested =
            ObjectWriter::new().object("{", |inner| inner.text("a", "{").object("b", |none| none)).shown("c", 1);
        assert_eq!(nested.end(), r#"{"{":{"a":"{","b":{}},"c":1}"#);
        assert_eq!(object.end(), r#"{"type":"x\u0001","b\"":[1],"a":7,"n":null,"s":0.1,"t":["a\"","b"]}"#);
        assert_eq!((ObjectWriter::new().end().as_str(), empty.as_str()), ("{}", r#"{"e":[]}"#));
    }
}
