//! Log lines as plain text: identical to the library's formatter, without its overhead for colours.

use std::cell::RefCell;
use std::error::Error;
use std::fmt::{self, Debug, Write};

use chrono::{DateTime, Datelike, Timelike, Utc};
use domain::system::Clock;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::{RecordFields, VisitOutput};
use tracing_subscriber::fmt::format::{DefaultVisitor, FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// The format of an event: time, level, spans with their fields, target, message and fields.
pub(super) struct TextLine<C>(pub(super) C);

impl<S, C> FormatEvent<S, TextFields> for TextLine<C>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    C: Clock,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, TextFields>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let about = event.metadata();
        write_time(&mut line, self.0.now())?;
        line.write_str(level(*about.level()))?;
        if let Some(scope) = context.event_scope() {
            for span in scope.from_root() {
                line.write_str(span.name())?;
                if let Some(fields) = span.extensions().get::<FormattedFields<TextFields>>()
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
        line.write_str(about.target())?;
        line.write_str(": ")?;
        context.field_format().format_fields(line.by_ref(), event)?;
        line.write_char('\n')
    }
}

/// Returns the level, padded and with surrounding spaces.
fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => " ERROR ",
        Level::WARN => "  WARN ",
        Level::INFO => "  INFO ",
        Level::DEBUG => " DEBUG ",
        Level::TRACE => " TRACE ",
    }
}

/// Writes ISO 8601 with microseconds. It formats digits itself, as the generic formatting costs more than the rest of a
/// line.
fn write_time(line: &mut Writer<'_>, time: DateTime<Utc>) -> fmt::Result {
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    let Ok(year @ 0..=9_999) = u32::try_from(time.year()) else {
        return write!(line, "{}", time.format("%Y-%m-%dT%H:%M:%S%.6fZ"));
    };
    let mut put = |end: usize, mut number: u32| {
        for digit in text[..end].iter_mut().rev() {
            if !digit.is_ascii_digit() {
                break;
            }
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    };
    put(4, year);
    put(7, time.month());
    put(10, time.day());
    put(13, time.hour());
    put(16, time.minute());
    put(19, time.second());
    put(26, time.nanosecond() / 1_000 % 1_000_000);
    line.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
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
            self.put(field, format_args!("\"{value}\""));
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
mod tests;
