//! The text format of the log: a line for each event, and its fields.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;
use std::fmt::{Debug, Write};
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::{RecordFields, VisitOutput};
use tracing_subscriber::fmt::format::{DefaultVisitor, FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// The format of a line: timestamp, level, spans with their fields, target, fields of the event.
pub(super) struct TextLine;

impl<S, N> FormatEvent<S, N> for TextLine
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        write_time(&mut line)?;
        line.write_str(level(*event.metadata().level()))?;
        if let Some(scope) = ctx.event_scope() {
            for span in scope.from_root() {
                line.write_str(span.metadata().name())?;
                if let Some(FormattedFields { fields, .. }) = span.extensions().get::<FormattedFields<N>>()
                    && !fields.is_empty()
                {
                    line.write_char('{')?;
                    line.write_str(fields)?;
                    line.write_char('}')?;
                }
                line.write_char(':')?;
            }
            line.write_char(' ')?;
        }
        line.write_str(event.metadata().target())?;
        line.write_str(": ")?;
        ctx.format_fields(line.by_ref(), event)?;
        line.write_char('\n')
    }
}

/// Returns the level, right-aligned, between spaces.
fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => " ERROR ",
        Level::WARN => "  WARN ",
        Level::INFO => "  INFO ",
        Level::DEBUG => " DEBUG ",
        Level::TRACE => " TRACE ",
    }
}

/// The length of `2026-11-21T09:08:07`.
const SECOND_LENGTH: usize = 19;

/// A second since 1970, and its text.
type FormattedSecond = (u64, [u8; SECOND_LENGTH]);

thread_local! {
    /// The second of the thread's last line, because a second has many lines.
    static LAST: Cell<FormattedSecond> = const { Cell::new((u64::MAX, [0; SECOND_LENGTH])) };
}

/// Writes the time in UTC with microseconds.
fn write_time(line: &mut Writer<'_>) -> fmt::Result {
    #[expect(clippy::disallowed_methods, reason = "the time of a log line, as the library's formats read it")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (mut second, mut text) = LAST.get();
    if second != now.as_secs() {
        second = now.as_secs();
        text = format_second(second).ok_or(fmt::Error)?;
        LAST.set((second, text));
    }
    line.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)?;
    line.write_str(std::str::from_utf8(&fraction(now.subsec_micros())).map_err(|_| fmt::Error)?)
}

/// Formats a second without its fraction; `None` for a year of more than four digits.
fn format_second(second: u64) -> Option<[u8; SECOND_LENGTH]> {
    let time = DateTime::from_timestamp(second.try_into().ok()?, 0)?;
    let mut text = [0; SECOND_LENGTH];
    write!(&mut text[..], "{}", time.format("%Y-%m-%dT%H:%M:%S")).ok()?;
    Some(text)
}

/// Formats microseconds as `.000004Z`.
fn fraction(micros: u32) -> [u8; 8] {
    let mut text = *b".000000Z";
    let mut rest = micros;
    for digit in text[1..7].iter_mut().rev() {
        // A remainder of ten is one digit.
        *digit += u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
    }
    text
}

thread_local! {
    /// A buffer for formatting, so that the resulting string is allocated once with its exact size.
    static FIELDS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The format of fields: `name=value` and the message, separated by spaces.
pub(super) struct TextFields;

impl<'writer> FormatFields<'writer> for TextFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        FIELDS.with(|text| {
            // The buffer is in use if a value logs while it is formatted.
            let mut another = String::new();
            let mut kept = text.try_borrow_mut();
            let text = kept.as_deref_mut().unwrap_or(&mut another);
            text.clear();
            let mut visitor = TextVisitor { text, is_first: true, result: Ok(()) };
            fields.record(&mut visitor);
            visitor.result?;
            writer.write_str(text)
        })
    }
}

struct TextVisitor<'t> {
    text: &'t mut String,
    is_first: bool,
    result: fmt::Result,
}

const MESSAGE: &str = "message";

impl TextVisitor<'_> {
    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.text.push(' ');
        }
    }

    fn name(&mut self, field: &Field) {
        self.separate();
        let name = field.name();
        self.text.push_str(name.strip_prefix("r#").unwrap_or(name));
        self.text.push('=');
    }

    /// Writes `name=value` with an unescaped value.
    fn put(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        if self.result.is_ok() {
            self.name(field);
            self.result = self.text.write_fmt(value);
        }
    }

    /// Delegates to the library's visitor: rare fields, and values with terminal control characters.
    fn delegate(&mut self, record: impl FnOnce(&mut DefaultVisitor<'_>)) {
        if self.result.is_ok() {
            let mut visitor = DefaultVisitor::new(Writer::new(self.text), std::mem::take(&mut self.is_first));
            record(&mut visitor);
            self.result = visitor.finish();
        }
    }
}

impl Visit for TextVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == MESSAGE {
            self.record_debug(field, &format_args!("{value}"));
        } else if is_printable(value) && !value.contains(['"', '\\']) {
            if self.result.is_ok() {
                self.name(field);
                self.text.push('"');
                self.text.push_str(value);
                self.text.push('"');
            }
        } else {
            self.put(field, format_args!("{value:?}"));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, format_args!("{value}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.delegate(|visitor| visitor.record_error(field, value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() != MESSAGE {
            return self.put(field, format_args!("{value:?}"));
        }
        if self.result.is_err() {
            return;
        }
        let (before, was_first) = (self.text.len(), self.is_first);
        self.separate();
        self.result = write!(self.text, "{value:?}");
        if !is_printable(&self.text[before..]) {
            self.text.truncate(before);
            self.is_first = was_first;
            self.delegate(|visitor| visitor.record_debug(field, value));
        }
    }
}

/// Returns true if all characters are printable.
fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

#[cfg(test)]
mod fields_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_and_fraction_have_fixed_lengths() {
        assert_eq!(format_second(0).unwrap(), *b"1970-01-01T00:00:00");
        assert_eq!(format_second(1_795_252_087).unwrap(), *b"2026-11-21T09:08:07");
        assert_eq!(format_second(u64::MAX), None);
        assert_eq!(format_second(300_000_000_000), None, "a year of five digits");
        assert_eq!([0, 4, 120_500, 999_999].map(fraction), [*b".000000Z", *b".000004Z", *b".120500Z", *b".999999Z"]);
    }

    #[test]
    fn levels_are_aligned() {
        for known in [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE] {
            assert_eq!(level(known), format!(" {known:>5} "));
        }
    }
}
