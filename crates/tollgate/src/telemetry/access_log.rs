//! The lines of the access log. Every request writes one, so they bypass the spans and events of `tracing`.

use std::cell::Cell;
use std::fmt::{self, Write};
use std::io::Write as _;

use api_actix::{ACCESS_LOG_TARGET, AccessField, AccessLog, AccessValue};
use chrono::{DateTime, Utc};

use super::LOG;
use crate::config::LogFormat;

/// Returns the function that writes the line of a completed request.
pub fn access_log(format: LogFormat) -> AccessLog {
    match format {
        LogFormat::Text => |at, fields| write_line(LogFormat::Text, at, fields),
        LogFormat::Json => |at, fields| write_line(LogFormat::Json, at, fields),
    }
}

thread_local! {
    /// The memory of the thread's last line.
    static LINE: Cell<String> = const { Cell::new(String::new()) };
}

fn write_line(format: LogFormat, at: DateTime<Utc>, fields: &[AccessField<'_>]) {
    let mut line = LINE.take();
    line.clear();
    if format_line(&mut line, format, at, fields).is_ok() {
        LOG.write(line.as_bytes(), false);
    }
    LINE.set(line);
}

/// Writes a line as the formats of `tracing_subscriber` do.
fn format_line(line: &mut String, format: LogFormat, at: DateTime<Utc>, fields: &[AccessField<'_>]) -> fmt::Result {
    let is_json = format == LogFormat::Json;
    if is_json {
        line.push_str("{\"timestamp\":\"");
    }
    write_time(line, at)?;
    if is_json {
        line.push_str("\",\"level\":\"INFO\",\"message\":\"request completed\",\"target\":\"");
        line.push_str(ACCESS_LOG_TARGET);
        line.push('"');
    } else {
        line.push_str("  INFO ");
        line.push_str(ACCESS_LOG_TARGET);
        line.push_str(": request completed");
    }
    for (name, value) in fields {
        let Some(value) = value else { continue };
        line.push_str(if is_json { ",\"" } else { " " });
        line.push_str(name);
        line.push_str(if is_json { "\":" } else { "=" });
        match value {
            AccessValue::Number(number) => write!(line, "{number}")?,
            AccessValue::Plain(value) if is_json => write!(line, "\"{value}\"")?,
            AccessValue::Plain(value) => write!(line, "{value}")?,
            AccessValue::Id(text) if !is_json => line.push_str(text),
            AccessValue::Id(text) => push_quoted(line, text),
            AccessValue::Text(text) if is_plain(text) => push_quoted(line, text),
            AccessValue::Text(text) if is_json => line.push_str(&serde_json::Value::from(*text).to_string()),
            AccessValue::Text(text) => write!(line, "{text:?}")?,
        }
    }
    line.push_str(if is_json { "}\n" } else { "\n" });
    Ok(())
}

fn push_quoted(line: &mut String, text: &str) {
    line.push('"');
    line.push_str(text);
    line.push('"');
}

/// Returns true if no format escapes a character of the text.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'))
}

/// The length of `2026-11-21T09:08:07`.
const SECOND_LENGTH: usize = 19;

/// A second since 1970, and its text.
type FormattedSecond = (i64, [u8; SECOND_LENGTH]);

thread_local! {
    /// The second of the thread's last line, because a second has many lines.
    static LAST: Cell<FormattedSecond> = const { Cell::new((i64::MAX, [0; SECOND_LENGTH])) };
}

/// Writes the time in UTC with microseconds.
fn write_time(line: &mut String, at: DateTime<Utc>) -> fmt::Result {
    let (mut second, mut text) = LAST.get();
    if second != at.timestamp() {
        second = at.timestamp();
        text = format_second(at).ok_or(fmt::Error)?;
        LAST.set((second, text));
    }
    line.push_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?);
    line.push_str(std::str::from_utf8(&fraction(at.timestamp_subsec_micros())).map_err(|_| fmt::Error)?);
    Ok(())
}

/// Formats a second without its fraction; `None` for a year of more than four digits.
fn format_second(time: DateTime<Utc>) -> Option<[u8; SECOND_LENGTH]> {
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

    fn line(format: LogFormat, fields: &[AccessField<'_>]) -> String {
        let mut line = String::new();
        format_line(&mut line, format, DateTime::from_timestamp(1_795_252_087, 4_999).unwrap(), fields).unwrap();
        line
    }

    #[test]
    fn text_and_json_lines_have_the_same_fields() {
        let fields = [
            ("request.id", Some(AccessValue::Plain(&"r-1"))),
            ("http.route", None),
            ("http.status", Some(AccessValue::Number(200))),
            ("provider.name", Some(AccessValue::Text("\"A\" \u{1b}[31m\n"))),
        ];
        let text = line(LogFormat::Text, &fields);
        let (time, rest) = text.split_at(27);
        assert_eq!(time, "2026-11-21T09:08:07.000004Z");
        let expected = r"  INFO api_actix::http::access_log: request completed request.id=r-1 http.status=200 ";
        assert_eq!(rest, format!("{expected}{}\n", r#"provider.name="\"A\" \u{1b}[31m\n""#));
        let json = line(LogFormat::Json, &fields);
        assert_eq!(json.lines().count(), 1);
        let mut json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let time = json.as_object_mut().unwrap().remove("timestamp").unwrap();
        assert_eq!(time, "2026-11-21T09:08:07.000004Z");
        let expected = serde_json::json!({
            "level": "INFO", "message": "request completed", "target": ACCESS_LOG_TARGET, "request.id": "r-1", "http.status": 200,
            "provider.name": "\"A\" \u{1b}[31m\n",
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn second_and_fraction_have_fixed_lengths() {
        let second = |second| format_second(DateTime::from_timestamp(second, 999_999_999).unwrap());
        assert_eq!(second(0), Some(*b"1970-01-01T00:00:00"));
        assert_eq!(second(1_795_252_087), Some(*b"2026-11-21T09:08:07"));
        assert_eq!(second(300_000_000_000), None, "a year of five digits");
        assert_eq!([0, 4, 120_500, 999_999].map(fraction), [*b".000000Z", *b".000004Z", *b".120500Z", *b".999999Z"]);
    }
}
