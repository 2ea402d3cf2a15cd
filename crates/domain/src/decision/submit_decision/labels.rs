//! Labels of a request as destinations of traces may see them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::router::Router;
use crate::decision::RequestLabels;
use crate::guardrail::Policy;
use crate::ids::WorkspaceId;
use crate::system::{CancelFlag, WorkOwner};

/// Bytes times filters up to which labels are filtered on the thread that serves the request.
const INLINE: usize = 128 << 10;
/// As how many filters fewer ones count.
const FEWEST: usize = 8;

impl Router {
    /// Returns the labels that destinations may see; `None` where these are the labels as they came. Labels that are
    /// not filtered before the deadline, or that no destination takes, are withheld.
    pub(super) async fn redact_labels(
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
        if !self.ports.broadcaster.takes_labels(workspace_id) {
            return Some(RequestLabels::default());
        }
        if labels.len_bytes().saturating_mul(policy.filter_count().max(FEWEST)) <= INLINE {
            return Some(policy.redact_labels(labels));
        }
        let spent = self.ports.clock.monotonic().saturating_sub(began);
        let late = self.ports.timer.sleep(self.settings.deadline.saturating_sub(spent));
        let (policy, labels) = (Arc::clone(policy), labels.clone());
        let redacted = {
            let owner = WorkOwner::Workspace(workspace_id);
            let redact = move |cancel: &CancelFlag| policy.redact_labels_until(&labels, cancel);
            Box::pin(self.ports.workers.get(owner, redact))
        };
        match select(redacted, late).await {
            Either::Left((Ok(redacted), _)) => Some(redacted),
            Either::Left((Err(_), _)) | Either::Right(_) => Some(RequestLabels::default()),
        }
    }
}
