//! Comma-separated values as RFC 4180 has them.

use crate::output::escape;

/// What a spreadsheet takes for the beginning of a formula, in either width.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Some look behind spaces for one.
fn is_formula(text: &str) -> bool {
    text.starts_with(['\t', '\r']) || text.trim_start().starts_with(FORMULA)
}

/// One value of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// A number, or a word of ours, as it is.
    Plain(String),
    /// Text of somebody else's. Control characters are escaped.
    Text(String),
    /// Nothing.
    Empty,
}

impl Cell {
    /// Of a text that may be missing.
    pub fn of(text: Option<&str>) -> Self {
        text.map_or(Self::Empty, |text| Self::Text(text.to_owned()))
    }

    fn written(&self) -> String {
        match self {
            // A formula that came in as a text must not run where somebody opens the file.
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

/// One record with its line end.
pub fn csv_line(cells: &[Cell]) -> String {
    cells.iter().map(Cell::written).collect::<Vec<_>>().join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_quotes_gets_them() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let line = csv_line(&[
            text("a"),
            text("b,c"),
            text("d\"e"),
            text("f\r\ng"),
            text("\u{1b}[2J\u{9b}\u{202e}"),
            text(""),
            Cell::Empty,
            text("é "),
        ]);
        assert_eq!(line, "a,\"b,c\",\"d\"\"e\",f\\u000d\\u000ag,\\u001b[2J\\u009b\\u202e,,,é \r\n");
    }

    #[test]
    fn a_text_is_no_formula() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "=HYPERLINK(\"http://x\",\"y\")", " =1", "\u{a0}\u{ff1d}1"]
        {
            let line = csv_line(&[Cell::Text(text.to_owned())]);
            assert!(line.trim_start_matches('"').starts_with('\''), "{line:?}");
        }
        assert_eq!(csv_line(&[Cell::Text("\r=1".to_owned())]), "'\\u000d=1\r\n");
        assert_eq!(csv_line(&[Cell::Plain("-0.5".to_owned())]), "-0.5\r\n", "a number stays one");
    }
}
