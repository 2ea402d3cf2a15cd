//! The labels of a request.

use crate::json::Json;

/// The labels of a request, for its usage record and its trace. They are not sent to providers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestLabels {
    /// The caller's group of requests.
    pub session_id: Option<String>,
    /// Observability metadata: a JSON object.
    pub trace: Option<Json>,
    /// The end user.
    pub user: Option<String>,
}

impl RequestLabels {
    /// Returns true if there are no labels.
    pub fn is_empty(&self) -> bool {
        self.session_id.is_none() && self.trace.is_none() && self.user.is_none()
    }

    /// Returns the size of their text in bytes.
    pub fn len_bytes(&self) -> usize {
        let texts = [self.session_id.as_deref(), self.trace.as_ref().map(Json::text), self.user.as_deref()];
        texts.into_iter().flatten().map(str::len).sum()
    }
}
