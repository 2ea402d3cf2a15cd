//! CSV lines (RFC 4180).

use domain::text::{escape, quote_formula};

/// A value of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CsvValue {
    /// A number or a constant, written unescaped.
    Plain(String),
    /// Text from clients; control characters are escaped.
    Text(String),
    /// A missing value.
    Empty,
}

impl CsvValue {
    /// Creates a value from an optional text.
    pub(crate) fn of(text: Option<&str>) -> Self {
        text.map_or(Self::Empty, |text| Self::Text(text.to_owned()))
    }

    /// Creates a value that needs no escape.
    pub(crate) fn plain(text: &str) -> Self {
        Self::Plain(text.to_owned())
    }

    /// Creates a value that needs no escape, if there is one.
    pub(crate) fn optional(value: Option<impl ToString>) -> Self {
        value.map_or(Self::Empty, |value| Self::Plain(value.to_string()))
    }

    fn escaped(&self) -> String {
        match self {
            Self::Text(text) => quoted(&escape(&quote_formula(text))),
            Self::Plain(text) => quoted(text),
            Self::Empty => String::new(),
        }
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Returns a record with its line end.
pub(crate) fn csv_line(cells: &[CsvValue]) -> String {
    cells.iter().map(CsvValue::escaped).collect::<Vec<_>>().join(",") + "\r\n"
}

/// A column of a record: its name and its value.
pub(crate) type Column<T> = (&'static str, fn(&T) -> CsvValue);

/// Returns the line of column names.
pub(crate) fn csv_head<T>(columns: &[Column<T>]) -> String {
    csv_line(&columns.iter().map(|(name, _)| CsvValue::plain(name)).collect::<Vec<_>>())
}

/// Returns the line of a record.
pub(crate) fn csv_record<T>(columns: &[Column<T>], record: &T) -> String {
    csv_line(&columns.iter().map(|(_, value)| value(record)).collect::<Vec<_>>())
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
}
