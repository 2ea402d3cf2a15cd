//! CSV (RFC 4180) of records.

use domain::json::{Json, JsonKind};

use super::records::{Column, pointer};
use super::text::escape;

/// Characters that begin a formula in spreadsheets, in ASCII and full width.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Returns the line of column names.
pub fn csv_head(columns: &[Column]) -> String {
    columns.iter().map(|(head, _)| *head).collect::<Vec<_>>().join(",") + "\r\n"
}

/// Returns the line of a record.
pub fn csv_line(record: &Json, columns: &[Column]) -> String {
    columns.iter().map(|(_, at)| value(pointer(record, at))).collect::<Vec<_>>().join(",") + "\r\n"
}

/// Returns a value: text escaped, a number as it is, null as nothing.
fn value(value: Option<Json>) -> String {
    let Some(value) = value.filter(|value| value.kind() != JsonKind::Null) else { return String::new() };
    match value.as_string() {
        // Prevents spreadsheets from executing a formula in the text.
        Some(text) if is_formula(&text) => quoted(&format!("'{}", escape(&text))),
        Some(text) => quoted(&escape(&text)),
        None => quoted(value.text()),
    }
}

/// Some spreadsheets ignore leading spaces.
fn is_formula(text: &str) -> bool {
    text.starts_with(['\t', '\r']) || text.trim_start().starts_with(FORMULA)
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> String {
        let record = Json::object([("a", Json::string(text).text())]);
        csv_line(&record, &[("A", "/a")])
    }

    #[test]
    fn line_quotes_special_characters() {
        for (text, expected) in [
            ("a", "a"),
            ("b,c", "\"b,c\""),
            ("d\"e", "\"d\"\"e\""),
            ("f\r\ng", "f\\u000d\\u000ag"),
            ("\u{1b}[2J\u{9b}\u{202e}", "\\u001b[2J\\u009b\\u202e"),
            ("", ""),
            ("é ", "é "),
        ] {
            assert_eq!(line(text), format!("{expected}\r\n"));
        }
        let record = Json::parse(r#"{"n":-0.50,"none":null}"#).unwrap();
        let columns: &[Column] = &[("N", "/n"), ("NONE", "/none"), ("MISSING", "/m")];
        assert_eq!(csv_head(columns), "N,NONE,MISSING\r\n");
        assert_eq!(csv_line(&record, columns), "-0.50,,\r\n", "a number stays one");
    }

    #[test]
    fn line_neutralises_formulas() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "=HYPERLINK(\"http://x\",\"y\")", " =1", "\u{a0}\u{ff1d}1"]
        {
            let line = line(text);
            assert!(line.trim_start_matches('"').starts_with('\''), "{line:?}");
        }
        assert_eq!(line("\r=1"), "'\\u000d=1\r\n");
    }
}
