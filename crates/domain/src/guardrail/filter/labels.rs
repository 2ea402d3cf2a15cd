//! Redaction of the labels of a request, for destinations of traces.

use super::CompiledFilters;
use super::compile::Search;
use super::media::Media;
use super::scan::{Form, Scan};
use crate::json::Json;
use crate::system::CancelFlag;
use crate::usage::FilterAction;
use crate::usage::RequestLabels;

/// Members of `trace` that are ids. Two requests must not come to share one because the same was redacted in both, and
/// a hash of one would tell who guesses right.
const IDS: [&str; 2] = ["trace_id", "parent_span_id"];

/// How often a redacted text is filtered again.
const MAX_TURNS: usize = 4;

impl CompiledFilters {
    /// The same filters, each of which redacts where it would block.
    #[must_use]
    pub fn redacting(&self) -> Self {
        let mut filters = self.clone();
        for filter in filters.filters.iter_mut().filter(|filter| filter.action == FilterAction::Block) {
            filter.action = FilterAction::Redact;
        }
        filters.collect_placeholders();
        filters
    }

    /// Returns the labels with every match replaced. A label that cannot be redacted is left out, as is an id that
    /// matched.
    pub fn redact_labels(&self, labels: &RequestLabels) -> RequestLabels {
        self.redact_labels_until(labels, &CancelFlag::default())
    }

    /// As [`Self::redact_labels`], until it is cancelled: the remaining labels are left out then.
    pub fn redact_labels_until(&self, labels: &RequestLabels, cancel: &CancelFlag) -> RequestLabels {
        let search = Search::new(self, cancel);
        let text = |label: &Option<String>| search.redacted(label.as_deref()?, Form::Text);
        RequestLabels {
            session_id: text(&labels.session_id),
            user: text(&labels.user),
            trace: labels.trace.as_ref().and_then(|trace| search.redacted_trace(trace)),
        }
    }
}

impl Search<'_> {
    fn redacted_trace(&self, trace: &Json) -> Option<Json> {
        let redacted = Json::parse(&self.redacted(trace.text(), Form::Json(Media::Ignored))?).ok()?;
        let (before, after) = (trace.members()?, redacted.members()?);
        let is_kept = |((name, value), (_, now)): &(&(String, Json), &(String, Json))| {
            !IDS.contains(&name.as_str()) || value.text() == now.text()
        };
        if before.iter().zip(&after).all(|pair| is_kept(&pair)) {
            return Some(redacted);
        }
        let kept = before.iter().zip(&after).filter(is_kept);
        Some(Json::object(kept.map(|(_, (name, value))| (name.as_str(), value.text()))))
    }

    /// The text with every match replaced; `None` where that has no end or is cancelled.
    fn redacted(&self, text: &str, form: Form<'_>) -> Option<String> {
        let mut clean = text.to_owned();
        for turn in 0..=MAX_TURNS {
            let found = Scan::of(*self, &clean, form, turn > 0);
            if self.is_cancelled() {
                return None;
            }
            if found.redactions.is_empty() {
                return Some(clean);
            }
            clean = super::rewrite::rewrite(self, &clean, found.redactions).ok()?;
        }
        None
    }
}
