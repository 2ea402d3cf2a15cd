//! Applies content filters to an input and to the labels of a request: to small ones on the request's thread, to large
//! ones on the workers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::request::FilteredRequest;
use crate::api_key::InferenceKey;
use crate::decision::{Broadcast, ClientConnection, DecisionRequest, FilteringError, Metrics, SubmitDecisionError};
use crate::guardrail::filter::{Aliases, Blocked, FilteredInput};
use crate::guardrail::{GuardrailPolicies, Policy};
use crate::ids::WorkspaceId;
use crate::question::ProviderInput;
use crate::system::{CancelFlag, Cancelled, TaskError, TimeSource, WorkOwner, Workers};
use crate::usage::{FilterAction, RequestLabels};

/// The most bytes times filters that are scanned on the request's thread. This takes less than a millisecond for prose
/// with all built-in filters, and about three milliseconds for the slowest known text.
const INLINE: usize = 128 << 10;
/// Fewer filters count as this many, because a single one may match everywhere.
const FEWEST: usize = 8;

/// The filters' result for an input.
type ScanResult = Result<FilteredInput, Blocked>;

/// Applies the guardrails of a key to requests.
pub(in crate::decision) struct InputFilter {
    pub(super) policies: Arc<dyn GuardrailPolicies>,
    pub(super) workers: Arc<dyn Workers>,
    pub(super) metrics: Arc<dyn Metrics>,
    pub(super) broadcaster: Arc<dyn Broadcast>,
    pub(super) time: TimeSource,
    pub(super) deadline: Duration,
}

impl InputFilter {
    /// Filters a request of a key in place. Stops waiting if the client disconnects or the deadline passes.
    ///
    /// # Errors
    /// A filter blocks the request, the filters did not finish, or the guardrails could not be read.
    pub(super) async fn apply(
        &self,
        key: &InferenceKey,
        body: &mut DecisionRequest,
        client: &Arc<dyn ClientConnection>,
        began: Duration,
    ) -> Result<FilteredRequest, SubmitDecisionError> {
        let policy = self.policies.find(key).await?;
        let original = Arc::clone(&body.provider_input);
        let workspace_id = key.workspace_id();
        let owner = WorkOwner::Workspace(workspace_id);
        let filtered = self.filter(policy.as_ref(), &original, owner, client, began).await?;
        let FilteredInput { provider_input, aliases, findings } = filtered;
        // From here on, only the filtered input is used.
        body.provider_input = provider_input;
        let labels =
            RequestLabels { session_id: body.session_id.take(), trace: body.trace.take(), user: body.user.take() };
        let redacted_labels = self.redact(policy.as_ref(), workspace_id, &labels, began).await;
        Ok(FilteredRequest { policy, original, aliases, findings, labels, redacted_labels })
    }

    async fn filter(
        &self,
        policy: Option<&Arc<Policy>>,
        input: &Arc<ProviderInput>,
        owner: WorkOwner,
        client: &Arc<dyn ClientConnection>,
        began: Duration,
    ) -> Result<FilteredInput, SubmitDecisionError> {
        let Some(policy) = policy else {
            return Ok(FilteredInput {
                provider_input: Arc::clone(input),
                aliases: Aliases::default(),
                findings: Vec::new(),
            });
        };
        let result = if is_inline(policy, input.len_bytes()) {
            policy.filter(input)
        } else {
            // Boxed to keep the future of small requests small.
            Box::pin(self.filter_in_time(policy, input, owner, client, began)).await?
        };
        let filtered = result.inspect_err(|_| self.metrics.record_guardrail_action(FilterAction::Block.as_str()))?;
        filtered.findings.iter().for_each(|finding| self.metrics.record_guardrail_action(finding.action.as_str()));
        Ok(filtered)
    }

    async fn filter_in_time(
        &self,
        policy: &Arc<Policy>,
        input: &Arc<ProviderInput>,
        owner: WorkOwner,
        client: &Arc<dyn ClientConnection>,
        began: Duration,
    ) -> Result<ScanResult, FilteringError> {
        let timeout = self.time.sleep(self.time.time_left(began, self.deadline));
        // A disconnect or the deadline drops the scan, which cancels it.
        match select(Box::pin(self.scan_on_workers(owner, policy, input)), select(client.disconnected(), timeout)).await
        {
            Either::Left((result, _)) => result.map_err(FilteringError::TaskFailed),
            Either::Right((Either::Left(_), _)) => Err(FilteringError::ClientDisconnected),
            Either::Right((Either::Right(_), _)) => Err(FilteringError::TimedOut),
        }
    }

    /// Returns the labels that destinations may see; `None` if they equal the original ones. Labels that are
    /// not filtered before the deadline, or that no destination takes, are withheld.
    async fn redact(
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
        if is_inline(policy, labels.len_bytes()) {
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

    async fn scan_on_workers(
        &self,
        owner: WorkOwner,
        policy: &Arc<Policy>,
        input: &Arc<ProviderInput>,
    ) -> Result<ScanResult, TaskError> {
        let (policy, input) = (Arc::clone(policy), Arc::clone(input));
        let result = self.workers.get(owner, move |cancel| policy.filter_until(&input, cancel)).await?;
        result.map_err(|Cancelled| TaskError::Stopped)
    }

    /// Applies a policy's filters to an input, without metrics.
    ///
    /// # Errors
    /// The filters did not finish.
    pub(in crate::decision) async fn scan(
        &self,
        policy: &Arc<Policy>,
        input: &Arc<ProviderInput>,
    ) -> Result<ScanResult, FilteringError> {
        if is_inline(policy, input.len_bytes()) {
            return Ok(policy.filter(input));
        }
        self.scan_on_workers(WorkOwner::System, policy, input).await.map_err(FilteringError::TaskFailed)
    }
}

fn is_inline(policy: &Policy, bytes: usize) -> bool {
    match policy.filter_count() {
        0 => true,
        count => bytes.saturating_mul(count.max(FEWEST)) <= INLINE,
    }
}
