//! Merges the outcomes of sub-requests into the answers or the failure of a request, and sums its tokens and its cost.
//! Pure.

use std::sync::Arc;
use std::time::Duration;

use super::request::HoldRejection;
use super::staged::{StagedAnswer, StagedAnswers};
use crate::decision::DecisionRequest;
use crate::error::ErrorKind;
use crate::model::ModelId;
use crate::money::{Charge, Usd};
use crate::pricing::TokenPrices;
use crate::question::{Answer, Answers, ProviderInput, Question};
use crate::routing::{
    AttemptFailure, AttemptFailureKind, Candidate, Endpoint, FailureCause, ThrottledEndpoints, verdict,
};
use crate::usage::{AttemptRecord, UsageShare, UsageSource};

/// The outcome of a sub-request.
#[derive(Debug)]
pub(super) enum SubRequestOutcome {
    Answered {
        answers: Answers,
        candidate: Candidate,
    },
    /// Every attempt failed, in this order. Without `failures`, no attempt was made.
    Failed {
        input: Arc<ProviderInput>,
        failures: Vec<(Arc<Endpoint>, AttemptFailure)>,
        /// The endpoints that were not tried because of a back-off.
        throttled: Option<ThrottledEndpoints>,
        /// The reason why no further attempt was made.
        rejection: Option<HoldRejection>,
        /// The candidate that was tried last, or would have been first.
        candidate: Candidate,
    },
}

impl SubRequestOutcome {
    fn candidate(&self) -> &Candidate {
        match self {
            Self::Answered { candidate, .. } | Self::Failed { candidate, .. } => candidate,
        }
    }

    /// Returns the kind of the last failure.
    pub(super) fn last_failure(&self) -> Option<AttemptFailureKind> {
        let Self::Failed { failures, .. } = self else { return None };
        failures.last().map(|(_, failure)| failure.kind)
    }
}

/// The outcome of a call: of all sub-requests of a request.
#[derive(Debug)]
pub(super) struct CallOutcome {
    /// In the order of the sub-requests, without cancelled ones.
    pub(super) outcomes: Vec<SubRequestOutcome>,
    /// The answers of the stages; `None` without a cascade.
    pub(super) staged: Option<StagedAnswers>,
    pub(super) attempts: Arc<[AttemptRecord]>,
    /// The cause of each attempt; empty without any.
    pub(super) causes: Box<[Option<FailureCause>]>,
    /// The end of the call, on the monotonic clock.
    pub(super) ended: Duration,
}

/// A sub-request that failed, and with it the request.
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    pub(super) rejection: Option<HoldRejection>,
    /// True if a provider was called and failed.
    was_tried: bool,
    pub(super) last: AttemptFailureKind,
    pub(super) retry_after: Option<Duration>,
    pub(super) throttled: Option<ThrottledEndpoints>,
    pub(super) candidate: Candidate,
}

impl Failure {
    fn of(outcome: &SubRequestOutcome) -> Option<Self> {
        let SubRequestOutcome::Failed { failures, throttled, rejection, candidate, .. } = outcome else { return None };
        let kinds: Vec<AttemptFailureKind> = failures.iter().map(|(_, failure)| failure.kind).collect();
        let kind = match (kinds.last(), rejection) {
            (_, Some(HoldRejection::Store)) => ErrorKind::Unavailable,
            (Some(_), _) => verdict(&kinds),
            (None, Some(HoldRejection::LimitExceeded)) => ErrorKind::InsufficientCredits,
            (None, None) if throttled.is_some() => ErrorKind::Unavailable,
            (None, None) => ErrorKind::TimedOut,
        };
        let waits = failures.iter().filter_map(|(_, failure)| failure.retry_after);
        let wait = waits.min().or(throttled.as_ref().map(|endpoints| endpoints.retry_in));
        Some(Self {
            kind,
            rejection: *rejection,
            was_tried: !kinds.is_empty(),
            last: kinds.last().copied().unwrap_or(AttemptFailureKind::TimedOut),
            // An invalid request is rejected after any wait.
            retry_after: wait.filter(|_| kind != ErrorKind::InvalidRequest),
            throttled: throttled.clone(),
            candidate: candidate.clone(),
        })
    }

    /// Returns true if the rejected hold is the error of the request: no provider failed, or the ledger failed.
    pub(super) fn is_rejected_hold(&self) -> bool {
        !self.was_tried || self.rejection == Some(HoldRejection::Store)
    }
}

/// Returns the answers of a request and the providers that served it. One failed sub-request fails the request, unless
/// the client accepts partial answers. The error is `None` for a call without an answer or a failure.
pub(super) fn merge(
    request: &DecisionRequest,
    call: &mut Arc<CallOutcome>,
) -> Result<(Answers, Served), Option<Box<Failure>>> {
    let mut failures: Vec<Failure> = call.outcomes.iter().filter_map(Failure::of).collect();
    // A client that disconnected accepts no partial answers.
    let disconnected = failures.iter().position(|failure| failure.kind == ErrorKind::ClientDisconnected);
    let failure = (!failures.is_empty()).then(|| failures.swap_remove(disconnected.unwrap_or(0)));
    let served = Served::of(call);
    // The answers of a single sub-request need no merge: the first stage asks every question.
    if failure.is_none() && call.outcomes.len() == 1 {
        return take_answers(call).pop().zip(served).ok_or(None);
    }
    if let Some(staged) = &call.staged {
        return merge_staged(request, staged, (failure, disconnected.is_some()), served);
    }
    match (failure, served, &request.provider_input.questions.typed) {
        (None, Some(served), Some(typed)) => {
            Ok((Answers::merge(typed, take_answers(call), ErrorKind::ProviderFailure), served))
        }
        (Some(failure), Some(served), Some(typed)) if request.partial && disconnected.is_none() => {
            Ok((Answers::merge(typed, take_answers(call), failure.kind), served))
        }
        (Some(failure), ..) => Err(Some(Box::new(failure))),
        // Planning leaves no request without a sub-request, and each of them has an outcome.
        (None, ..) => Err(None),
    }
}

/// Returns the answers of the stages. A stage that failed does not fail the request if another one answered.
fn merge_staged(
    request: &DecisionRequest,
    staged: &StagedAnswers,
    (failure, is_disconnected): (Option<Failure>, bool),
    served: Option<Served>,
) -> Result<(Answers, Served), Option<Box<Failure>>> {
    let kind = failure.as_ref().map_or(ErrorKind::ProviderFailure, |failure| failure.kind);
    let is_complete = !is_disconnected && (request.partial || staged.iter().all(Option::is_some));
    match (served.filter(|_| is_complete), &request.provider_input.questions.typed) {
        (Some(served), Some(typed)) => {
            let answer = |(question, staged): (&Question, &Option<StagedAnswer>)| {
                staged.as_ref().map_or_else(|| Answer::unanswered(&question.name, kind), |found| found.answer.clone())
            };
            Ok((Answers::from_typed(typed.iter().zip(staged).map(answer).collect()), served))
        }
        _ => Err(failure.map(Box::new)),
    }
}

/// Takes the answers out of a call that is not shared; clones them otherwise.
fn take_answers(call: &mut Arc<CallOutcome>) -> Vec<Answers> {
    let Some(own) = Arc::get_mut(call) else { return call.outcomes.iter().map(answers_of).collect() };
    let outcomes = std::mem::take(&mut own.outcomes).into_iter();
    let take = |outcome| match outcome {
        SubRequestOutcome::Answered { answers, .. } => answers,
        failed @ SubRequestOutcome::Failed { .. } => answers_of(&failed),
    };
    outcomes.map(take).collect()
}

/// Returns the answers of a sub-request. Each question of one that failed is unanswered, by its own failure.
fn answers_of(outcome: &SubRequestOutcome) -> Answers {
    match outcome {
        SubRequestOutcome::Answered { answers, .. } => answers.clone(),
        SubRequestOutcome::Failed { input, .. } => {
            let kind = Failure::of(outcome).map_or(ErrorKind::ProviderFailure, |failure| failure.kind);
            Answers::unanswered(input.questions.typed.as_deref().unwrap_or_default(), kind)
        }
    }
}

/// The providers that served a request, or the one that was tried last.
pub(super) struct Served {
    pub(super) model: ModelId,
    /// Display names, each once.
    pub(super) names: String,
    /// Slugs, each once, joined by commas, which no slug contains.
    pub(super) slugs: String,
    pub(super) prices: TokenPrices,
}

impl Served {
    pub(super) fn by_one(candidate: &Candidate) -> Self {
        Self {
            model: candidate.model.clone(),
            names: candidate.endpoint.provider_name.clone(),
            slugs: candidate.endpoint.provider.as_str().to_owned(),
            prices: candidate.prices,
        }
    }

    fn of(call: &CallOutcome) -> Option<Self> {
        let answered = call.outcomes.iter().filter(|outcome| matches!(outcome, SubRequestOutcome::Answered { .. }));
        let mut candidates = answered.map(SubRequestOutcome::candidate);
        let first = candidates.next()?;
        // With stages, the model of the last one whose answer is returned.
        let returned = call.staged.iter().flatten().flatten().max_by_key(|answer| answer.stage);
        let model = returned.map_or(first, |answer| &answer.candidate);
        let mut served = Self { model: model.model.clone(), prices: model.prices, ..Self::by_one(first) };
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

/// The tokens of a call, and the share of its cost that a request pays.
pub(super) struct RequestCost {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) usage_source: UsageSource,
    pub(super) amount: Usd,
    pub(super) share: UsageShare,
}

impl RequestCost {
    /// Sums the exact charges of all attempts, rounds up once, then takes the share. Returns `None` if the sum exceeds
    /// the range of money.
    pub(super) fn of(attempts: &[AttemptRecord], share: UsageShare) -> Option<Self> {
        let mut sum = Charge::ZERO;
        let (mut input_tokens, mut output_tokens) = (0_u64, 0_u64);
        let mut usage_source = UsageSource::None;
        for attempt in attempts {
            sum = sum.checked_add(attempt.prices.charge(attempt.input_tokens, attempt.output_tokens)?)?;
            input_tokens = input_tokens.checked_add(attempt.input_tokens)?;
            output_tokens = output_tokens.checked_add(attempt.output_tokens)?;
            usage_source = usage_source.combine(attempt.usage_source);
        }
        let amount = share.apply(sum.round_up()?);
        Some(Self { input_tokens, output_tokens, usage_source, amount, share })
    }
}
