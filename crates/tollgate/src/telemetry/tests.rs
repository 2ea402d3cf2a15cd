//! The promises of log lines: one line per event, without control characters of a client.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the text that `log` writes.
fn written(format: LogFormat, log: impl FnOnce()) -> String {
    let page = Page::default();
    let writer = page.clone();
    let subscriber = registry().with(lines(format, move || writer.clone(), false));
    tracing::subscriber::with_default(subscriber, log);
    let bytes = page.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

/// Returns the lines without timestamps.
fn text_lines(log: impl FnOnce()) -> Vec<String> {
    let text = written(LogFormat::Text, log);
    text.lines().map(|line| line.split_once("Z ").unwrap().1.trim_start().to_owned()).collect()
}

#[derive(Debug, thiserror::Error)]
#[error("the store is \u{1b}[31m away")]
struct Away(#[source] io::Error);

#[test]
fn text_line_has_level_spans_target_message_and_fields() {
    let lines = text_lines(|| {
        tracing::warn!(a = 1_u64, b = -1_i64, c = true, d = 0.5, e = "text", f = ?Some("x"), g = %"shown", "many");
        let outer = tracing::info_span!("http.request", request.id = %"r-1", late = tracing::field::Empty);
        let _outer = outer.enter();
        tracing::info!(target: "elsewhere", status = 200_u16, r#type = "x", "request completed");
        outer.record("late", 7);
        let inner = tracing::info_span!("inner");
        let _inner = inner.enter();
        let away = Away(io::Error::other("gone"));
        tracing::error!(error = &away as &dyn std::error::Error, "failed");
    });
    let module = "tollgate::telemetry::tests";
    let error = r"error=the store is \x1b[31m away error.sources=[gone]";
    assert_eq!(
        lines,
        [
            format!(r#"WARN {module}: many a=1 b=-1 c=true d=0.5 e="text" f=Some("x") g=shown"#),
            r#"INFO http.request{request.id=r-1}: elsewhere: request completed status=200 type="x""#.to_owned(),
            format!("ERROR http.request{{request.id=r-1 late=7}}:inner: {module}: failed {error}"),
        ]
    );
}

#[test]
fn timestamp_is_utc_with_microseconds() {
    let text = written(LogFormat::Text, || tracing::info!("x"));
    let time = text.split_once(' ').unwrap().0;
    assert_eq!(time.len(), "2026-11-21T09:08:07.000004Z".len());
    assert!(time.parse::<chrono::DateTime<chrono::Utc>>().is_ok(), "{time}");
}

fn has_controls(line: &str) -> bool {
    line.chars().any(|c| c.is_control() && c != '\t')
}

#[test]
fn message_escapes_terminal_sequences() {
    let lines = text_lines(|| tracing::info!("\u{1b}[0m \u{9b} \u{7f}"));
    assert!(!has_controls(&lines[0]) && lines[0].ends_with(r"\x1b[0m \u{9b} \x7f"), "{lines:?}");
}

proptest! {
    #[test]
    fn text_of_clients_cannot_forge_lines(name in any::<String>(), value in "[\\x00-\\x20\\x7f-\\u{9f}a\"\\\\]{0,20}") {
        let log = || {
            let span = tracing::info_span!("span", name);
            let _span = span.enter();
            tracing::info!(name, value, debugged = ?value, "message");
        };
        let text = written(LogFormat::Text, log);
        prop_assert!(!has_controls(text.strip_suffix('\n').unwrap()), "{:?}", text);
        let json = written(LogFormat::Json, log);
        prop_assert_eq!(json.lines().count(), 1);
        let line: serde_json::Value = serde_json::from_str(&json).unwrap();
        prop_assert_eq!((line["name"].as_str(), line["value"].as_str()), (Some(&*name), Some(&*value)));
    }
}
