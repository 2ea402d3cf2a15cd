//! From what became of a request to its record, and then to its answer.

use std::sync::Arc;

use super::Submission;
use super::coalescing::Share;
use super::money::Denied;
use super::part::PartEnd;
use super::router::{Routed, Router};
use crate::budget::{Settlement, charged};
use crate::decision::{Answers, Decision, DecisionRequest, FailedAttempts, RoutingFunnel, SubmitDecisionError};
use crate::error::{ErrorKind, StoreError};
use crate::guardrail::Policy;
use crate::json::Json;
use crate::model::ModelId;
use crate::money::{Charge, Usd};
use crate::observability::Exchange;
use crate::routing::{AttemptFailureKind, Candidate, ThrottledEndpoints, verdict};
use crate::usage::{AttemptRecord, TokenSource, UsageOutcome, UsageRecord};

impl Router {
    /// Records the request; only then is there an answer.
    pub(super) async fn settle(
        &self,
        mut submission: Submission<'_>,
        mut routed: Arc<Routed>,
        share: Share,
        funnel: RoutingFunnel,
    ) -> Result<Decision, SubmitDecisionError> {
        // What cannot be charged in money keeps its reservation, which the sweeper then charges.
        let bill = Bill::of(&routed.attempts, share).ok_or(SubmitDecisionError::ChargeOutOfRange)?;
        let (answers, mut served) = match merged(submission.request, &mut routed) {
            Ok(merged) => merged,
            // Seldom, and much to keep room for in every request.
            Err(Some(failed)) => {
                return Box::pin(self.give_up(submission, &routed, share, &bill, *failed, funnel)).await;
            }
            Err(None) => {
                if routed.attempts.is_empty() {
                    self.release(submission.funds.as_ref()).await;
                }
                return Err(SubmitDecisionError::Defect("a request ended without an answer or a failure"));
            }
        };
        let record = self.record(&mut submission, &routed, share, &bill, &mut served, UsageOutcome::Completed);
        // Others are told of what came back for what was sent: names that were redacted are the caller's alone.
        self.charge(&submission, record, Some(answers.json())).await?;
        let answers = submission.filtered.aliases.restore(answers, &submission.asked);
        Ok(Decision {
            id: submission.id,
            inquiry: submission.asked,
            answers,
            model: served.model,
            provider: served.names,
            input_tokens: bill.input_tokens,
            output_tokens: bill.output_tokens,
            token_source: bill.token_source,
            cost: bill.cost,
            attempts: Arc::clone(&routed.attempts),
            funnel,
            findings: submission.filtered.findings,
        })
    }

    /// Charges a record, and tells of it. What the store does not take now is charged later, and there is no answer.
    async fn charge(
        &self,
        submission: &Submission<'_>,
        record: UsageRecord,
        answers: Option<&Json>,
    ) -> Result<(), SubmitDecisionError> {
        let redacted_labels = submission.redacted_labels.as_ref();
        let exchange = Exchange { inquiry: &submission.filtered.inquiry, answers, redacted_labels };
        let messages = self.ports.broadcaster.messages(&record, &exchange);
        let reserved = submission.funds.as_ref().map(|funds| funds.amount());
        if let Err(error) = self.ports.ledger.settle(Settlement { record: record.clone(), messages }).await {
            // Written anew rather than kept beside every request that goes well. Of two with one id one is charged.
            let messages = self.ports.broadcaster.messages(&record, &exchange);
            self.ports.backlog.keep(Settlement { record, messages }, reserved, &error);
            return Err(error.into());
        }
        self.record_quota.add(&record);
        charged(&*self.ports.meter, &record, reserved);
        Ok(())
    }

    async fn give_up(
        &self,
        mut submission: Submission<'_>,
        routed: &Routed,
        share: Share,
        bill: &Bill,
        failed: Failure,
        funnel: RoutingFunnel,
    ) -> Result<Decision, SubmitDecisionError> {
        let denied = failed.denied.and_then(|denied| submission.denied(denied));
        if routed.attempts.is_empty() {
            // Nobody was asked, so there is nothing to record.
            self.release(submission.funds.as_ref()).await;
            if let Some(error) = denied {
                return Err(error);
            }
            if let Some(endpoints) = failed.throttled {
                let model = failed.candidate.model;
                return Err(SubmitDecisionError::Throttled { model, endpoints, funnel });
            }
            return Err(SubmitDecisionError::Attempts(Box::new(FailedAttempts {
                id: submission.id,
                kind: ErrorKind::TimedOut,
                provider_name: failed.candidate.endpoint.provider_name.clone(),
                attempts: Arc::default(),
                retry_after: None,
                last: AttemptFailureKind::TimedOut,
                funnel,
                findings: submission.filtered.findings,
            })));
        }
        let gone = failed.kind == ErrorKind::CallerGone;
        let outcome = if gone { UsageOutcome::Cancelled } else { UsageOutcome::Failed };
        let mut served = Served::by_one(&failed.candidate);
        let record = self.record(&mut submission, routed, share, bill, &mut served, outcome);
        self.charge(&submission, record, None).await?;
        if let Some(error) = denied.filter(|_| failed.is_for_want_of_money()) {
            return Err(error);
        }
        Err(SubmitDecisionError::Attempts(Box::new(FailedAttempts {
            id: submission.id,
            kind: failed.kind,
            provider_name: served.names,
            attempts: Arc::clone(&routed.attempts),
            // A mistaken header of a provider must not keep callers away for a day.
            retry_after: failed.retry_after.map(|wait| wait.min(self.ports.health.policy().max_backoff)),
            last: failed.last,
            funnel,
            findings: submission.filtered.findings,
        })))
    }

    /// Takes what nobody else needs.
    fn record(
        &self,
        submission: &mut Submission<'_>,
        routed: &Routed,
        share: Share,
        bill: &Bill,
        served: &mut Served,
        outcome: UsageOutcome,
    ) -> UsageRecord {
        UsageRecord {
            id: submission.id.clone(),
            workspace_id: submission.key.workspace_id(),
            api_key: submission.key.hash(),
            request_id: submission.request_id.clone(),
            requested_model: submission.request.model.clone(),
            model: served.model.clone(),
            provider: std::mem::take(&mut served.slugs),
            outcome,
            input_tokens: bill.input_tokens,
            output_tokens: bill.output_tokens,
            token_source: bill.token_source,
            cost: bill.cost,
            prices: served.prices,
            share: share.recorded(),
            attempts: Arc::clone(&routed.attempts),
            guardrails: submission.policy.map(Policy::ids).unwrap_or_default(),
            findings: submission.filtered.findings.clone(),
            charged_at: submission.funds.as_ref().and_then(|funds| funds.at()).unwrap_or(submission.at),
            session_id: submission.labels.session_id.take(),
            trace: submission.labels.trace.take(),
            user: submission.labels.user.take(),
            created_at: submission.at,
            latency: self.ports.clock.monotonic().saturating_sub(submission.began),
        }
    }
}

impl Submission<'_> {
    /// Why this request has no money for another attempt; `None` where it has, and those that share the call with it
    /// have none: then its own caller has left.
    pub(super) fn denied(&self, denied: Denied) -> Option<SubmitDecisionError> {
        match denied {
            Denied::Overspent => self.funds.as_ref()?.refused().map(SubmitDecisionError::Overspent),
            Denied::Store => {
                let unavailable = StoreError::unavailable("money for another attempt could not be reserved");
                Some(SubmitDecisionError::Store(unavailable))
            }
        }
    }
}

/// A part that failed, and with it the request.
struct Failure {
    kind: ErrorKind,
    denied: Option<Denied>,
    /// True where a provider was asked and failed.
    was_tried: bool,
    last: AttemptFailureKind,
    retry_after: Option<std::time::Duration>,
    throttled: Option<ThrottledEndpoints>,
    candidate: Candidate,
}

impl Failure {
    fn of(end: &PartEnd) -> Option<Self> {
        let PartEnd::Failed { failures, throttled, denied, candidate, .. } = end else { return None };
        let kinds: Vec<AttemptFailureKind> = failures.iter().map(|(_, failure)| failure.kind).collect();
        Some(Self {
            denied: *denied,
            was_tried: !kinds.is_empty(),
            kind: match (kinds.last(), denied) {
                (_, Some(Denied::Store)) => ErrorKind::Unavailable,
                (Some(_), _) => verdict(&kinds),
                (None, Some(Denied::Overspent)) => ErrorKind::InsufficientCredits,
                (None, None) if throttled.is_some() => ErrorKind::Unavailable,
                (None, None) => ErrorKind::TimedOut,
            },
            last: kinds.last().copied().unwrap_or(AttemptFailureKind::TimedOut),
            retry_after: failures
                .iter()
                .filter_map(|(_, failure)| failure.retry_after)
                .min()
                .or(throttled.as_ref().map(|endpoints| endpoints.retry_in)),
            throttled: throttled.clone(),
            candidate: candidate.clone(),
        })
    }
}

impl Failure {
    /// True where no provider failed, or nobody knows whether there is money: then that is what the caller is told.
    fn is_for_want_of_money(&self) -> bool {
        !self.was_tried || self.denied == Some(Denied::Store)
    }
}

/// What the caller gets, and who served it; what one part lacks fails the request, unless the caller takes the rest.
fn merged(request: &DecisionRequest, routed: &mut Arc<Routed>) -> Result<(Answers, Served), Option<Box<Failure>>> {
    let mut failures: Vec<Failure> = routed.ends.iter().filter_map(Failure::of).collect();
    // Nobody takes what there is where the caller has left.
    let gone = failures.iter().position(|failure| failure.kind == ErrorKind::CallerGone);
    let failure = (!failures.is_empty()).then(|| failures.swap_remove(gone.unwrap_or(0)));
    match (failure, Served::by(routed), &request.inquiry.questions.typed) {
        // What came in one piece leaves as it came.
        (None, Some(served), typed) if typed.is_none() || routed.ends.len() == 1 => {
            answers(routed).pop().map(|answers| (answers, served)).ok_or(None)
        }
        (None, Some(served), Some(typed)) => {
            Ok((Answers::merge(typed, answers(routed), ErrorKind::ProviderFailure), served))
        }
        (Some(failure), Some(served), Some(typed)) if request.partial && gone.is_none() => {
            Ok((Answers::merge(typed, answers(routed), failure.kind), served))
        }
        (Some(failure), ..) => Err(Some(Box::new(failure))),
        // Planning leaves no request without a part, and each part ends.
        (None, ..) => Err(None),
    }
}

/// What each part answered, which is taken out of a call that nobody shares.
fn answers(routed: &mut Arc<Routed>) -> Vec<Answers> {
    let Some(own) = Arc::get_mut(routed) else { return routed.ends.iter().map(answers_of).collect() };
    let ends = std::mem::take(&mut own.ends).into_iter();
    ends.map(|end| if let PartEnd::Answered { answers, .. } = end { answers } else { answers_of(&end) }).collect()
}

/// What a part answered; each of its questions is told as unanswered, by its own failure, where it did not.
fn answers_of(end: &PartEnd) -> Answers {
    match end {
        PartEnd::Answered { answers, .. } => answers.clone(),
        PartEnd::Failed { inquiry, .. } => {
            let kind = Failure::of(end).map_or(ErrorKind::ProviderFailure, |failure| failure.kind);
            Answers::unanswered(inquiry.questions.typed.as_deref().unwrap_or_default(), kind)
        }
    }
}

/// Who served, or was tried last.
struct Served {
    model: ModelId,
    /// Display names, each once.
    names: String,
    /// Slugs, each once, joined by commas, which no slug has.
    slugs: String,
    prices: crate::routing::TokenPrices,
}

impl Served {
    fn by_one(candidate: &Candidate) -> Self {
        Self {
            model: candidate.model.clone(),
            names: candidate.endpoint.provider_name.clone(),
            slugs: candidate.endpoint.provider.as_str().to_owned(),
            prices: candidate.prices,
        }
    }

    fn by(routed: &Routed) -> Option<Self> {
        let answered = routed.ends.iter().filter(|end| matches!(end, PartEnd::Answered { .. }));
        let mut candidates = answered.map(PartEnd::candidate);
        let mut served = Self::by_one(candidates.next()?);
        for candidate in candidates {
            let slug = candidate.endpoint.provider.as_str();
            if served.slugs.split(',').all(|other| other != slug) {
                served.names.push_str(", ");
                served.names.push_str(&candidate.endpoint.provider_name);
                served.slugs.push(',');
                served.slugs.push_str(slug);
            }
        }
        Some(served)
    }
}

/// What a request used and costs.
struct Bill {
    input_tokens: u64,
    output_tokens: u64,
    token_source: TokenSource,
    cost: Usd,
}

impl Bill {
    /// The tokens of all attempts times the prices of each, summed exactly, rounded up once, then shared. `None` where
    /// that leaves the range of money.
    fn of(attempts: &[AttemptRecord], share: Share) -> Option<Self> {
        let mut sum = Charge::ZERO;
        let (mut input_tokens, mut output_tokens) = (0_u64, 0_u64);
        let mut token_source = TokenSource::Reported;
        for attempt in attempts {
            sum = sum.checked_add(attempt.prices.charge(attempt.input_tokens, attempt.output_tokens)?)?;
            input_tokens = input_tokens.checked_add(attempt.input_tokens)?;
            output_tokens = output_tokens.checked_add(attempt.output_tokens)?;
            if attempt.token_source == TokenSource::Bound {
                token_source = TokenSource::Bound;
            }
        }
        Some(Self { input_tokens, output_tokens, token_source, cost: share.of(sum.round_up()?) })
    }
}
