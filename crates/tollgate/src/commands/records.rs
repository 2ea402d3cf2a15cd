//! Records of JSON lines and of CSV files, with the numbers of their lines in the file.

use std::io::{self, BufRead, Read as _};

use anyhow::{bail, ensure};
use thiserror::Error;

use crate::output::counted;

/// A quoted cell of CSV has no end, so that the next record is not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("line {line}: a quote is not closed within {max_bytes} bytes")]
pub struct OpenQuote {
    /// The first line of the record.
    pub line: u64,
    max_bytes: usize,
}

/// Reads records. A record is a line; one of CSV with a quoted line break has several.
pub struct RecordReader<R> {
    reader: R,
    is_csv: bool,
    max_bytes: usize,
    /// The number of lines that are read.
    pub lines: u64,
}

impl<R: BufRead> RecordReader<R> {
    /// Creates a reader of records of at most `max_bytes`.
    pub fn new(reader: R, is_csv: bool, max_bytes: usize) -> Self {
        Self { reader, is_csv, max_bytes, lines: 0 }
    }

    /// Reads the next record that is not empty: the number of its first line, and its text or the reason why it has none.
    ///
    /// # Errors
    /// The file cannot be read, or [`OpenQuote`].
    pub fn read(&mut self) -> anyhow::Result<Option<(u64, Result<String, String>)>> {
        loop {
            let line = self.lines + 1;
            let mut bytes = match self.read_bytes(line)? {
                Some(Ok(bytes)) => bytes,
                Some(Err(fault)) => return Ok(Some((line, Err(fault)))),
                None => return Ok(None),
            };
            let end =
                bytes.strip_suffix(b"\n").map_or(bytes.len(), |rest| rest.strip_suffix(b"\r").unwrap_or(rest).len());
            bytes.truncate(end);
            let is_empty = if self.is_csv { bytes.is_empty() } else { bytes.trim_ascii().is_empty() };
            if !is_empty {
                return Ok(Some((line, String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned()))));
            }
        }
    }

    /// Skips the lines before this one.
    ///
    /// # Errors
    /// The file cannot be read, or ends before the line.
    pub fn skip_to(&mut self, line: u64) -> anyhow::Result<()> {
        while self.lines + 1 < line && self.reader.skip_until(b'\n')? > 0 {
            self.lines += 1;
        }
        if line > 1 && self.lines < line && self.reader.fill_buf()?.is_empty() {
            bail!("line {line} does not exist: the last line of the file is {}", self.lines);
        }
        Ok(())
    }

    /// Reads the bytes of a record; `None` at the end.
    fn read_bytes(&mut self, line: u64) -> anyhow::Result<Option<Result<Vec<u8>, String>>> {
        let (mut bytes, mut place) = (Vec::new(), CsvPlace::CellStart);
        let open = OpenQuote { line, max_bytes: self.max_bytes };
        loop {
            let start = bytes.len();
            // One more byte tells a record that is too long.
            let room = (self.max_bytes + 1).saturating_sub(start) as u64;
            if (&mut self.reader).take(room).read_until(b'\n', &mut bytes)? == 0 {
                ensure!(start == 0, open);
                return Ok(None);
            }
            self.lines += 1;
            if self.lines == 1 && bytes.starts_with("\u{feff}".as_bytes()) {
                bytes.drain(..3);
            }
            place = bytes.get(start..).unwrap_or_default().iter().copied().fold(place, CsvPlace::after);
            if bytes.len() > self.max_bytes {
                if !bytes.ends_with(b"\n") {
                    place = self.skip_line(place)?;
                }
                ensure!(!self.is_csv || place != CsvPlace::Quoted, open);
                return Ok(Some(Err(format!("is longer than {} bytes", self.max_bytes))));
            }
            if !self.is_csv || place != CsvPlace::Quoted {
                return Ok(Some(Ok(bytes)));
            }
        }
    }

    /// Skips the rest of a line, and returns the place after it.
    fn skip_line(&mut self, mut place: CsvPlace) -> io::Result<CsvPlace> {
        loop {
            let buffer = self.reader.fill_buf()?;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(buffer.len(), |end| end + 1);
            place = buffer.iter().take(count).copied().fold(place, CsvPlace::after);
            self.reader.consume(count);
            if end.is_some() || count == 0 {
                return Ok(place);
            }
        }
    }
}

/// The place of a byte in a record of CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CsvPlace {
    CellStart,
    Plain,
    Quoted,
    /// After a quote in a quoted cell: its end, or the first of two quotes.
    Quote,
}

impl CsvPlace {
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Quoted, b'"') => Self::Quote,
            (Self::CellStart | Self::Quote, b'"') | (Self::Quoted, _) => Self::Quoted,
            (_, b',' | b'\r' | b'\n') => Self::CellStart,
            _ => Self::Plain,
        }
    }
}

/// Returns the cells of a record of CSV.
///
/// # Errors
/// It has a carriage return outside of quotes, which ends no line.
pub fn csv_cells(record: &str) -> Result<csv::StringRecord, &'static str> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(record.as_bytes());
    let mut records = reader.records().map_while(Result::ok);
    let cells = records.next().unwrap_or_default();
    if records.next().is_none() { Ok(cells) } else { Err("has a carriage return outside of quotes") }
}

/// Checks that a row has as many cells as the head.
///
/// # Errors
/// It has fewer, or more.
pub fn check_width(row: &csv::StringRecord, head: usize) -> Result<(), String> {
    let cells = row.len();
    if cells == head { Ok(()) } else { Err(format!("has {}, the head has {head}", counted(cells as u64, "cell"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = (u64, Result<String, String>);

    fn read_all(text: &[u8], is_csv: bool, from: u64) -> (Vec<Read>, Option<String>) {
        let mut reader = RecordReader::new(text, is_csv, 20);
        reader.skip_to(from).unwrap();
        let mut found = Vec::new();
        loop {
            match reader.read() {
                Ok(Some(record)) => found.push(record),
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error.to_string())),
            }
        }
    }

    fn lines(text: &[u8], is_csv: bool) -> Vec<(u64, String)> {
        let (found, error) = read_all(text, is_csv, 1);
        assert_eq!(error, None);
        found.into_iter().map(|(line, text)| (line, text.unwrap())).collect()
    }

    #[test]
    fn lines_have_the_numbers_of_the_file() {
        for end in ["\n", "\r\n"] {
            let text = ["\u{feff}a,b", "", "c,\"d", "\"\"e\"", "f\"g,h", "", "", "i"].join(end);
            let expected = [(1, "a,b"), (3, &format!("c,\"d{end}\"\"e\"")), (5, "f\"g,h"), (8, "i")];
            assert_eq!(lines(text.as_bytes(), true), expected.map(|(line, text)| (line, text.to_owned())), "{end:?}");
            let (found, _) = read_all(text.as_bytes(), true, 5);
            assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [5, 8], "{end:?}");
            let text = ["\u{feff}{}", " ", "\"x", "1", ""].join(end);
            let expected = [(1, "{}"), (3, "\"x"), (4, "1")].map(|(line, text)| (line, text.to_owned()));
            assert_eq!(lines(text.as_bytes(), false), expected, "{end:?}");
        }
        assert_eq!(read_all(b"", true, 1), (vec![], None));
        for (line, expected) in [(1, None), (2, Some(1)), (9, Some(1))] {
            let error =
                RecordReader::new(b"a\n".as_slice(), false, 20).skip_to(line).err().map(|error| error.to_string());
            let expected =
                expected.map(|last| format!("line {line} does not exist: the last line of the file is {last}"));
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn invalid_line_leaves_the_others() {
        let long = "x".repeat(21);
        let text = [b"a\n\xff\n".as_slice(), long.as_bytes(), b"\nb\n", long.as_bytes()].concat();
        let (found, error) = read_all(&text, false, 1);
        let too_long = Err("is longer than 20 bytes");
        let expected = [Ok("a"), Err("is not UTF-8"), too_long, Ok("b"), too_long];
        let expected = expected.map(|text| text.map(str::to_owned).map_err(str::to_owned));
        assert_eq!((found, error), ((1..).zip(expected).collect::<Vec<_>>(), None));
        let (found, error) = read_all(b"a\n\xff,x\nb\n", true, 1);
        assert_eq!((found[1].clone(), found[2].0, error), ((2, Err("is not UTF-8".to_owned())), 3, None));
    }

    #[test]
    fn long_csv_row_leaves_the_others() {
        let long = "x".repeat(30);
        for row in [format!("b,{long}"), format!("b,\"{long}\"\"{long}\""), format!("b,\"x\r\n{long}\",c")] {
            let (found, error) = read_all(format!("a\n{row}\r\nc,\"d\ne\"\n{row}").as_bytes(), true, 1);
            let lines: Vec<_> = found.iter().map(|(line, record)| (*line, record.as_deref().ok())).collect();
            let more = row.lines().count() as u64;
            let expected = [(1, Some("a")), (2, None), (2 + more, Some("c,\"d\ne\"")), (4 + more, None)];
            assert_eq!((lines, error), (expected.to_vec(), None), "{row:?}");
            assert_eq!(found[1].1.as_ref().unwrap_err(), "is longer than 20 bytes");
        }
    }

    #[test]
    fn open_quote_is_an_error_of_its_line() {
        let long = "x".repeat(30);
        for rest in ["x", "x\ny,z\n", "x\ny,z\n1234567890\n1234567890\n", &long, &format!("{long}\nd,e\n")] {
            let (found, error) = read_all(format!("a,b\n\nc,\"{rest}").as_bytes(), true, 1);
            assert_eq!(error.as_deref(), Some("line 3: a quote is not closed within 20 bytes"), "{rest:?}");
            assert_eq!(found.len(), 1);
        }
        // The lines after it can be imported.
        assert_eq!(read_all(b"a,b\nc,\"x\nd,e\n", true, 3), (vec![(3, Ok("d,e".to_owned()))], None));
    }

    #[test]
    fn cells_are_those_of_a_record() {
        let cells = |text| csv_cells(text).map(|cells| cells.iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(cells("a,\"b \"\"c\"\"\r\nd\",").unwrap(), ["a", "b \"c\"\r\nd", ""]);
        assert_eq!(cells("\"\"").unwrap(), [""]);
        assert_eq!(cells("a\rb").unwrap_err(), "has a carriage return outside of quotes");
    }
}
