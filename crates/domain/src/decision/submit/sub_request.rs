//! Runs one sub-request: tries its candidates in turn, and hedges a slow attempt.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::attempt::{EndedAttempt, RunningAttempt, RunningAttempts};
use super::attempt_budget::NextAttempt;
use super::call::{CallContext, CallRunner};
use super::outcome::SubRequestOutcome;
use super::plan::SubRequest;
use super::request::HoldRejection;
use crate::decision::{Hedging, ProviderCall, SentBytes};
use crate::model::ModelId;
use crate::routing::{AttemptFailure, AttemptFailureKind, Candidate, Endpoint, ThrottledEndpoint, ThrottledEndpoints};

/// The fewest measured answers whose percentiles can trigger a hedge.
const ENOUGH_TO_HEDGE: u64 = 20;

impl CallRunner {
    /// Tries the candidates of a sub-request in turn. Returns `None` without candidates, which planning excludes.
    pub(super) async fn run_sub_request(
        &self,
        sub_request: &SubRequest,
        call: &CallContext<'_>,
    ) -> Option<SubRequestOutcome> {
        let mut last = sub_request.candidates.first()?;
        let mut progress = Progress {
            runner: self,
            sub_request,
            call,
            next: 0,
            failures: sub_request.inherited.clone(),
            throttled: None,
            running: RunningAttempts::new(self, call.log),
        };
        let mut was_hedged = false;
        loop {
            if progress.running.is_empty() {
                match progress.begin_next().await {
                    Ok(true) => {}
                    Ok(false) => return Some(progress.failed(last, None)),
                    Err(rejection) => return Some(progress.failed(last, Some(rejection))),
                }
            }
            let hedge_delay = if was_hedged { None } else { progress.hedge_delay() };
            let ended = match hedge_delay {
                None => progress.running.next().await,
                Some(delay) => match select(progress.running.next(), self.time.sleep(delay)).await {
                    Either::Left((ended, _)) => ended,
                    Either::Right(_) => {
                        was_hedged = true;
                        progress.begin_hedge().await
                    }
                },
            };
            let Some((candidate, result)) = ended else { continue };
            last = candidate;
            match result {
                Ok(answers) => {
                    progress.running.cancel();
                    return Some(SubRequestOutcome::Answered { answers, candidate: candidate.clone() });
                }
                Err(failure) => {
                    let is_last = failure.kind.ends_request();
                    progress.failures.push((Arc::clone(&candidate.endpoint), failure));
                    if is_last {
                        return Some(progress.failed(last, None));
                    }
                }
            }
        }
    }
}

/// The attempts of one sub-request.
struct Progress<'a> {
    runner: &'a CallRunner,
    sub_request: &'a SubRequest,
    call: &'a CallContext<'a>,
    /// The position of the candidate that is tried next.
    next: usize,
    failures: Vec<(Arc<Endpoint>, AttemptFailure)>,
    throttled: Option<ThrottledEndpoints>,
    running: RunningAttempts<'a>,
}

impl<'a> Progress<'a> {
    fn failed(self, candidate: &Candidate, rejection: Option<HoldRejection>) -> SubRequestOutcome {
        let input = Arc::clone(&self.sub_request.input);
        let (failures, throttled, candidate) = (self.failures, self.throttled, candidate.clone());
        SubRequestOutcome::Failed { input, failures, throttled, rejection, candidate }
    }

    /// Begins an attempt at the next candidate that the hold covers. Returns false without a candidate or time.
    async fn begin_next(&mut self) -> Result<bool, HoldRejection> {
        let call = self.call;
        let mut waits = None;
        // A candidate that costs at least as much as a rejected one is rejected, too.
        let mut rejected_cost = None;
        let mut now = self.runner.time.monotonic();
        while let Some(candidate) = self.pick(None, now) {
            let next = self.next_attempt(candidate, false);
            let cost = || call.budget.cost(&next);
            if rejected_cost.is_some() && cost() >= rejected_cost {
                continue;
            }
            match call.budget.cover(&next, &mut waits, || call.log.max_cost()).await {
                Ok((bound, has_waited)) => {
                    if has_waited {
                        now = self.runner.time.monotonic();
                    }
                    if !has_waited || self.is_possible(&candidate.endpoint, now) {
                        self.begin(candidate, bound, now);
                        return Ok(true);
                    }
                }
                Err(HoldRejection::LimitExceeded) => {
                    rejected_cost = cost();
                    now = self.runner.time.monotonic();
                }
                Err(HoldRejection::Store) => return Err(HoldRejection::Store),
            }
        }
        if rejected_cost.is_some() { Err(HoldRejection::LimitExceeded) } else { Ok(false) }
    }

    fn next_attempt(&self, candidate: &'a Candidate, is_optional: bool) -> NextAttempt<'a> {
        let is_first = self.next == 1;
        NextAttempt {
            candidate,
            input: self.sub_request.input_for(&candidate.endpoint),
            number: self.sub_request.number,
            is_first,
            is_optional,
        }
    }

    /// Returns the remaining time of the deadline; zero if it has passed.
    fn time_left(&self, now: Duration) -> Duration {
        self.runner.settings.deadline.saturating_sub(now.saturating_sub(self.call.log.began))
    }

    /// Returns true if time is left and an endpoint is neither paused nor in a back-off, which is noted. Chance was
    /// consulted when the candidates were chosen.
    fn is_possible(&mut self, endpoint: &Endpoint, now: Duration) -> bool {
        if self.time_left(now).is_zero() {
            return false;
        }
        if self.runner.health.paused().contains(&endpoint.provider) {
            ThrottledEndpoints::add_paused(&mut self.throttled, &endpoint.provider);
            return false;
        }
        let backoff = self.runner.health.backoff(endpoint.index, self.call.log.workspace, now);
        let Some((retry_in, last_error)) = backoff else { return true };
        let provider = endpoint.provider.as_str().to_owned();
        ThrottledEndpoints::add(
            &mut self.throttled,
            ThrottledEndpoint { provider, is_paused: false, last_error },
            retry_in,
        );
        false
    }

    /// Takes the next candidate, of `model` if given. Returns `None` without a candidate or time.
    fn pick(&mut self, model: Option<&ModelId>, now: Duration) -> Option<&'a Candidate> {
        while let Some(candidate) = self.sub_request.candidates.get(self.next) {
            if model.is_some_and(|model| candidate.model != *model) {
                return None;
            }
            self.next += 1;
            let endpoint = &candidate.endpoint;
            // A provider that rejected the request would reject it again. Rejections of a larger sub-request do not
            // count.
            let rejected = |(tried, failure): &(Arc<Endpoint>, AttemptFailure)| {
                tried.provider == endpoint.provider && failure.kind == AttemptFailureKind::RejectedByProvider
            };
            if self.failures.iter().skip(self.sub_request.inherited.len()).any(rejected) {
                continue;
            }
            // Checked before holding money for the endpoint.
            if self.is_possible(endpoint, now) {
                return Some(candidate);
            }
        }
        None
    }

    /// Begins an attempt that the hold covers up to `bound` tokens.
    fn begin(&mut self, candidate: &'a Candidate, bound: u64, now: Duration) {
        let (call, number, endpoint) = (self.call, self.sub_request.number, &candidate.endpoint);
        let input = self.sub_request.input_for(endpoint);
        let sent = SentBytes::default();
        let index = call.log.begin(candidate, number, (sent.clone(), bound), now);
        call.budget.begun(number);
        let provider_call = ProviderCall {
            endpoint: Arc::clone(endpoint),
            provider_input: Arc::clone(input),
            timeout: endpoint.attempt_timeout.min(self.time_left(now)),
            client: Arc::clone(call.client),
            sent,
        };
        let call = self.runner.provider.decide(provider_call);
        self.running.push(RunningAttempt { index, candidate, input, call });
    }

    /// Returns the candidate whose attempt began last.
    fn newest(&self) -> Option<&'a Candidate> {
        self.sub_request.candidates.get(self.next.checked_sub(1)?)
    }

    /// Begins a hedge at another endpoint of the same model, if its bound can be held at once: a slow attempt is no
    /// reason to answer by another model, nor to fail. Returns an attempt that ended meanwhile.
    async fn begin_hedge(&mut self) -> Option<EndedAttempt<'a>> {
        let slow = self.newest()?;
        let before = self.next;
        let candidate = self.pick(Some(&slow.model), self.runner.time.monotonic())?;
        let next = self.next_attempt(candidate, true);
        let call = self.call;
        let mut waits = None;
        let covered = pin!(call.budget.cover(&next, &mut waits, || call.log.max_cost()));
        match select(self.running.next(), covered).await {
            Either::Left((ended, _)) => {
                self.next = before;
                ended
            }
            Either::Right((Ok((bound, _)), _)) => {
                let now = self.runner.time.monotonic();
                if self.is_possible(&candidate.endpoint, now) {
                    self.begin(candidate, bound, now);
                }
                None
            }
            Either::Right((Err(_), _)) => {
                self.next = before;
                None
            }
        }
    }

    /// Returns the delay of a hedge. `None` if the model is not hedged, has no further candidate, or has too few
    /// measured answers.
    fn hedge_delay(&self) -> Option<Duration> {
        let running = self.newest()?;
        let Hedging { after } = self.runner.settings.options(&running.model).hedging?;
        let follows = self.sub_request.candidates.get(self.next).is_some_and(|next| next.model == running.model);
        if self.running.len() != 1 || !follows {
            return None;
        }
        after.or_else(|| {
            let view = self.runner.health.view(running.endpoint.index, self.runner.time.monotonic());
            view.p95.filter(|_| view.answers_in_window >= ENOUGH_TO_HEDGE)
        })
    }
}
