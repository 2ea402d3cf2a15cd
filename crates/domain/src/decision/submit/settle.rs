//! The end of a request: its record and its charge, and only then its answer.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::call::EndedCall;
use super::cost::RequestCost;
use super::filter::FilteredRequest;
use super::hold::{HoldHandle, HoldRejection};
use super::outcome::{CallOutcome, Failure, Served, merge};
use super::record_quota::{RecordQuota, RecordQuotaStatus};
use crate::budget::{Ledger, UsageCharge};
use crate::decision::{Broadcast, Metrics, TraceContent};
use crate::decision::{Decision, FailedAttempts, RecordQuotaExceeded, SubmitDecisionError};
use crate::error::{ErrorKind, StoreError};
use crate::guardrail::Policy;
use crate::ids::WorkspaceId;
use crate::json::Json;
use crate::money::Usd;
use crate::routing::AttemptFailureKind;
use crate::routing::RoutingFunnel;
use crate::system::Clock;
use crate::usage::{UsageOutcome, UsageRecord, UsageSource};

/// Records and charges requests.
pub(super) struct Settlement {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) metrics: Arc<dyn Metrics>,
    pub(super) broadcaster: Arc<dyn Broadcast>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) record_quota: Arc<RecordQuota>,
    /// The longest `Retry-After` for a client.
    pub(super) max_retry_after: Duration,
}

/// The arrival time of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) at: DateTime<Utc>,
    /// The begin of its deadline, on the monotonic clock.
    pub(super) began: Duration,
}

/// A request that was called.
pub(super) struct Submission {
    pub(super) filtered: FilteredRequest,
    pub(super) hold: Arc<HoldHandle>,
    pub(super) arrival: Arrival,
    pub(super) funnel: RoutingFunnel,
}

impl Settlement {
    /// Returns the arrival of a request whose deadline began at `began`, if not now.
    pub(super) fn arrival(&self, began: Option<Duration>) -> Arrival {
        Arrival { at: self.clock.now(), began: began.unwrap_or_else(|| self.clock.monotonic()) }
    }

    /// Rejects a request of a workspace whose records reached today's limit.
    pub(super) async fn check_quota(&self, workspace: WorkspaceId) -> Result<(), RecordQuotaExceeded> {
        self.record_quota.check(workspace).await
    }

    /// The status of the bound on records.
    pub(super) fn quota_status(&self) -> RecordQuotaStatus {
        self.record_quota.status()
    }

    /// Charges the call and returns the answer.
    ///
    /// # Errors
    /// The failure of the call, or of the charge.
    pub(super) async fn settle(
        &self,
        mut submission: Submission,
        EndedCall { mut outcome, share }: EndedCall,
    ) -> Result<Decision, SubmitDecisionError> {
        // A cost above the range of money keeps its hold, whose bound is charged later.
        let cost = RequestCost::of(&outcome.attempts, share).ok_or(SubmitDecisionError::ChargeOutOfRange)?;
        let (answers, mut served) = match merge(&submission.filtered.request, &mut outcome) {
            Ok(merged) => merged,
            // Boxed to keep the future of successful requests small.
            Err(Some(failed)) => return Box::pin(self.settle_failure(submission, &outcome, &cost, *failed)).await,
            Err(None) => {
                if outcome.attempts.is_empty() {
                    submission.hold.release().await;
                }
                return Err(SubmitDecisionError::Defect("a request ended without an answer and without a failure"));
            }
        };
        let record = self.record(&mut submission, &outcome, &cost, (&mut served, UsageOutcome::Completed));
        // Destinations receive the answers with redacted names. Only the client receives the original ones.
        self.charge(&submission, record, Some(answers.json())).await?;
        let Submission { filtered, hold, funnel, .. } = submission;
        let answers = filtered.aliases.restore(answers, &filtered.original);
        Ok(Decision {
            id: hold.id().clone(),
            provider_input: filtered.original,
            answers,
            model: served.model,
            provider: served.names,
            input_tokens: cost.input_tokens,
            output_tokens: cost.output_tokens,
            usage_source: cost.usage_source,
            cost: cost.amount,
            attempts: Arc::clone(&outcome.attempts),
            funnel,
            findings: filtered.findings,
        })
    }

    async fn settle_failure(
        &self,
        mut submission: Submission,
        call: &CallOutcome,
        cost: &RequestCost,
        failed: Failure,
    ) -> Result<Decision, SubmitDecisionError> {
        let rejection = failed.rejection.and_then(|rejection| rejection_error(&submission.hold, rejection));
        if call.attempts.is_empty() {
            // Without an attempt there is no record.
            submission.hold.release().await;
            return Err(rejection.unwrap_or_else(|| not_tried(submission, failed)));
        }
        let is_cancelled = failed.kind == ErrorKind::ClientDisconnected;
        let outcome = if is_cancelled { UsageOutcome::Cancelled } else { UsageOutcome::Failed };
        let mut served = Served::by_one(&failed.candidate);
        let record = self.record(&mut submission, call, cost, (&mut served, outcome));
        self.charge(&submission, record, None).await?;
        if let Some(error) = rejection.filter(|_| failed.is_rejected_hold()) {
            return Err(error);
        }
        Err(SubmitDecisionError::Attempts(Box::new(FailedAttempts {
            id: submission.hold.id().clone(),
            kind: failed.kind,
            provider_name: served.names,
            attempts: Arc::clone(&call.attempts),
            causes: call.causes.clone(),
            cost: cost.amount,
            usage_source: cost.usage_source,
            // A wrong header of a provider must not make clients wait for a day.
            retry_after: failed.retry_after.map(|wait| wait.min(self.max_retry_after)),
            last: failed.last,
            funnel: submission.funnel,
            findings: submission.filtered.findings,
        })))
    }

    /// Charges a record. If the ledger cannot write it now, the ledger writes it later and the request fails.
    async fn charge(
        &self,
        submission: &Submission,
        record: UsageRecord,
        answers: Option<&Json>,
    ) -> Result<(), SubmitDecisionError> {
        let FilteredRequest { request, redacted_labels, .. } = &submission.filtered;
        let exchange = TraceContent {
            provider_input: &request.provider_input,
            answers,
            redacted_labels: redacted_labels.as_ref(),
        };
        let messages = self.broadcaster.messages(&record, &exchange);
        self.ledger.settle(UsageCharge { record: record.clone(), messages }).await?;
        self.record_quota.add(&record);
        let exceeded = submission.hold.limited_amount().filter(|held| record.cost > *held);
        if let Some(held) = exceeded {
            tracing::warn!(
                decision.id = %record.id,
                hold_usd = %held,
                cost_usd = %record.cost,
                "charge exceeds its hold: the provider counts more tokens than money.max_tokens_per_byte allows for"
            );
            self.metrics.record_hold_exceeded();
        }
        self.metrics.record_charge(&record);
        Ok(())
    }

    /// Creates the record. Moves values out of the submission that are not needed afterwards.
    fn record(
        &self,
        Submission { filtered, hold, arrival, .. }: &mut Submission,
        call: &CallOutcome,
        cost: &RequestCost,
        (served, outcome): (&mut Served, UsageOutcome),
    ) -> UsageRecord {
        let (payer, origin) = (hold.payer(), hold.origin());
        UsageRecord {
            id: hold.id().clone(),
            workspace_id: payer.workspace_id,
            api_key: payer.api_key,
            request_id: origin.request_id.clone(),
            requested_model: filtered.request.model.clone(),
            model: served.model.clone(),
            provider: std::mem::take(&mut served.slugs),
            outcome,
            input_tokens: cost.input_tokens,
            output_tokens: cost.output_tokens,
            usage_source: cost.usage_source,
            cost: cost.amount,
            prices: served.prices,
            share: cost.share,
            attempts: Arc::clone(&call.attempts),
            guardrails: filtered.policy().map(Policy::ids).unwrap_or_default(),
            findings: filtered.findings.clone(),
            charged_at: hold.at().unwrap_or(arrival.at),
            session_id: filtered.labels.session_id.take(),
            trace: filtered.labels.trace.take(),
            user: filtered.labels.user.take(),
            client_address: origin.client_address,
            created_at: arrival.at,
            latency: self.clock.monotonic().saturating_sub(arrival.began),
        }
    }
}

/// Returns the error of a request whose hold was rejected.
fn rejection_error(hold: &HoldHandle, rejection: HoldRejection) -> Option<SubmitDecisionError> {
    match rejection {
        HoldRejection::LimitExceeded => hold.rejection().map(SubmitDecisionError::LimitExceeded),
        HoldRejection::Store => {
            let unavailable = StoreError::unavailable("the hold for another attempt failed");
            Some(SubmitDecisionError::Store(unavailable))
        }
    }
}

/// Returns the error of a request without an attempt: its endpoints are throttled, or its deadline has passed.
fn not_tried(submission: Submission, failed: Failure) -> SubmitDecisionError {
    let funnel = submission.funnel;
    if let Some(endpoints) = failed.throttled {
        return SubmitDecisionError::Throttled { model: failed.candidate.model, endpoints, funnel };
    }
    SubmitDecisionError::Attempts(Box::new(FailedAttempts {
        id: submission.hold.id().clone(),
        kind: ErrorKind::TimedOut,
        provider_name: failed.candidate.endpoint.provider_name.clone(),
        attempts: Arc::default(),
        causes: Box::default(),
        cost: Usd::ZERO,
        usage_source: UsageSource::None,
        retry_after: None,
        last: AttemptFailureKind::TimedOut,
        funnel,
        findings: submission.filtered.findings,
    }))
}
