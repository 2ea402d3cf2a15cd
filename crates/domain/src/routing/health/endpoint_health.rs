//! Everything that is known of one endpoint's health.

use std::time::Duration;

use super::breaker::{Admission, Breaker, BreakerState, Permit};
use super::decay::DecayingMean;
use super::histogram::{Better, WindowedHistogram};
use super::{HealthPolicy, Observation};

/// What is known of an endpoint's health at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HealthView {
    /// What its breaker does.
    pub state: BreakerState,
    /// Set where an attempt would be refused: when it is worth to ask again, as in [`Admission::Refused`].
    pub retry_in: Option<Duration>,
    /// The share of failed attempts, 0 to 1, with decay; 0 where nothing is known. What is ten half-lives old is
    /// forgotten, and all of it when a probe succeeds.
    pub error_rate: f64,
    /// Failures since the last success.
    pub consecutive_failures: u32,
    /// The average latency of good answers, with decay; the last known one while none come.
    pub latency: Option<Duration>,
    /// Percentiles of latency over the window; nothing where it holds no answer.
    pub percentiles: Option<LatencyPercentiles>,
    /// The 95th percentile of latency over the window, after which a second endpoint can be asked as well.
    pub p95: Option<Duration>,
    /// Percentiles of throughput over the window; nothing where it holds no answer with a count of tokens.
    pub throughput: Option<ThroughputPercentiles>,
    /// Good answers in the window, on which the percentiles of latency rest.
    pub answers_in_window: u64,
    /// Attempts that told anything since the process began; neutral ones are left out.
    pub observations: u64,
    /// When the last attempt failed, by the clock that is passed in. A success does not take it back.
    pub last_failure_at: Option<Duration>,
    /// True where that is less than [`HealthPolicy::recent_failure`] ago.
    pub failed_recently: bool,
}

/// Latencies of good answers: so many per cent of them took at most this long. Within 3.2 % or 1 µs, between 0 and
/// 71 minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyPercentiles {
    /// The median.
    pub p50: Duration,
    /// Three quarters.
    pub p75: Duration,
    /// Nine tenths.
    pub p90: Duration,
    /// Ninety-nine hundredths.
    pub p99: Duration,
}

/// Input and output tokens over the latency of their answer, in thousandths of a token a second: so many per cent of
/// the answers were **at least** this quick, so that p99 is the lowest. Within 3.2 %, up to 4.2 million tokens a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThroughputPercentiles {
    /// The median.
    pub p50: u64,
    /// Three quarters.
    pub p75: u64,
    /// Nine tenths.
    pub p90: u64,
    /// Ninety-nine hundredths.
    pub p99: u64,
}

/// The health of one endpoint: its breaker and what was measured.
///
/// The policy is passed to each call and SHOULD be the same one every time. About 200 bytes, and 23 kB more after the
/// first good answer.
#[derive(Debug, Default)]
pub struct EndpointHealth {
    breaker: Breaker,
    latency: DecayingMean,
    latencies: WindowedHistogram,
    throughputs: WindowedHistogram,
    observations: u64,
    last_failure_at: Option<Duration>,
}

impl EndpointHealth {
    /// Closed, and nothing known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for leave to make one attempt.
    pub fn admit(&mut self, policy: &HealthPolicy, now: Duration) -> Admission {
        self.breaker.admit(policy, now)
    }

    /// Whether an attempt would be admitted. Changes nothing.
    pub fn would_admit(&self, policy: &HealthPolicy, now: Duration) -> bool {
        self.breaker.refusal(policy, now).is_none()
    }

    /// Hands a permit of this endpoint back with what its attempt told.
    pub fn report(&mut self, policy: &HealthPolicy, permit: Permit, observation: Observation, now: Duration) {
        if observation != Observation::Neutral {
            self.observations = self.observations.saturating_add(1);
        }
        if observation.is_failure() {
            self.last_failure_at = self.last_failure_at.max(Some(now));
        }
        if let Observation::Succeeded { latency, tokens } = observation {
            self.measure(policy, latency, tokens, now);
        }
        self.breaker.report(policy, permit, observation, now);
    }

    /// Whether it failed less than [`HealthPolicy::recent_failure`] ago.
    pub fn failed_recently(&self, policy: &HealthPolicy, now: Duration) -> bool {
        self.last_failure_at.is_some_and(|at| now.saturating_sub(at) < policy.recent_failure)
    }

    /// What is known at this moment. The percentiles make it dearer than [`Self::would_admit`].
    pub fn view(&self, policy: &HealthPolicy, now: Duration) -> HealthView {
        let percentiles = self.latencies.percentiles([50, 75, 90, 95, 99], Better::Lower, policy.window, now);
        let latencies = percentiles.map(|(values, _)| values.map(Duration::from_micros));
        let throughput = self.throughputs.percentiles([50, 75, 90, 99], Better::Higher, policy.window, now);
        HealthView {
            state: self.breaker.state(now),
            retry_in: self.breaker.refusal(policy, now),
            error_rate: self.breaker.error_rate(policy, now),
            consecutive_failures: self.breaker.consecutive_failures(),
            latency: self.latency.mean().map(|secs| Duration::try_from_secs_f64(secs).unwrap_or(Duration::MAX)),
            percentiles: latencies.map(|[p50, p75, p90, _, p99]| LatencyPercentiles { p50, p75, p90, p99 }),
            p95: latencies.map(|[_, _, _, p95, _]| p95),
            throughput: throughput.map(|([p50, p75, p90, p99], _)| ThroughputPercentiles { p50, p75, p90, p99 }),
            answers_in_window: percentiles.map_or(0, |(_, answers)| answers),
            observations: self.observations,
            last_failure_at: self.last_failure_at,
            failed_recently: self.failed_recently(policy, now),
        }
    }

    fn measure(&mut self, policy: &HealthPolicy, latency: Duration, tokens: u64, now: Duration) {
        self.latency.add(latency.as_secs_f64(), policy.half_life, now);
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.latencies.record(micros, policy.window, now);
        if tokens > 0 {
            // Thousandths of a token a second; an answer in no time at all took a microsecond.
            let throughput = tokens.saturating_mul(1_000_000_000) / micros.max(1);
            self.throughputs.record(throughput, policy.window, now);
        }
    }
}
