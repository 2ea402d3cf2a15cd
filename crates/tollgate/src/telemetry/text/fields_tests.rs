use std::io;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{fmt as lines, registry};

use super::*;
use crate::telemetry::text::TextLine;

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Page {
    /// Returns the lines without timestamps.
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| line.split_once('Z').map_or(line, |(_, rest)| rest).to_owned()).collect()
    }
}

/// Logs with these fields and with the library's own.
fn both(log: impl Fn()) -> (Vec<String>, Vec<String>) {
    let (own, usual) = (Page::default(), Page::default());
    let (to_own, to_usual) = (own.clone(), usual.clone());
    let layer = lines::layer().with_ansi(false).event_format(TextLine).fmt_fields(TextFields);
    tracing::subscriber::with_default(registry().with(layer.with_writer(move || to_own.clone())), &log);
    let layer = lines::layer().with_ansi(false);
    tracing::subscriber::with_default(registry().with(layer.with_writer(move || to_usual.clone())), &log);
    (own.lines(), usual.lines())
}

#[derive(Debug, thiserror::Error)]
#[error("the store is \u{1b}[31m away")]
struct Away(#[source] io::Error);

#[test]
fn lines_equal_output_of_library() {
    let (own, usual) = both(|| {
        tracing::error!("no fields");
        tracing::warn!(a = 1_u64, b = -1_i64, c = true, d = 0.5, e = "text", f = ?Some("x"), g = %"shown", "many");
        tracing::info!(
            text = "quoted \" \\ \n \u{e9} \u{1b}[31m '",
            r#type = 1,
            r#for = "x",
            "odd {}",
            "\u{1b}[0m \u{9b} \u{e9}\t"
        );
        tracing::debug!(message = "a message that is a string \u{7}", only = 1);
        tracing::trace!(none = Option::<u64>::None, some = Some(3), wide = u128::MAX, unsigned = usize::MAX);
        let away = Away(io::Error::other("gone \u{7f}"));
        tracing::info!(error = &away as &dyn Error, after = 1, "failed");
        tracing::info!(target: "somewhere::else", "elsewhere");
        let outer = tracing::info_span!("outer", id = %"r-1", method = "POST", late = tracing::field::Empty);
        let _outer = outer.enter();
        tracing::info!(http.status = 200_u16, latency_us = 17_u64, "answered");
        outer.record("late", "now");
        let inner = tracing::info_span!("inner");
        let _inner = inner.enter();
        tracing::info!("within both");
        tracing::info!(parent: &outer, "within one");
        tracing::info!(parent: None, "within none");
    });
    assert_eq!(own, usual);
    assert_eq!(own.len(), 11);
    let answered = &own[7];
    assert!(
        answered.ends_with(
            "INFO outer{id=r-1 method=\"POST\"}: tollgate::telemetry::text::fields_tests: answered http.status=200 latency_us=17"
        ),
        "{answered}"
    );
}

#[test]
fn nested_log_line_is_complete() {
    let log = || tracing::info!(a = 1, b = "two", "inner");
    FIELDS.with(|text| {
        let _taken = text.borrow_mut();
        let (own, usual) = both(log);
        assert_eq!(own, usual);
    });
}

proptest! {
    #[test]
    fn arbitrary_text_equals_output_of_library(name in any::<String>(), message in any::<String>()) {
        let (own, usual) = both(|| tracing::info!(name, shown = %name, debugged = ?name, "{message}"));
        prop_assert_eq!(own, usual);
    }
}
