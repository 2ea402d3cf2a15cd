//! Progress bars on standard error, on a terminal only.

use std::borrow::Cow;
use std::io::Read;

use indicatif::{ProgressBar, ProgressStyle};

const BYTES: &str = "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
const BYTES_OF_UNKNOWN: &str = "{msg} {spinner} {bytes}, {bytes_per_sec}";
const REQUESTS: &str = "{msg} {wide_bar} {pos} of {len} requests, {eta} left";
const ROWS: &str = "{msg} {wide_bar} {pos} of {len} rows, {eta} left";

/// A bar that disappears at its end. Without a terminal it shows nothing.
#[derive(Clone)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Shows bytes; `None` for an unknown number of them.
    pub fn bytes(what: impl Into<Cow<'static, str>>, total: Option<u64>) -> Self {
        match total {
            Some(total) => Self::new(ProgressBar::new(total), BYTES, what),
            None => Self::new(ProgressBar::no_length(), BYTES_OF_UNKNOWN, what),
        }
    }

    /// Shows requests.
    pub fn requests(what: impl Into<Cow<'static, str>>, total: u64) -> Self {
        Self::new(ProgressBar::new(total), REQUESTS, what)
    }

    /// Shows rows.
    pub fn rows(what: impl Into<Cow<'static, str>>, total: u64) -> Self {
        Self::new(ProgressBar::new(total), ROWS, what)
    }

    fn new(bar: ProgressBar, template: &str, what: impl Into<Cow<'static, str>>) -> Self {
        // The templates are constants, and a test parses them.
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(bar.with_style(style).with_message(what))
    }

    /// Advances the bar.
    pub fn add(&self, count: usize) {
        self.0.inc(count as u64);
    }

    /// Moves the bar to a number.
    pub fn set(&self, count: u64) {
        self.0.set_position(count);
    }

    /// Counts what is read.
    pub fn of_reader<R: Read>(&self, reader: R) -> impl Read + use<R> {
        self.0.wrap_read(reader)
    }

    /// Removes the bar.
    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_valid() {
        for template in [BYTES, BYTES_OF_UNKNOWN, REQUESTS, ROWS] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn reader_is_counted() {
        let progress = Progress::bytes("Reading", Some(3));
        let mut bytes = Vec::new();
        progress.of_reader([1_u8, 2, 3].as_slice()).read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes.len(), progress.0.position()), (3, 3));
    }
}
