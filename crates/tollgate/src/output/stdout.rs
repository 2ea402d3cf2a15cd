//! Standard output, written by commands only; logs go to standard error.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use domain::json::Json;
use serde::Serialize;

use super::text::{escape, escape_json, escape_text};

/// Standard output, as text or as one JSON document. Control characters are escaped in both.
#[derive(Debug)]
pub struct Output {
    json: bool,
    coloured: bool,
    written: Cell<bool>,
}

/// A line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The text, without a line end.
    pub text: String,
    /// True for a problem, which is red on a terminal.
    pub is_problem: bool,
}

impl Line {
    /// Creates a line.
    pub fn new(text: impl Into<String>, is_problem: bool) -> Self {
        Self { text: text.into(), is_problem }
    }
}

/// The sequences of a terminal for red text and for the default.
const RED: &str = "\u{1b}[31m";
const DEFAULT: &str = "\u{1b}[0m";

impl Output {
    /// Creates an output. With `json`, [`Output::show`] writes documents and [`Output::text`] writes nothing.
    pub fn new(json: bool) -> Self {
        Self { json, coloured: false, written: Cell::new(false) }
    }

    /// Permits colours on a terminal.
    #[must_use]
    pub fn with_colours(self, permitted: bool) -> Self {
        Self { coloured: permitted && self.is_terminal(), ..self }
    }

    /// Returns true with `--json`.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Returns true if standard output is a terminal.
    pub fn is_terminal(&self) -> bool {
        !self.json && io::stdout().is_terminal()
    }

    /// Returns true after the first write.
    pub fn has_written(&self) -> bool {
        self.written.get()
    }

    /// Writes the document or, without `--json`, the result of `text`. Returns the code of a command that succeeded.
    ///
    /// # Errors
    /// Standard output failed. A closed pipe is no error.
    pub fn show<T: Serialize>(&self, document: &T, text: impl FnOnce() -> String) -> anyhow::Result<ExitCode> {
        let text = if self.json { serde_json::to_string(document)? } else { text() };
        self.write(&if self.json { escape_json(&text) } else { escape_text(&text) })?;
        Ok(ExitCode::SUCCESS)
    }

    /// Writes a document as it is or, without `--json`, the result of `text`.
    ///
    /// # Errors
    /// Standard output failed. A closed pipe is no error.
    pub fn show_json(&self, document: &Json, text: impl FnOnce() -> String) -> anyhow::Result<ExitCode> {
        self.write(&if self.json { escape_json(document.text()) } else { escape_text(&text()).into_owned().into() })?;
        Ok(ExitCode::SUCCESS)
    }

    /// Writes the document or, without `--json`, the lines of `lines`, problems in red if colours are permitted.
    ///
    /// # Errors
    /// Standard output failed. A closed pipe is no error.
    pub fn show_lines<T: Serialize>(
        &self,
        document: &T,
        lines: impl FnOnce() -> Vec<Line>,
    ) -> anyhow::Result<ExitCode> {
        if self.json {
            return self.show(document, String::new);
        }
        self.write(&paint(&lines(), self.coloured))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Writes a text; nothing with `--json`.
    ///
    /// # Errors
    /// Standard output failed. A closed pipe is no error.
    pub fn text(&self, text: &str) -> anyhow::Result<()> {
        if self.json { Ok(()) } else { self.write(&escape_text(text)) }
    }

    fn write(&self, text: &str) -> anyhow::Result<()> {
        self.written.set(true);
        let mut stdout = io::stdout().lock();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        match stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.write_all(end.as_bytes()))
            .and_then(|()| stdout.flush())
        {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// Joins lines. Control characters are escaped, so only problems have sequences of the terminal.
fn paint(lines: &[Line], coloured: bool) -> String {
    let mut text = String::new();
    for line in lines {
        let escaped = escape(&line.text);
        let painted = coloured && line.is_problem;
        let parts = if painted { [RED, &escaped, DEFAULT] } else { ["", &escaped, ""] };
        text.extend(parts);
        text.push('\n');
    }
    text
}

/// Returns the lines of a table; a row is a problem if `is_problem` returns true for its number.
pub fn table_lines<const N: usize>(
    head: [&str; N],
    rows: &[[String; N]],
    is_problem: impl Fn(usize) -> bool,
) -> Vec<Line> {
    let text = table(head, rows);
    text.lines()
        .enumerate()
        .map(|(number, line)| Line::new(line, number.checked_sub(1).is_some_and(&is_problem)))
        .collect()
}

/// Writes a line to standard error. Control characters are escaped.
pub fn note(text: &str) {
    // A closed standard error is ignored.
    let _ = writeln!(io::stderr().lock(), "{}", escape(text));
}

/// Returns a number with its noun, in the singular for one.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns a table with aligned columns. Control characters and line ends in cells are escaped.
pub fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    aligned(&head.map(str::to_owned), &rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>())
}

/// Returns a table like [`table`], with a number of columns that the compiler does not know.
pub(super) fn aligned(head: &[String], rows: &[Vec<String>]) -> String {
    let lines: Vec<Vec<Cow<'_, str>>> = std::iter::once(head)
        .chain(rows.iter().map(Vec::as_slice))
        .map(|cells| cells.iter().map(|cell| escape(cell)).collect())
        .collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let padded = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_aligns_columns() {
        let rows = [["a".to_owned(), "1".to_owned()], ["bcd".to_owned(), String::new()]];
        assert_eq!(table(["ID", "N"], &rows), "ID   N\na    1\nbcd\n");
    }

    #[test]
    fn paint_colours_problems_and_escapes_text() {
        let rows = [["a".to_owned()], ["\u{1b}[2J".to_owned()]];
        let lines = table_lines(["N"], &rows, |row| row == 1);
        assert_eq!(paint(&lines, false), "N\na\n\\u001b[2J\n");
        assert_eq!(paint(&lines, true), "N\na\n\u{1b}[31m\\u001b[2J\u{1b}[0m\n");
        assert!(!Output::new(true).with_colours(true).coloured, "a JSON document has no colours");
    }

    #[test]
    fn table_escapes_cells() {
        let rows = [["a\nforged  1".to_owned(), "\u{1b}[2J\u{9b}m".to_owned()], ["b".to_owned(), "2".to_owned()]];
        let expected = "ID                N\na\\u000aforged  1  \\u001b[2J\\u009bm\nb                 2\n";
        assert_eq!(table(["ID", "N"], &rows), expected);
    }
}
