//! The forms of lists, CSV lines, amounts and times.

use chrono::{DateTime, SecondsFormat, Utc};
use domain::money::{Price, Usd};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::output::escape;

/// Characters that begin a formula in spreadsheets, in ASCII and full width.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Some spreadsheets ignore leading spaces.
fn is_formula(text: &str) -> bool {
    text.starts_with(['\t', '\r']) || text.trim_start().starts_with(FORMULA)
}

/// A value of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CsvValue {
    /// A number or a constant, written unescaped.
    Plain(String),
    /// Text from clients; control characters are escaped.
    Text(String),
    /// A missing value.
    Empty,
}

impl CsvValue {
    /// Creates a value from an optional text.
    pub fn of(text: Option<&str>) -> Self {
        text.map_or(Self::Empty, |text| Self::Text(text.to_owned()))
    }

    fn escaped(&self) -> String {
        match self {
            // Prevents spreadsheets from executing a formula in the text.
            Self::Text(text) if is_formula(text) => quoted(&format!("'{}", escape(text))),
            Self::Text(text) => quoted(&escape(text)),
            Self::Plain(text) => quoted(text),
            Self::Empty => String::new(),
        }
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Returns a record with its line end.
pub fn csv_line(cells: &[CsvValue]) -> String {
    cells.iter().map(CsvValue::escaped).collect::<Vec<_>>().join(",") + "\r\n"
}

/// `{"data":[…]}`
#[derive(Debug, Serialize)]
pub struct List<T> {
    /// The elements.
    pub data: Vec<T>,
}

/// The result of a deletion: `{"id":…,"deleted":true}`.
#[derive(Debug, Serialize)]
pub struct Deleted<'a> {
    /// The id of the deleted record.
    pub id: &'a str,
    /// Always true.
    pub deleted: bool,
}

/// An amount in USD.
#[derive(Debug, Clone, Copy)]
pub struct UsdNumber(pub Usd);

impl Serialize for UsdNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// Returns the price of a token as the cell of a table, in USD per million tokens.
pub fn per_million_tokens(price: Price) -> String {
    if price.is_variable() { "variable".to_owned() } else { price.to_usd_per_million() }
}

/// Formats a timestamp as RFC 3339 in UTC, to the millisecond.
pub fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_line_quotes_special_characters() {
        let text = |text: &str| CsvValue::Text(text.to_owned());
        let line = csv_line(&[
            text("a"),
            text("b,c"),
            text("d\"e"),
            text("f\r\ng"),
            text("\u{1b}[2J\u{9b}\u{202e}"),
            text(""),
            CsvValue::Empty,
            text("é "),
        ]);
        assert_eq!(line, "a,\"b,c\",\"d\"\"e\",f\\u000d\\u000ag,\\u001b[2J\\u009b\\u202e,,,é \r\n");
    }

    #[test]
    fn csv_line_neutralises_formulas() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "=HYPERLINK(\"http://x\",\"y\")", " =1", "\u{a0}\u{ff1d}1"]
        {
            let line = csv_line(&[CsvValue::Text(text.to_owned())]);
            assert!(line.trim_start_matches('"').starts_with('\''), "{line:?}");
        }
        assert_eq!(csv_line(&[CsvValue::Text("\r=1".to_owned())]), "'\\u000d=1\r\n");
        assert_eq!(csv_line(&[CsvValue::Plain("-0.5".to_owned())]), "-0.5\r\n", "a number stays one");
    }

    #[test]
    fn usd_number_keeps_every_digit() {
        for text in ["0", "5", "0.000000000001", "9223372.036854775807", "-2.5"] {
            let usd: Usd = text.parse().unwrap();
            assert_eq!(serde_json::to_string(&UsdNumber(usd)).unwrap(), text);
        }
    }

    #[test]
    fn prices_in_tables_are_per_million_tokens() {
        let cell = |text: &str| per_million_tokens(text.parse().unwrap());
        assert_eq!(["0", "0.000000042", "0.00001", "-1"].map(cell), ["0", "0.042", "10", "variable"]);
    }
}
