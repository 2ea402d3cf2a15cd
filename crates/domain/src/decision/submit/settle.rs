//! The end of a request: its record and its charge, and only then its answer.

use std::sync::Arc;
use std::time::Duration;

use super::call::EndedCall;
use super::evidence::collect_evidence;
use super::hold::HoldPlanner;
use super::outcome::{CallOutcome, Failure, RequestCost, Served, merge};
use super::record_quota::RecordQuota;
use super::request::{HoldRejection, Request};
use super::staged::question_outcomes;
use crate::budget::UsageCharge;
use crate::decision::{Broadcast, Decision, FailedAttempts, SubmitDecisionError, TraceContent};
use crate::error::{ErrorKind, StoreError};
use crate::json::Json;
use crate::money::Usd;
use crate::question::ProviderInput;
use crate::routing::{AttemptFailureKind, RoutingFunnel};
use crate::usage::{AnswerEvidence, QuestionOutcomes, UsageOutcome, UsageRecord, UsageSource};

/// Records and charges requests.
pub(super) struct Settlement {
    pub(super) hold_planner: Arc<HoldPlanner>,
    pub(super) broadcaster: Arc<dyn Broadcast>,
    pub(super) record_quota: Arc<RecordQuota>,
    /// The longest `Retry-After` for a client.
    pub(super) max_retry_after: Duration,
}

impl Settlement {
    /// Charges the call and returns the answer.
    ///
    /// # Errors
    /// The failure of the call, or of the charge.
    pub(super) async fn settle(
        &self,
        request: &mut Request,
        EndedCall { mut outcome, share }: EndedCall,
        funnel: RoutingFunnel,
    ) -> Result<Decision, SubmitDecisionError> {
        // A cost above the range of money keeps its hold, whose bound is charged later.
        let cost = RequestCost::of(&outcome.attempts, share).ok_or(SubmitDecisionError::ChargeOutOfRange)?;
        let evidence = collect_evidence(request, &outcome);
        let outcomes = staged_outcomes(request, &outcome, &request.filtered.original);
        let (answers, mut served) = match merge(&request.body, &mut outcome) {
            Ok(merged) => merged,
            // Boxed to keep the future of successful requests small.
            Err(Some(failed)) => return Box::pin(self.settle_failure(request, &outcome, &cost, *failed, funnel)).await,
            Err(None) => {
                if outcome.attempts.is_empty() {
                    self.hold_planner.release(request).await;
                }
                return Err(SubmitDecisionError::Defect("a request ended without an answer and without a failure"));
            }
        };
        let record = Self::record(request, &outcome, &cost, (&mut served, UsageOutcome::Completed));
        let record = UsageRecord { outcomes: outcomes.json().cloned(), ..record };
        // Destinations receive the answers with redacted names. Only the client receives the original ones.
        let redacted = (!Arc::ptr_eq(&request.filtered.original, &request.body.provider_input))
            .then(|| staged_outcomes(request, &outcome, &request.body.provider_input));
        let sent_outcomes = redacted.as_ref().unwrap_or(&outcomes);
        self.charge(request, record, Some((answers.json(), sent_outcomes.json(), evidence))).await?;
        for outcome in outcomes.all() {
            self.hold_planner.metrics.record_question_verdict(outcome.verdict);
        }
        let filtered = &mut request.filtered;
        Ok(Decision {
            id: request.id.clone(),
            answers: filtered.aliases.restore(answers, &filtered.original),
            provider_input: Arc::clone(&filtered.original),
            model: served.model,
            provider: served.names,
            input_tokens: cost.input_tokens,
            output_tokens: cost.output_tokens,
            usage_source: cost.usage_source,
            cost: cost.amount,
            attempts: Arc::clone(&outcome.attempts),
            funnel,
            findings: std::mem::take(&mut filtered.findings),
            outcomes,
        })
    }

    async fn settle_failure(
        &self,
        request: &mut Request,
        call: &CallOutcome,
        cost: &RequestCost,
        failed: Failure,
        funnel: RoutingFunnel,
    ) -> Result<Decision, SubmitDecisionError> {
        let rejection = failed.rejection.and_then(|rejection| rejection_error(request, rejection));
        if call.attempts.is_empty() {
            // Without an attempt there is no record.
            self.hold_planner.release(request).await;
            return Err(rejection.unwrap_or_else(|| not_tried(request, failed, funnel)));
        }
        let is_cancelled = failed.kind == ErrorKind::ClientDisconnected;
        let outcome = if is_cancelled { UsageOutcome::Cancelled } else { UsageOutcome::Failed };
        let mut served = Served::by_one(&failed.candidate);
        let record = Self::record(request, call, cost, (&mut served, outcome));
        self.charge(request, record, None).await?;
        if let Some(error) = rejection.filter(|_| failed.is_rejected_hold()) {
            return Err(error);
        }
        Err(SubmitDecisionError::Attempts(Box::new(FailedAttempts {
            id: request.id.clone(),
            kind: failed.kind,
            provider_name: served.names,
            attempts: Arc::clone(&call.attempts),
            causes: call.causes.clone(),
            cost: cost.amount,
            usage_source: cost.usage_source,
            // A wrong header of a provider must not make clients wait for a day.
            retry_after: failed.retry_after.map(|wait| wait.min(self.max_retry_after)),
            last: failed.last,
            funnel,
            findings: std::mem::take(&mut request.filtered.findings),
        })))
    }

    /// Charges a record. If the ledger cannot write it now, the ledger writes it later and the request fails.
    async fn charge(
        &self,
        request: &Request,
        record: UsageRecord,
        answered: Option<(&Json, Option<&Json>, Vec<AnswerEvidence>)>,
    ) -> Result<(), SubmitDecisionError> {
        let (answers, outcomes, evidence) =
            answered.map_or_else(Default::default, |(answers, outcomes, evidence)| (Some(answers), outcomes, evidence));
        let HoldPlanner { ledger, metrics, .. } = &*self.hold_planner;
        let exchange = TraceContent {
            provider_input: &request.body.provider_input,
            answers,
            outcomes,
            redacted_labels: request.filtered.redacted_labels.as_ref(),
        };
        let messages = self.broadcaster.messages(&record, &exchange);
        let charge = UsageCharge { record, messages, evidence };
        ledger.settle(&charge).await?;
        self.record_quota.add(&charge);
        let UsageCharge { record, .. } = &charge;
        let held = request.lock_hold().amount;
        if request.is_limited && record.cost > held {
            tracing::warn!(
                decision.id = %record.id,
                hold_usd = %held,
                cost_usd = %record.cost,
                "charge exceeds its hold: the provider counts more tokens than money.max_tokens_per_byte allows for"
            );
            metrics.record_hold_exceeded();
        }
        metrics.record_charge(record);
        Ok(())
    }

    /// Creates the record. Moves values out of the request that are not needed afterwards.
    fn record(
        request: &mut Request,
        call: &CallOutcome,
        cost: &RequestCost,
        (served, outcome): (&mut Served, UsageOutcome),
    ) -> UsageRecord {
        let held_at = request.lock_hold().at;
        UsageRecord {
            id: request.id.clone(),
            workspace_id: request.payer.workspace_id,
            api_key: request.payer.api_key,
            request_id: request.origin.request_id.clone(),
            requested_model: std::mem::take(&mut request.body.model),
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
            guardrails: request.payer.guardrails.clone(),
            findings: request.filtered.findings.clone(),
            charged_at: held_at.unwrap_or(request.arrived_at),
            session_id: request.filtered.labels.session_id.take(),
            trace: request.filtered.labels.trace.take(),
            user: request.filtered.labels.user.take(),
            client_address: request.origin.client_address,
            preset: request.body.preset,
            outcomes: None,
            created_at: request.arrived_at,
            latency: call.ended.saturating_sub(request.began),
        }
    }
}

/// Returns the outcomes of the questions of a cascade, by the names of an input.
fn staged_outcomes(request: &Request, call: &CallOutcome, named: &ProviderInput) -> QuestionOutcomes {
    match (&call.staged, &request.body.cascade) {
        (Some(staged), Some(cascade)) => {
            question_outcomes(staged, named.questions.typed.as_deref().unwrap_or_default(), cascade.otherwise)
        }
        _ => QuestionOutcomes::default(),
    }
}

/// Returns the error of a request whose hold was rejected.
fn rejection_error(request: &Request, rejection: HoldRejection) -> Option<SubmitDecisionError> {
    match rejection {
        HoldRejection::LimitExceeded => {
            request.lock_hold().rejection.map(|(exceeded, _)| SubmitDecisionError::LimitExceeded(exceeded))
        }
        HoldRejection::Store => {
            let unavailable = StoreError::unavailable("the hold for another attempt failed");
            Some(SubmitDecisionError::Store(unavailable))
        }
    }
}

/// Returns the error of a request without an attempt: its endpoints are throttled, or its deadline has passed.
fn not_tried(request: &mut Request, failed: Failure, funnel: RoutingFunnel) -> SubmitDecisionError {
    if let Some(endpoints) = failed.throttled {
        return SubmitDecisionError::Throttled { model: failed.candidate.model, endpoints, funnel };
    }
    SubmitDecisionError::Attempts(Box::new(FailedAttempts {
        id: request.id.clone(),
        kind: ErrorKind::TimedOut,
        provider_name: failed.candidate.endpoint.provider_name.clone(),
        attempts: Arc::default(),
        causes: Box::default(),
        cost: Usd::ZERO,
        usage_source: UsageSource::None,
        retry_after: None,
        last: AttemptFailureKind::TimedOut,
        funnel,
        findings: std::mem::take(&mut request.filtered.findings),
    }))
}
