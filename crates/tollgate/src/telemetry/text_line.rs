//! The line of an event as plain text: the same text as the library's format, without its overhead for colours and
//! options.

use std::cell::Cell;
use std::fmt;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
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
