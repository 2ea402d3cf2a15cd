//! One part of a request: its candidates in turn, a slow one raced by the next where the model is hedged.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::FuturesUnordered;

use super::attempt_log::{AttemptEnd, AttemptLog, Place};
use super::money::{Denied, Patience, total};
use super::plan::Part;
use super::purse::{Next, Purse};
use super::router::Router;
use crate::decision::{
    AnswerRules, Answers, CallerPresence, Hedging, Inquiry, ProviderAnswer, ProviderCall, ReportedUsage, SentBytes,
};
use crate::ids::WorkspaceId;
use crate::model::ModelId;
use crate::routing::{AttemptFailure, AttemptFailureKind, Candidate, Endpoint, ThrottledEndpoint, ThrottledEndpoints};

/// How a part ended.
#[derive(Debug)]
pub(super) enum PartEnd {
    Answered {
        answers: Answers,
        candidate: Candidate,
    },
    /// Every attempt failed, in this order; none was made where this is empty.
    Failed {
        /// What was asked.
        inquiry: Arc<Inquiry>,
        failures: Vec<(Arc<Endpoint>, AttemptFailure)>,
        /// The endpoints that were not asked because of a back-off.
        throttled: Option<ThrottledEndpoints>,
        /// Where another attempt could have been made, and there was no money for it.
        denied: Option<Denied>,
        /// Who was tried last, or would have been first.
        candidate: Candidate,
    },
}

/// What all parts of a request share.
pub(super) struct Course<'a> {
    pub(super) log: &'a AttemptLog<'a>,
    pub(super) purse: &'a Purse,
    pub(super) caller: &'a Arc<dyn CallerPresence>,
    pub(super) workspace: WorkspaceId,
    pub(super) began: Duration,
}

type Ended = (Place, Candidate, Result<Answers, AttemptFailure>);
type Attempt<'a> = BoxFuture<'a, Ended>;

/// Good answers that must have been measured before their percentiles say when an attempt is slow.
const ENOUGH_TO_HEDGE: u64 = 20;

impl Router {
    /// Tries the candidates of a part in turn. `None` where there are none at all, which planning rules out.
    pub(super) async fn ask_part(&self, part: &Part, number: u32, course: &Course<'_>) -> Option<PartEnd> {
        let mut asking = Asking {
            router: self,
            part,
            number,
            course,
            next: 0,
            failures: part.inherited.clone(),
            throttled: None,
            running: FuturesUnordered::new(),
            places: Vec::new(),
        };
        let mut last = part.candidates.first()?.clone();
        let mut hedged = false;
        loop {
            if asking.running.is_empty() {
                match asking.go_on().await {
                    Ok(true) => {}
                    Ok(false) => return Some(asking.failed(last, None)),
                    Err(denied) => return Some(asking.failed(last, Some(denied))),
                }
            }
            let hedge = if hedged { None } else { asking.hedge_after() };
            let ended = match hedge {
                None => asking.running.next().await,
                Some(after) => {
                    let wait = self.ports.timer.sleep(after);
                    match select(asking.running.next(), wait).await {
                        Either::Left((ended, _)) => ended,
                        Either::Right(_) => {
                            hedged = true;
                            asking.hedge().await
                        }
                    }
                }
            };
            let Some((place, candidate, outcome)) = ended else { continue };
            asking.places.retain(|running| *running != place);
            last = candidate.clone();
            match outcome {
                Ok(answers) => {
                    let now = self.ports.clock.monotonic();
                    // Before it is reckoned what they sent: until then they may send more.
                    asking.running.clear();
                    asking.places.iter().for_each(|lost| course.log.lose(*lost, now));
                    return Some(PartEnd::Answered { answers, candidate });
                }
                Err(failure) => {
                    let end = matches!(failure.kind, AttemptFailureKind::CallerGone | AttemptFailureKind::Simulated(_));
                    asking.failures.push((candidate.endpoint, failure));
                    if end {
                        return Some(asking.failed(last, None));
                    }
                }
            }
        }
    }
}

/// The attempts of one part.
struct Asking<'a> {
    router: &'a Router,
    part: &'a Part,
    number: u32,
    course: &'a Course<'a>,
    /// The place of the candidate that is tried next.
    next: usize,
    failures: Vec<(Arc<Endpoint>, AttemptFailure)>,
    throttled: Option<ThrottledEndpoints>,
    running: FuturesUnordered<Attempt<'a>>,
    places: Vec<Place>,
}

impl<'a> Asking<'a> {
    fn failed(self, candidate: Candidate, denied: Option<Denied>) -> PartEnd {
        let inquiry = Arc::clone(&self.part.inquiry);
        PartEnd::Failed { inquiry, failures: self.failures, throttled: self.throttled, denied, candidate }
    }

    /// Begins an attempt at the next candidate that may be tried and that there is money for; false where there is none,
    /// or no time.
    async fn go_on(&mut self) -> Result<bool, Denied> {
        let mut patience = Patience::new();
        // Where there was no money for one, there is none for any that costs as much.
        let mut beyond = None;
        while let Some(candidate) = self.pick(None) {
            let (router, course, part, number) = (self.router, self.course, self.part, self.number);
            let cost = || total(&[router.bound(candidate, number, &part.inquiry)]);
            if beyond.is_some_and(|beyond| cost() >= beyond) {
                continue;
            }
            let next = self.next(candidate, false);
            match course.purse.cover(router, &next, &mut patience, || course.log.most()).await {
                Ok(bound) if self.begin(candidate, bound) => return Ok(true),
                Ok(_) => {}
                Err(Denied::Overspent) => beyond = Some(cost()),
                Err(Denied::Store) => return Err(Denied::Store),
            }
        }
        if beyond.is_some() { Err(Denied::Overspent) } else { Ok(false) }
    }

    fn next(&self, candidate: &'a Candidate, is_optional: bool) -> Next<'a> {
        Next { candidate, inquiry: &self.part.inquiry, part: self.number, caller: self.course.caller, is_optional }
    }

    /// How much of the whole deadline is left; `None` where nothing is.
    fn time_left(&self, now: Duration) -> Option<Duration> {
        let left = self.router.settings.deadline.saturating_sub(now.saturating_sub(self.course.began));
        if left.is_zero() { None } else { Some(left) }
    }

    /// Whether an endpoint is in a back-off by now, which is noted. Chance was consulted when the candidates were chosen.
    fn is_backed_off(&mut self, endpoint: &Endpoint, now: Duration) -> bool {
        let backoff = self.router.ports.health.backoff(endpoint.index, self.course.workspace, now);
        let Some((retry_in, last_error)) = backoff else { return false };
        let provider = endpoint.provider.as_str().to_owned();
        ThrottledEndpoints::add(&mut self.throttled, ThrottledEndpoint { provider, last_error }, retry_in);
        true
    }

    /// The next candidate that may be tried, of that model if one is given; `None` where there is none, or no time.
    fn pick(&mut self, of: Option<&ModelId>) -> Option<&'a Candidate> {
        while let Some(candidate) = self.part.candidates.get(self.next) {
            if of.is_some_and(|model| candidate.model != *model) {
                return None;
            }
            self.next += 1;
            let endpoint = &candidate.endpoint;
            // A provider that refused the request would refuse it again; another one has other limits. What it refused
            // before the questions were asked in smaller parts says nothing of these.
            let refused = |(tried, failure): &(Arc<Endpoint>, AttemptFailure)| {
                tried.provider == endpoint.provider && failure.kind == AttemptFailureKind::Refused
            };
            if self.failures.iter().skip(self.part.inherited.len()).any(refused) {
                continue;
            }
            let now = self.router.ports.clock.monotonic();
            self.time_left(now)?;
            // Nothing is reserved for an endpoint that would not be asked.
            if self.is_backed_off(endpoint, now) {
                continue;
            }
            return Some(candidate);
        }
        None
    }

    /// Begins an attempt that is paid for, up to `bound` tokens; false where the endpoint is in a back-off by
    /// now, or the time is over.
    fn begin(&mut self, candidate: &'a Candidate, bound: u64) -> bool {
        let (router, endpoint) = (self.router, &candidate.endpoint);
        let now = router.ports.clock.monotonic();
        let Some(left) = self.time_left(now) else { return false };
        if self.is_backed_off(endpoint, now) {
            return false;
        }
        let sent = SentBytes::default();
        let place = self.course.log.begin(candidate, self.number, (sent.clone(), bound), now);
        self.course.purse.begun(self.number);
        self.places.push(place);
        let call = ProviderCall {
            endpoint: Arc::clone(endpoint),
            inquiry: Arc::clone(&self.part.inquiry),
            timeout: endpoint.attempt_timeout.min(left),
            caller: Arc::clone(self.course.caller),
            sent,
        };
        self.running.push(router.attempt(candidate.clone(), place, call, self.part, self.course));
        true
    }

    /// The candidate whose attempt began last.
    fn newest(&self) -> Option<&'a Candidate> {
        self.part.candidates.get(self.next.checked_sub(1)?)
    }

    /// Races the attempt under way by one at another endpoint of the same model: that it is slow is no reason to
    /// answer by another model, nor to be refused for want of money. Returns an attempt that ended in the meantime.
    async fn hedge(&mut self) -> Option<Ended> {
        let slow = self.newest()?;
        let before = self.next;
        let candidate = self.pick(Some(&slow.model))?;
        let next = self.next(candidate, true);
        let course = self.course;
        let mut patience = Patience::new();
        let covered = pin!(course.purse.cover(self.router, &next, &mut patience, || course.log.most()));
        match select(self.running.next(), covered).await {
            Either::Left((ended, _)) => {
                self.next = before;
                ended
            }
            Either::Right((Ok(bound), _)) => {
                self.begin(candidate, bound);
                None
            }
            Either::Right((Err(_), _)) => {
                self.next = before;
                None
            }
        }
    }

    /// After how long the attempt under way is raced by another one: only where its model is hedged, another candidate
    /// of that model is next, and it is known how long an answer usually takes.
    fn hedge_after(&self) -> Option<Duration> {
        let running = self.newest()?;
        let Hedging { after } = self.router.settings.options(&running.model).hedging?;
        let follows = self.part.candidates.get(self.next).is_some_and(|next| next.model == running.model);
        if self.running.len() != 1 || !follows {
            return None;
        }
        let now = self.router.ports.clock.monotonic();
        after.or_else(|| {
            let view = self.router.ports.health.view(running.endpoint.index, now);
            view.p95.filter(|_| view.answers_in_window >= ENOUGH_TO_HEDGE)
        })
    }
}

impl Router {
    fn attempt<'a>(
        &'a self,
        candidate: Candidate,
        place: Place,
        call: ProviderCall,
        part: &'a Part,
        course: &'a Course<'a>,
    ) -> Attempt<'a> {
        Box::pin(async move {
            let outcome = self.ports.provider.decide(call).await;
            let outcome = outcome.and_then(|answer| believed(&part.inquiry, &candidate, answer));
            let now = self.ports.clock.monotonic();
            let outcome = match outcome {
                Ok((answers, usage, sent_bytes)) => {
                    course.log.end(place, &AttemptEnd::Answered { usage, sent_bytes }, now);
                    Ok(answers)
                }
                Err(failure) => {
                    course.log.end(place, &AttemptEnd::Failed(&failure), now);
                    tell(&candidate.endpoint, &failure);
                    Err(failure)
                }
            };
            (place, candidate, outcome)
        })
    }
}

type Believed = (Answers, Option<ReportedUsage>, u64);

/// Checks an answer before it is believed.
fn believed(inquiry: &Inquiry, candidate: &Candidate, answer: ProviderAnswer) -> Result<Believed, AttemptFailure> {
    let ProviderAnswer { answers, usage, sent_bytes } = answer;
    let broken = |fault, usage| AttemptFailure {
        upstream_status: Some(200),
        sent_bytes,
        usage,
        ..AttemptFailure::new(AttemptFailureKind::Broken, fault)
    };
    if usage.is_some_and(|usage| !candidate.prices.can_charge(usage)) {
        return Err(broken("the usage is beyond any price", None));
    }
    match Answers::check(&inquiry.questions, &answers, AnswerRules::of(&candidate.endpoint)) {
        Ok(answers) => Ok((answers, usage, sent_bytes)),
        Err(fault) => Err(broken(fault, usage)),
    }
}

fn tell(endpoint: &Endpoint, failure: &AttemptFailure) {
    tracing::info!(
        provider.slug = %endpoint.provider,
        upstream.model = endpoint.upstream_model,
        attempt.outcome = failure.kind.as_str(),
        upstream.status = failure.upstream_status,
        detail = failure.detail,
        "an attempt failed"
    );
}

impl PartEnd {
    /// Who answered it, or was tried last.
    pub(super) fn candidate(&self) -> &Candidate {
        match self {
            Self::Answered { candidate, .. } | Self::Failed { candidate, .. } => candidate,
        }
    }
}
