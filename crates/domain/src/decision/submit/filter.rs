//! Applies content filters to an input: a small one on the request's thread, a large one on the workers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::labels::LabelFilter;
use crate::api_key::InferenceKey;
use crate::budget::Payer;
use crate::decision::Metrics;
use crate::decision::{ClientConnection, DecisionRequest, FilteringError, SubmitDecisionError};
use crate::guardrail::filter::{Aliases, Blocked, FilteredInput};
use crate::guardrail::{GuardrailPolicies, Policy};
use crate::question::ProviderInput;
use crate::system::{Cancelled, TaskError, TimeSource, WorkOwner, Workers};
use crate::usage::{FilterAction, Finding, RequestLabels};

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
    pub(super) labels: LabelFilter,
    pub(super) time: TimeSource,
    pub(super) deadline: Duration,
}

/// A request after content filters.
pub(super) struct FilteredRequest {
    pub(super) policy: Option<Arc<Policy>>,
    /// The request with the filtered input, which is sent.
    pub(super) request: Arc<DecisionRequest>,
    /// The original input.
    pub(super) original: Arc<ProviderInput>,
    /// The names of questions and options that were replaced.
    pub(super) aliases: Aliases,
    /// The redacted and flagged matches.
    pub(super) findings: Vec<Finding>,
    /// The labels for the record.
    pub(super) labels: RequestLabels,
    /// The labels for destinations; `None` if they equal those of the record.
    pub(super) redacted_labels: Option<RequestLabels>,
}

impl FilteredRequest {
    pub(super) fn policy(&self) -> Option<&Policy> {
        self.policy.as_deref()
    }

    /// Returns the payer, and true if a limit applies.
    pub(super) fn payer(&self, key: &InferenceKey) -> (Payer, bool) {
        let guardrails = self.policy().map(Policy::ids).unwrap_or_default();
        let is_limited = key.limited() || self.policy().is_some_and(Policy::limits_money);
        (Payer { workspace_id: key.workspace_id(), api_key: key.id(), guardrails }, is_limited)
    }
}

impl InputFilter {
    /// Filters a request that began at `began`. Stops waiting if the client disconnects or the deadline passes.
    ///
    /// # Errors
    /// A filter blocks the request, the filters did not finish, or the guardrails could not be read.
    pub(super) async fn apply(
        &self,
        key: &InferenceKey,
        mut request: DecisionRequest,
        client: &Arc<dyn ClientConnection>,
        began: Duration,
    ) -> Result<FilteredRequest, SubmitDecisionError> {
        let policy = self.policies.find(key).await?;
        let original = Arc::clone(&request.provider_input);
        let owner = WorkOwner::Workspace(key.workspace_id());
        let filtered = self.filter(policy.as_ref(), &original, owner, client, began).await?;
        let labels = RequestLabels {
            session_id: request.session_id.take(),
            trace: request.trace.take(),
            user: request.user.take(),
        };
        let redacted_labels = self.labels.redact(policy.as_ref(), key.workspace_id(), &labels, began).await;
        // From here on, only the filtered input is used.
        let FilteredInput { provider_input, aliases, findings } = filtered;
        request.provider_input = provider_input;
        let request = Arc::new(request);
        Ok(FilteredRequest { policy, request, original, aliases, findings, labels, redacted_labels })
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
        let result = if is_inline(policy, input) {
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
        if is_inline(policy, input) {
            return Ok(policy.filter(input));
        }
        self.scan_on_workers(WorkOwner::System, policy, input).await.map_err(FilteringError::TaskFailed)
    }
}

fn is_inline(policy: &Policy, input: &ProviderInput) -> bool {
    match policy.filter_count() {
        0 => true,
        count => input.len_bytes().saturating_mul(count.max(FEWEST)) <= INLINE,
    }
}
