//! JSON values written as text, so that no digit passes through a float.

use domain::json::Json;
use domain::money::Usd;
use serde_json::value::RawValue;

/// Wraps JSON text. Invalid JSON becomes null.
pub(crate) fn raw(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Returns opaque JSON, byte for byte.
pub(crate) fn opaque(json: &Json) -> Box<RawValue> {
    raw(json.text().to_owned())
}

/// Returns an amount as a number with all its digits.
pub(crate) fn usd(amount: Usd) -> Box<RawValue> {
    raw(amount.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usd_keeps_every_digit() {
        for text in ["0", "5", "0.000000000001", "9223372.036854775807"] {
            assert_eq!(usd(text.parse().unwrap()).get(), text);
        }
    }

    #[test]
    fn opaque_keeps_bytes() {
        let text = r#"{"a" : 1.0, "a":1e400}"#;
        assert_eq!(opaque(&Json::parse(text).unwrap()).get(), text);
        assert_eq!(raw("{".to_owned()).get(), "null");
    }
}
