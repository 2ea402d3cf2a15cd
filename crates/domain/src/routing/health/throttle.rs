//! Adaptive throttling of one endpoint: the admission of an attempt, and the list of endpoints that rejected one.

use std::fmt;
use std::time::Duration;

use super::observation::{AttemptError, FailureClass, Observation};
use super::window::{Counts, Scope, TopTwo, WorkspaceScope, Workspaces};
use super::{AttemptReport, HealthPolicy};
use crate::ids::WorkspaceId;
use crate::routing::ProviderSlug;
use crate::system::Randomness;

/// The rejection probability from which an endpoint is reported as throttled. Lower values fluctuate by chance.
const SHOWN_FROM: f64 = 0.1;

/// Returns the rejection probability of a request: `max(0, (requests - k * accepts) / (requests + 1))`, at most 1.
pub fn rejection_probability(requests: f64, accepts: f64, k: f64) -> f64 {
    let probability = (requests - k * accepts) / (requests + 1.0);
    // Not `clamp`, which would keep the NaN of extreme parameters.
    if probability > 0.0 { probability.min(1.0) } else { 0.0 }
}

/// The throttling of an endpoint at one point in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThrottleView {
    /// True if requests of all workspaces are rejected: during a back-off, or with a probability of 10 % and more.
    pub throttled: bool,
    /// The number of workspaces that are throttled, in the same sense, because of their own requests.
    pub throttled_workspaces: u32,
    /// The probability with which a request of any workspace is rejected.
    pub rejection_probability: f64,
    /// The remaining back-off of all workspaces.
    pub retry_in: Option<Duration>,
    /// The share of successful attempts over the window and all workspaces, 0 to 1; `None` without an attempt.
    pub accept_rate: Option<f64>,
    /// The last failure that any workspace met.
    pub last_error: Option<AttemptError>,
    /// True if the last attempt failed: the last failure is later than the last success.
    pub last_attempt_failed: bool,
}

/// The throttle of one endpoint.
#[derive(Debug, Default)]
pub(super) struct EndpointThrottle {
    all: Scope,
    workspaces: Workspaces,
    /// The end of the back-off after rejected credentials.
    credentials_until: Duration,
    /// The ends of the back-offs that the provider asked workspaces for.
    backoffs: TopTwo,
    /// The last content failures of workspaces.
    content_failures: TopTwo,
    last_attempt_failed: bool,
}

impl EndpointThrottle {
    /// Decides on one attempt. Draws a random number only if it needs one.
    pub(super) fn admit(
        &mut self,
        policy: &HealthPolicy,
        workspace: WorkspaceId,
        random: &dyn Randomness,
        now: Duration,
    ) -> Admission {
        if let Some(retry_in) = self.backoff(policy, workspace, now) {
            return Admission::Rejected { retry_in, last_error: self.last_error(workspace) };
        }
        let for_all = self.probability_for_all(policy, now);
        let mut rejection = Rejection::default();
        rejection.consider(policy, for_all, self.all.last_admitted, now);
        if let Some(own) = self.workspaces.get(workspace) {
            let probability = own.probability(policy, now);
            rejection.consider(policy, probability, own.scope.last_admitted, now);
        }
        if rejection.probability > 0.0 && unit(random) < rejection.probability {
            let retry_in = rejection.probe_in.min(policy.max_backoff);
            return Admission::Rejected { retry_in, last_error: self.last_error(workspace) };
        }
        self.all.last_admitted = self.all.last_admitted.max(Some(now));
        if let Some(own) = self.workspaces.get(workspace) {
            own.scope.last_admitted = own.scope.last_admitted.max(Some(now));
        }
        if rejection.probability > 0.0 { Admission::Throttled } else { Admission::Normal }
    }

    /// Returns the remaining back-off of a workspace.
    pub(super) fn backoff(&mut self, policy: &HealthPolicy, workspace: WorkspaceId, now: Duration) -> Option<Duration> {
        let own = self.workspaces.get(workspace).map(|own| own.backoff_until).unwrap_or_default();
        remaining(self.backoff_until().max(own), policy, now)
    }

    /// Returns the last failure of the workspace at this endpoint, or else of any workspace.
    pub(super) fn last_error(&mut self, workspace: WorkspaceId) -> Option<AttemptError> {
        self.workspaces.get(workspace).and_then(|own| own.scope.last_error).or(self.all.last_error)
    }

    /// Counts the end of an attempt.
    pub(super) fn report(&mut self, policy: &HealthPolicy, report: &AttemptReport, now: Duration) {
        let attempt = Counts { attempts: 1, ..Counts::default() };
        match report.observation {
            Observation::Neutral => {}
            Observation::Succeeded { .. } => {
                self.last_attempt_failed = false;
                self.count(policy, report, Counts { answered: 1, accepts: 1, ..attempt }, now);
            }
            Observation::Failed { class, error } => {
                match class {
                    FailureClass::Connection => {
                        self.all.last_failure_at = self.all.last_failure_at.max(Some(now));
                        self.count(policy, report, Counts { failures: 1, ..attempt }, now);
                    }
                    FailureClass::Credentials => self.reject_credentials(policy, now),
                    FailureClass::Content => self.count_content(policy, report, 1, now),
                    FailureClass::Timeout => self.count_content(policy, report, policy.timeout_weight.max(1), now),
                    FailureClass::Overloaded { retry_after } => {
                        self.count_content(policy, report, 1, now);
                        if let Some(wait) = policy.backoff(retry_after) {
                            let until = now.saturating_add(wait);
                            self.backoffs.note(report.workspace, until);
                            let own = self.workspaces.see(policy, report.workspace, now);
                            own.backoff_until = own.backoff_until.max(until);
                        }
                    }
                }
                self.last_attempt_failed = true;
                self.all.last_error = Some(error);
                let own = self.workspaces.see(policy, report.workspace, now);
                own.scope.last_error = Some(error);
            }
        }
    }

    /// Returns true if a workspace, or all workspaces, met a failure less than [`HealthPolicy::recent_failure`] ago.
    pub(super) fn failed_recently(&mut self, policy: &HealthPolicy, workspace: WorkspaceId, now: Duration) -> bool {
        let own = self.workspaces.get(workspace).and_then(|own| own.scope.last_failure_at);
        let last = self.all.last_failure_at.max(self.content_failures.second()).max(own);
        last.is_some_and(|at| now.saturating_sub(at) < policy.recent_failure)
    }

    pub(super) fn view(&mut self, policy: &HealthPolicy, now: Duration) -> ThrottleView {
        let retry_in = remaining(self.backoff_until(), policy, now);
        let rejection_probability = self.probability_for_all(policy, now);
        let is_throttled =
            |own: &mut WorkspaceScope| own.backoff_until > now || own.probability(policy, now) >= SHOWN_FROM;
        let throttled_workspaces = self.workspaces.iter_mut().map(is_throttled).filter(|throttled| *throttled).count();
        ThrottleView {
            throttled: retry_in.is_some() || rejection_probability >= SHOWN_FROM,
            throttled_workspaces: u32::try_from(throttled_workspaces).unwrap_or(u32::MAX),
            rejection_probability: if retry_in.is_some() { 1.0 } else { rejection_probability },
            retry_in,
            accept_rate: self.all.window.total(policy.throttle_window, now).accept_rate(),
            last_error: self.all.last_error,
            last_attempt_failed: self.last_attempt_failed,
        }
    }

    /// Returns the end of the back-off of all workspaces.
    fn backoff_until(&self) -> Duration {
        self.credentials_until.max(self.backoffs.second().unwrap_or_default())
    }

    fn probability_for_all(&mut self, policy: &HealthPolicy, now: Duration) -> f64 {
        let counts = self.all.window.total(policy.throttle_window, now);
        let with = |content: u64| {
            let accepts = u64::from(counts.accepts);
            probability(policy, accepts, u64::from(counts.failures).saturating_add(content))
        };
        // Most endpoints are healthy even if every failure counts: then the single workspaces are not read.
        if with(u64::from(counts.content)) > 0.0 { with(self.workspaces.content(policy, now).shared()) } else { 0.0 }
    }

    fn count_content(&mut self, policy: &HealthPolicy, report: &AttemptReport, weight: u32, now: Duration) {
        self.workspaces.content_changes();
        self.count(policy, report, Counts { attempts: 1, content: weight, ..Counts::default() }, now);
        self.content_failures.note(report.workspace, now);
    }

    fn count(&mut self, policy: &HealthPolicy, report: &AttemptReport, counts: Counts, now: Duration) {
        self.all.window.add(counts, policy.throttle_window, now);
        let own = &mut self.workspaces.see(policy, report.workspace, now).scope;
        own.window.add(counts, policy.throttle_window, now);
        // A new workspace has just made an attempt.
        own.last_admitted = own.last_admitted.max(Some(report.began));
        if counts.answered == 0 {
            own.last_failure_at = own.last_failure_at.max(Some(now));
        }
    }

    /// Clears earlier accepts, so that only probes are sent after the back-off.
    fn reject_credentials(&mut self, policy: &HealthPolicy, now: Duration) {
        self.all.window.forget_requests();
        let counts = Counts { attempts: 1, failures: policy.min_requests.max(1), ..Counts::default() };
        self.all.window.add(counts, policy.throttle_window, now);
        self.all.last_failure_at = self.all.last_failure_at.max(Some(now));
        self.credentials_until = self.credentials_until.max(now.saturating_add(policy.credentials_backoff()));
    }
}

impl WorkspaceScope {
    fn probability(&mut self, policy: &HealthPolicy, now: Duration) -> f64 {
        let counts = self.scope.window.total(policy.throttle_window, now);
        let failures = u64::from(counts.failures).saturating_add(u64::from(counts.content));
        probability(policy, u64::from(counts.accepts), failures)
    }
}

fn probability(policy: &HealthPolicy, accepts: u64, failures: u64) -> f64 {
    let requests = accepts.saturating_add(failures);
    if requests < u64::from(policy.min_requests) {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "a probability needs no more than 53 bits")]
    let (requests, accepts) = (requests as f64, accepts as f64);
    rejection_probability(requests, accepts, policy.accept_multiplier)
}

/// The combined rejection of two throttles.
#[derive(Default)]
struct Rejection {
    /// The largest probability of the throttles without a due probe.
    probability: f64,
    /// The time until a probe is due for all of them.
    probe_in: Duration,
}

impl Rejection {
    fn consider(&mut self, policy: &HealthPolicy, probability: f64, last_admitted: Option<Duration>, now: Duration) {
        let probe_at = last_admitted.map(|at| at.saturating_add(policy.probe_interval)).unwrap_or_default();
        let probe_in = probe_at.saturating_sub(now);
        if probability > 0.0 && !probe_in.is_zero() {
            self.probability = self.probability.max(probability);
            self.probe_in = self.probe_in.max(probe_in);
        }
    }
}

fn remaining(until: Duration, policy: &HealthPolicy, now: Duration) -> Option<Duration> {
    until.checked_sub(now).filter(|left| !left.is_zero()).map(|left| left.min(policy.max_backoff))
}

/// Draws a number from 0 (inclusive) to 1 (exclusive).
fn unit(random: &dyn Randomness) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "the upper 53 bits are exact")]
    let unit = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    unit
}

/// The decision on one attempt at one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Admission {
    /// The endpoint is not throttled, or this attempt is a due probe: it keeps its position in the order.
    Normal,
    /// The endpoint is throttled and the attempt was admitted by chance: endpoints that are not throttled come first.
    Throttled,
    /// The endpoint is throttled and the attempt was rejected.
    Rejected {
        /// The time until the back-off ends or the next probe is due, at most [`super::HealthPolicy::max_backoff`].
        retry_in: Duration,
        /// The last failure of the workspace at this endpoint, or else of any workspace.
        last_error: Option<AttemptError>,
    },
}

/// An endpoint that rejected an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThrottledEndpoint {
    /// The slug of the provider.
    pub provider: String,
    /// True if the operator paused the provider.
    pub is_paused: bool,
    /// The last known failure.
    pub last_error: Option<AttemptError>,
}

/// The wait that a client is told for a paused provider; the end of a pause is unknown.
const PAUSE_RETRY: Duration = Duration::from_mins(1);

/// The endpoints that rejected an attempt, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThrottledEndpoints {
    /// The endpoints, in the order of their rejections.
    pub endpoints: Vec<ThrottledEndpoint>,
    /// The shortest wait of all of them.
    pub retry_in: Duration,
}

/// The most endpoints named in a message.
const MAX_NAMED: usize = 3;

impl ThrottledEndpoints {
    /// Creates a list of one endpoint.
    pub fn new(endpoint: ThrottledEndpoint, retry_in: Duration) -> Self {
        Self { endpoints: vec![endpoint], retry_in }
    }

    /// Adds an endpoint of a paused provider to a list that may not exist yet.
    pub fn add_paused(list: &mut Option<Self>, provider: &ProviderSlug) {
        let provider = provider.as_str().to_owned();
        Self::add(list, ThrottledEndpoint { provider, is_paused: true, last_error: None }, PAUSE_RETRY);
    }

    /// Adds an endpoint to a list that may not exist yet.
    pub fn add(list: &mut Option<Self>, endpoint: ThrottledEndpoint, retry_in: Duration) {
        match list {
            None => *list = Some(Self::new(endpoint, retry_in)),
            Some(list) => {
                list.retry_in = list.retry_in.min(retry_in);
                if !list.endpoints.contains(&endpoint) {
                    list.endpoints.push(endpoint);
                }
            }
        }
    }
}

impl fmt::Display for ThrottledEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_paused {
            return write!(f, "{} paused by the operator", self.provider);
        }
        write!(f, "{} throttled", self.provider)?;
        match self.last_error {
            Some(error) => write!(f, ", last failed with {error}"),
            None => Ok(()),
        }
    }
}

/// `typesafe throttled, last failed with 401; retry in 5 s`
impl fmt::Display for ThrottledEndpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, endpoint) in self.endpoints.iter().take(MAX_NAMED).enumerate() {
            write!(f, "{}{endpoint}", if index == 0 { "" } else { "; " })?;
        }
        if let Some(more @ 1..) = self.endpoints.len().checked_sub(MAX_NAMED) {
            write!(f, "; {more} more")?;
        }
        let seconds = self.retry_in.as_secs().saturating_add(u64::from(self.retry_in.subsec_nanos() > 0)).max(1);
        write!(f, "; retry in {seconds} s")
    }
}
