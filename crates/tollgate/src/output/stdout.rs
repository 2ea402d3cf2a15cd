//! Standard output, written by commands only; logs go to standard error.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::escape::{escape, escape_json, escape_text};

/// Standard output, as text or as one JSON document. Control characters are escaped in both.
#[derive(Debug)]
pub struct Output {
    json: bool,
    written: Cell<bool>,
}

impl Output {
    /// Creates an output. With `json`, [`Output::show`] writes documents and [`Output::text`] writes nothing.
    pub fn new(json: bool) -> Self {
        Self { json, written: Cell::new(false) }
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

    /// Writes the document or, without `--json`, the result of `text`.
    ///
    /// # Errors
    /// Standard output failed. A closed pipe is no error.
    pub fn show<T: Serialize>(&self, document: &T, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.json {
            self.write(&escape_json(&serde_json::to_string(document)?))
        } else {
            self.write(&escape_text(&text()))
        }
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

/// Writes a line to standard error. Control characters are escaped.
pub fn note(text: &str) {
    // A closed standard error is ignored.
    let _ = writeln!(io::stderr().lock(), "{}", escape(text));
}

/// Returns a table with aligned columns. Control characters and line ends in cells are escaped.
pub fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let rows: Vec<[Cow<'_, str>; N]> = rows.iter().map(|row| row.each_ref().map(|cell| escape(cell))).collect();
    let mut widths = head.map(|name| name.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; N]| {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width - cell.chars().count() + 2));
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut text = line(head);
    for row in &rows {
        text.push_str(&line(std::array::from_fn(|column| &*row[column])));
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
    fn table_escapes_cells() {
        let rows = [["a\nforged  1".to_owned(), "\u{1b}[2J\u{9b}m".to_owned()], ["b".to_owned(), "2".to_owned()]];
        let expected = "ID                N\na\\u000aforged  1  \\u001b[2J\\u009bm\nb                 2\n";
        assert_eq!(table(["ID", "N"], &rows), expected);
    }
}
