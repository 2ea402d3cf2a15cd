//! Records of JSON lines and of CSV files, with the numbers of their lines in the file.

use std::io::{BufRead, Read as _};

use anyhow::bail;

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
    /// The file cannot be read, or a quote is not closed, so that the next record is not found.
    pub fn read(&mut self) -> anyhow::Result<Option<(u64, Result<String, &'static str>)>> {
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
                return Ok(Some((line, String::from_utf8(bytes).map_err(|_| "is not UTF-8"))));
            }
        }
    }

    /// Skips the lines before this one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn skip_to(&mut self, line: u64) -> std::io::Result<()> {
        while self.lines + 1 < line && self.reader.skip_until(b'\n')? > 0 {
            self.lines += 1;
        }
        Ok(())
    }

    /// Reads the bytes of a record; `None` at the end.
    fn read_bytes(&mut self, line: u64) -> anyhow::Result<Option<Result<Vec<u8>, &'static str>>> {
        let (mut bytes, mut place) = (Vec::new(), CsvPlace::CellStart);
        loop {
            let start = bytes.len();
            // One more byte tells a record that is too long.
            let room = (self.max_bytes + 1).saturating_sub(start) as u64;
            if (&mut self.reader).take(room).read_until(b'\n', &mut bytes)? == 0 {
                if start > 0 {
                    bail!("line {line}: a quote is not closed");
                }
                return Ok(None);
            }
            self.lines += 1;
            if self.lines == 1 && bytes.starts_with("\u{feff}".as_bytes()) {
                bytes.drain(..3);
            }
            if bytes.len() > self.max_bytes {
                if self.is_csv {
                    bail!("line {line}: is longer than {} bytes, or a quote is not closed", self.max_bytes);
                }
                if !bytes.ends_with(b"\n") {
                    self.reader.skip_until(b'\n')?;
                }
                return Ok(Some(Err("is too long")));
            }
            place = bytes.get(start..).unwrap_or_default().iter().copied().fold(place, CsvPlace::after);
            if !self.is_csv || place != CsvPlace::Quoted {
                return Ok(Some(Ok(bytes)));
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

#[cfg(test)]
mod tests {
    use super::*;

    type Read = (u64, Result<String, &'static str>);

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
        assert_eq!(read_all(b"a\n", false, 9), (vec![], None));
    }

    #[test]
    fn invalid_line_leaves_the_others() {
        let long = "x".repeat(21);
        let text = [b"a\n\xff\n".as_slice(), long.as_bytes(), b"\nb\n", long.as_bytes()].concat();
        let (found, error) = read_all(&text, false, 1);
        let expected = [Ok("a"), Err("is not UTF-8"), Err("is too long"), Ok("b"), Err("is too long")];
        let expected = (1..).zip(expected.map(|text| text.map(str::to_owned))).collect::<Vec<_>>();
        assert_eq!((found, error), (expected, None));
        let (found, error) = read_all(b"a\n\xff,x\nb\n", true, 1);
        assert_eq!((found[1].clone(), found[2].0, error), ((2, Err("is not UTF-8")), 3, None));
    }

    #[test]
    fn open_quote_is_an_error_of_its_line() {
        for rest in ["x", "x\ny,z\n", "x\ny,z\n1234567890\n1234567890\n"] {
            let (found, error) = read_all(format!("a,b\n\nc,\"{rest}").as_bytes(), true, 1);
            let error = error.unwrap();
            assert!(found.len() == 1 && error.starts_with("line 3: "), "{error}");
            assert!(error.ends_with("a quote is not closed"), "{error}");
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
