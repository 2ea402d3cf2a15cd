//! Redaction of the labels of a request, for trace destinations.

use std::iter;

use super::attachment::Media;
use super::scan::{Form, Scan, select};
use super::search::Search;
use super::{CompiledFilters, rewrite};
use crate::json::Json;
use crate::system::CancelFlag;
use crate::usage::{FilterAction, RequestLabels};

/// Members of `trace` that are ids. A matching id is removed and not replaced: two requests must not get the same id by
/// redaction, and a hash of the id would confirm a guess of it.
const IDS: [&str; 2] = ["trace_id", "parent_span_id"];

/// The format of `trace`.
const TRACE: Form<'static> = Form::Json(Media::Ignored);

/// The number of times that a redacted text is scanned again.
const MAX_RESCANS: usize = 4;

impl CompiledFilters {
    /// Returns the same filters with blocking replaced by redaction.
    #[must_use]
    pub fn redacting(&self) -> Self {
        let mut filters = self.clone();
        for filter in filters.filters.iter_mut().filter(|filter| filter.action == FilterAction::Block) {
            filter.action = FilterAction::Redact;
        }
        filters
    }

    /// Returns the labels with every match replaced. Labels that cannot be redacted and ids that matched are left out.
    pub fn redact_labels(&self, labels: &RequestLabels) -> RequestLabels {
        self.redact_labels_until(labels, &CancelFlag::default())
    }

    /// Redacts like [`Self::redact_labels`], until it is cancelled. The remaining labels are then left out.
    pub fn redact_labels_until(&self, labels: &RequestLabels, cancel: &CancelFlag) -> RequestLabels {
        let search = Search::new(self, cancel);
        let texts = [&labels.session_id, &labels.user].into_iter().flatten().map(|text| (text.as_str(), Form::Text));
        let selected = select(&search, texts.chain(labels.trace.as_ref().map(|trace| (trace.text(), TRACE))));
        let text = |label: &Option<String>| search.redacted(&selected, label.as_deref()?, Form::Text);
        RequestLabels {
            session_id: text(&labels.session_id),
            user: text(&labels.user),
            trace: labels.trace.as_ref().and_then(|trace| search.redacted_trace(&selected, trace)),
        }
    }
}

impl Search<'_> {
    fn redacted_trace(&self, selected: &Self, trace: &Json) -> Option<Json> {
        let redacted = Json::parse(&self.redacted(selected, trace.text(), TRACE)?).ok()?;
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

    /// Returns the text with every match replaced; `None` if redaction does not terminate or is cancelled. `selected`
    /// are the filters that may match it.
    fn redacted(&self, selected: &Self, text: &str, form: Form<'_>) -> Option<String> {
        let mut clean = text.to_owned();
        let mut found = Scan::run(selected, &clean, form, false);
        for _ in 0..=MAX_RESCANS {
            if self.is_cancelled() {
                return None;
            }
            if found.marks.is_empty() {
                return Some(clean);
            }
            clean = rewrite::rewrite(self.filters, &clean, form, &found.marks, rewrite::max_bytes(text)).ok()?;
            found = Scan::run(&select(self, iter::once((clean.as_str(), form))), &clean, form, true);
        }
        None
    }
}
