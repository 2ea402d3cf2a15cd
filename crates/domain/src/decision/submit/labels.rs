//! Redacts the labels of a request for trace destinations.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use crate::decision::Broadcast;
use crate::guardrail::Policy;
use crate::ids::WorkspaceId;
use crate::system::{CancelFlag, TimeSource, WorkOwner, Workers};
use crate::usage::RequestLabels;

/// The most bytes times filters that are filtered on the request's thread.
const INLINE: usize = 128 << 10;
/// Fewer filters count as this many.
const FEWEST: usize = 8;

/// Filters labels.
pub(super) struct LabelFilter {
    pub(super) broadcaster: Arc<dyn Broadcast>,
    pub(super) workers: Arc<dyn Workers>,
    pub(super) time: TimeSource,
    pub(super) deadline: Duration,
}

impl LabelFilter {
    /// Returns the labels that destinations may see; `None` if they equal the original ones. Labels that are
    /// not filtered before the deadline, or that no destination takes, are withheld.
    pub(super) async fn redact(
        &self,
        policy: Option<&Arc<Policy>>,
        workspace_id: WorkspaceId,
        labels: &RequestLabels,
        began: Duration,
    ) -> Option<RequestLabels> {
        let policy = policy.filter(|policy| policy.filter_count() > 0)?;
        if labels.is_empty() {
            return None;
        }
        if !self.broadcaster.takes_labels(workspace_id) {
            return Some(RequestLabels::default());
        }
        if labels.len_bytes().saturating_mul(policy.filter_count().max(FEWEST)) <= INLINE {
            return Some(policy.redact_labels(labels));
        }
        let timeout = self.time.sleep(self.time.time_left(began, self.deadline));
        let (policy, labels) = (Arc::clone(policy), labels.clone());
        let redacted = {
            let owner = WorkOwner::Workspace(workspace_id);
            let redact = move |cancel: &CancelFlag| policy.redact_labels_until(&labels, cancel);
            Box::pin(self.workers.get(owner, redact))
        };
        match select(redacted, timeout).await {
            Either::Left((Ok(redacted), _)) => Some(redacted),
            Either::Left((Err(_), _)) | Either::Right(_) => Some(RequestLabels::default()),
        }
    }
}
