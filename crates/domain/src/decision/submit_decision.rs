//! Operation 2 of the interface: questions to a model, over the endpoints that serve it.

use std::sync::Arc;
use std::time::Duration;

use super::{
    CallerPresence, Decision, DecisionProvider, DecisionRequest, FailedAttempts, ProviderAnswer, ProviderCall,
    RoutingFunnel, SubmitDecisionError, AnswerRules, Answers,
};
use crate::api_key::InferenceKey;
use crate::error::ErrorKind;
use crate::ids::{DecisionId, RequestId};
use crate::model::{Catalogue, DynamicVariant, Model, ModelId};
use crate::money::{Charge, Usd};
use crate::routing::{
    AttemptFailure, AttemptFailureKind, Endpoint, EndpointDirectory, TokenPrices, order_candidates, verdict,
};
use crate::system::{Clock, IdGenerator};
use crate::usage::{AttemptRecord, TokenSource, UsageOutcome, UsageRecord, UsageRepository};

/// The ports of [`SubmitDecision`].
pub struct SubmitDecisionPorts {
    /// Which models there are.
    pub catalogue: Arc<dyn Catalogue>,
    /// Who makes attempts.
    pub provider: Arc<dyn DecisionProvider>,
    /// Where usage is recorded.
    pub usage: Arc<dyn UsageRepository>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn IdGenerator>,
}

/// Submits a Decisions request: resolves the model, tries its endpoints in order, records the usage, answers.
///
/// The usage record is durable before the answer is returned. When the caller leaves, the attempt under way is given
/// up, but the record is still written; run it in a task that outlives the caller.
pub struct SubmitDecision {
    ports: SubmitDecisionPorts,
    endpoints: Arc<EndpointDirectory>,
    deadline: Duration,
}

/// How many names an unknown model is answered with.
const NEAREST: usize = 3;

impl SubmitDecision {
    /// Wires the ports; `deadline` is how long a request may take with all its attempts.
    pub fn new(ports: SubmitDecisionPorts, endpoints: Arc<EndpointDirectory>, deadline: Duration) -> Self {
        Self { ports, endpoints, deadline }
    }

    /// Answers the request, or says why not.
    pub async fn execute(
        &self,
        key: &InferenceKey,
        request_id: RequestId,
        request: DecisionRequest,
        caller: Arc<dyn CallerPresence>,
    ) -> Result<Decision, SubmitDecisionError> {
        let request = Arc::new(request);
        let target = self.resolve(&request.model)?;
        let candidates = Self::candidates(&target, &request)?;
        let id = self.ports.ids.decision_id();
        let began = Began { at: self.ports.clock.now(), monotonic: self.ports.clock.monotonic() };
        let (end, attempts) = self.attempt_in_turn(&candidates, &request, &caller, began.monotonic).await;
        let draft = RecordDraft { id, key, request_id, request: &request, model: &target.model, began, attempts };
        match end {
            End::Answered(endpoint, prices, answer, answers) => self.settle(draft, &endpoint, prices, answer, answers).await,
            End::Failed(failures) => self.give_up(draft, &candidates, &failures).await,
        }
    }

    /// What the caller's name for the model means: a row of the catalogue, or a sandbox model by its own name.
    fn resolve(&self, name: &str) -> Result<Target, SubmitDecisionError> {
        let snapshot = self.ports.catalogue.snapshot();
        if let Some(found) = snapshot.resolve(name) {
            return Target::from_row(&found.model, found.dynamic, self.endpoints.for_model(&found.model));
        }
        match self.endpoints.sandbox(name) {
            Some(endpoint) => Ok(Target {
                model: endpoint.model.clone(),
                dynamic: None,
                row_prices: None,
                endpoints: vec![Arc::clone(endpoint)],
            }),
            None => Err(SubmitDecisionError::UnknownModel {
                nearest: snapshot.nearest(name, NEAREST, Model::serves_decisions),
            }),
        }
    }

    /// The endpoints to try, in order, and what each charges.
    fn candidates(target: &Target, request: &DecisionRequest) -> Result<Vec<Candidate>, SubmitDecisionError> {
        let mut funnel: RoutingFunnel = vec![("model", target.endpoints.len())];
        let priced: Vec<Candidate> = target
            .endpoints
            .iter()
            .filter_map(|endpoint| Some((Arc::clone(endpoint), endpoint.prices.or(target.row_prices)?)))
            .collect();
        funnel.push(("price", priced.len()));
        if priced.is_empty() {
            return Err(SubmitDecisionError::NoEndpoint { model: target.model.clone(), funnel });
        }
        let opaque = request.inquiry.questions.typed.is_none();
        let able: Vec<Candidate> =
            priced.into_iter().filter(|(endpoint, _)| !opaque || endpoint.wire.takes_opaque_questions()).collect();
        if able.is_empty() {
            return Err(SubmitDecisionError::OpaqueQuestions(target.model.clone()));
        }
        let able = able.into_iter().map(|(endpoint, prices)| crate::routing::Candidate { endpoint, prices }).collect();
        let mut ordered: Vec<Candidate> =
            order_candidates(able, target.dynamic).into_iter().map(|c| (c.endpoint, c.prices)).collect();
        if !request.preferences.allow_fallbacks {
            ordered.truncate(1);
        }
        Ok(ordered)
    }

    async fn attempt_in_turn(
        &self,
        candidates: &[Candidate],
        request: &Arc<DecisionRequest>,
        caller: &Arc<dyn CallerPresence>,
        began: Duration,
    ) -> (End, Vec<AttemptRecord>) {
        let mut failures: Vec<(Arc<Endpoint>, AttemptFailure)> = Vec::new();
        let mut attempts = Vec::new();
        for (endpoint, prices) in candidates {
            // A provider that refused the request would refuse it again; another one has other limits.
            let refused = |(tried, failure): &(Arc<Endpoint>, AttemptFailure)| {
                tried.provider == endpoint.provider && failure.kind == AttemptFailureKind::Refused
            };
            if failures.iter().any(refused) {
                continue;
            }
            let started = self.ports.clock.monotonic();
            let left = self.deadline.saturating_sub(started.saturating_sub(began));
            if left.is_zero() {
                break;
            }
            let call = ProviderCall {
                endpoint: Arc::clone(endpoint),
                inquiry: Arc::clone(&request.inquiry),
                timeout: endpoint.attempt_timeout.min(left),
                caller: Arc::clone(caller),
            };
            let outcome = self.ports.provider.decide(call).await.and_then(|answer| {
                let answers = Answers::check(&request.inquiry.questions, &answer.answers, AnswerRules::of(endpoint))
                    .map_err(|fault| AttemptFailure::new(AttemptFailureKind::Broken, fault))?;
                Ok((answer, answers))
            });
            let failure = outcome.as_ref().err();
            attempts.push(AttemptRecord {
                provider: endpoint.provider.to_string(),
                upstream_model: endpoint.upstream_model.clone(),
                outcome: failure.map_or("completed", |failure| failure.kind.as_str()).to_owned(),
                upstream_status: failure.and_then(|failure| failure.upstream_status),
                latency: self.ports.clock.monotonic().saturating_sub(started),
                model: endpoint.model.clone(),
                part: 0,
                began: started.saturating_sub(began),
                input_tokens: 0,
                output_tokens: 0,
                token_source: TokenSource::Reported,
                prices: *prices,
            });
            match outcome {
                Ok((answer, answers)) => return (End::Answered(Arc::clone(endpoint), *prices, answer, answers), attempts),
                Err(failure) => {
                    tracing::info!(
                        provider.slug = %endpoint.provider,
                        upstream.model = endpoint.upstream_model,
                        attempt.outcome = failure.kind.as_str(),
                        upstream.status = failure.upstream_status,
                        detail = failure.detail,
                        "an attempt failed"
                    );
                    let last =
                        matches!(failure.kind, AttemptFailureKind::CallerGone | AttemptFailureKind::Simulated(_));
                    failures.push((Arc::clone(endpoint), failure));
                    if last {
                        break;
                    }
                }
            }
        }
        (End::Failed(failures.into_iter().map(|(_, failure)| failure).collect()), attempts)
    }

    async fn settle(
        &self,
        draft: RecordDraft<'_>,
        endpoint: &Endpoint,
        prices: TokenPrices,
        answer: ProviderAnswer,
        answers: Answers,
    ) -> Result<Decision, SubmitDecisionError> {
        let (input_tokens, output_tokens, token_source) = match answer.usage {
            Some(usage) => (usage.input_tokens, usage.output_tokens, TokenSource::Reported),
            // No token is shorter than a byte, so this bounds what the provider can have counted.
            None => (answer.sent_bytes.saturating_add(endpoint.token_overhead), 0, TokenSource::Bound),
        };
        let cost = charge(prices, input_tokens, output_tokens).ok_or(SubmitDecisionError::ChargeOutOfRange)?;
        let decision = Decision {
            id: draft.id.clone(),
            inquiry: Arc::clone(&draft.request.inquiry),
            answers,
            model: draft.model.clone(),
            provider: endpoint.provider_name.clone(),
            input_tokens,
            output_tokens,
            token_source,
            cost,
            attempts: draft.attempts.clone(),
            funnel: Vec::new(),
        };
        let record = UsageRecord {
            outcome: UsageOutcome::Completed,
            input_tokens,
            output_tokens,
            token_source,
            cost,
            ..self.record(draft, endpoint, prices)
        };
        self.ports.usage.record(record).await?;
        Ok(decision)
    }

    async fn give_up(
        &self,
        draft: RecordDraft<'_>,
        candidates: &[Candidate],
        failures: &[AttemptFailure],
    ) -> Result<Decision, SubmitDecisionError> {
        let kinds: Vec<AttemptFailureKind> = failures.iter().map(|failure| failure.kind).collect();
        let last_tried = draft.attempts.last().map(|attempt| attempt.provider.clone());
        let found =
            candidates.iter().rev().find(|(endpoint, _)| Some(endpoint.provider.as_str()) == last_tried.as_deref());
        let Some(((endpoint, prices), last)) = found.zip(kinds.last().copied()) else {
            // The deadline was over before the first attempt.
            return Err(SubmitDecisionError::Attempts(FailedAttempts {
                id: draft.id,
                kind: ErrorKind::TimedOut,
                provider_name: candidates
                    .first()
                    .map(|(endpoint, _)| endpoint.provider_name.clone())
                    .unwrap_or_default(),
                attempts: Vec::new(),
                retry_after: None,
                last: AttemptFailureKind::TimedOut,
            }));
        };
        let failed = FailedAttempts {
            id: draft.id.clone(),
            kind: verdict(&kinds),
            provider_name: endpoint.provider_name.clone(),
            attempts: draft.attempts.clone(),
            retry_after: failures.iter().filter_map(|failure| failure.retry_after).min(),
            last,
        };
        let outcome = if failed.kind == ErrorKind::CallerGone { UsageOutcome::Cancelled } else { UsageOutcome::Failed };
        let record = UsageRecord { outcome, ..self.record(draft, endpoint, *prices) };
        self.ports.usage.record(record).await?;
        Err(SubmitDecisionError::Attempts(failed))
    }

    /// The record of a request that used nothing.
    fn record(&self, draft: RecordDraft<'_>, endpoint: &Endpoint, prices: TokenPrices) -> UsageRecord {
        UsageRecord {
            id: draft.id,
            workspace_id: draft.key.workspace_id(),
            api_key: draft.key.hash(),
            request_id: draft.request_id,
            requested_model: draft.request.model.clone(),
            model: draft.model.clone(),
            provider: endpoint.provider.to_string(),
            outcome: UsageOutcome::Failed,
            input_tokens: 0,
            output_tokens: 0,
            token_source: TokenSource::Reported,
            cost: Usd::ZERO,
            prices,
            attempts: draft.attempts,
            session_id: draft.request.session_id.clone(),
            trace: draft.request.trace.clone(),
            user: draft.request.user.clone(),
            created_at: draft.began.at,
            latency: self.ports.clock.monotonic().saturating_sub(draft.began.monotonic),
        }
    }
}

type Candidate = (Arc<Endpoint>, TokenPrices);

/// What the caller's name for the model means.
struct Target {
    model: ModelId,
    dynamic: Option<DynamicVariant>,
    row_prices: Option<TokenPrices>,
    endpoints: Vec<Arc<Endpoint>>,
}

impl Target {
    fn from_row(
        model: &Model,
        dynamic: Option<DynamicVariant>,
        endpoints: &[Arc<Endpoint>],
    ) -> Result<Self, SubmitDecisionError> {
        if !model.serves_decisions() {
            return Err(SubmitDecisionError::NotADecisionModel(model.id.clone()));
        }
        if model.pricing.is_variable() {
            return Err(SubmitDecisionError::VariablePrice(model.id.clone()));
        }
        let row_prices = TokenPrices { prompt: model.pricing.prompt, completion: model.pricing.completion };
        Ok(Self { model: model.id.clone(), dynamic, row_prices: Some(row_prices), endpoints: endpoints.to_vec() })
    }
}

enum End {
    Answered(Arc<Endpoint>, TokenPrices, ProviderAnswer, Answers),
    Failed(Vec<AttemptFailure>),
}

#[derive(Clone, Copy)]
struct Began {
    at: chrono::DateTime<chrono::Utc>,
    monotonic: Duration,
}

struct RecordDraft<'a> {
    id: DecisionId,
    key: &'a InferenceKey,
    request_id: RequestId,
    request: &'a DecisionRequest,
    model: &'a ModelId,
    began: Began,
    attempts: Vec<AttemptRecord>,
}

/// Tokens times exact prices, summed, then rounded up once.
fn charge(prices: TokenPrices, input_tokens: u64, output_tokens: u64) -> Option<Usd> {
    let sum = Charge::ZERO
        .checked_add(prices.prompt.times(input_tokens)?)?
        .checked_add(prices.completion.times(output_tokens)?)?;
    sum.round_up()
}

#[cfg(test)]
mod tests;
