//! The breaker of one endpoint: who may pass, and what a report does to that.

use std::time::Duration;

use super::decay::DecayingMean;
use super::{HealthPolicy, Observation};

/// An error rate that rests on less weight than this is forgotten: one attempt after ten half-lives.
const FORGOTTEN: f64 = 1.0 / 1024.0;

/// What a breaker does with attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// It lets all of them pass.
    Closed,
    /// It lets none of them pass.
    Open,
    /// It lets one at a time pass, to see how it goes.
    HalfOpen,
}

impl BreakerState {
    /// Its name in answers, records and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// Leave to make one attempt. It is handed back with what the attempt told, whatever became of it: a probe that does
/// not report keeps the endpoint from everybody until [`HealthPolicy::probe_lease`] is over.
#[derive(Debug)]
#[must_use = "an attempt that does not report blocks a half-open endpoint; report `Observation::Neutral` at least"]
pub struct Permit {
    pub(super) serial: u64,
    pub(super) probe: bool,
    /// The endpoint's place on the board.
    pub(super) index: usize,
}

impl Permit {
    /// True where the attempt is the probe of a half-open breaker.
    pub fn is_probe(&self) -> bool {
        self.probe
    }
}

/// Whether an attempt may be made.
#[derive(Debug)]
#[must_use]
pub enum Admission {
    /// It may.
    Admitted(Permit),
    /// It may not.
    Refused {
        /// When it is worth to ask again: when the opening is over; or, while another attempt is the probe, after
        /// [`HealthPolicy::open_for`] or what is left of the probe's lease, whichever is less. No promise: the wait
        /// may have been made longer by then, or another probe may be out.
        retry_in: Duration,
    },
}

#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// Grows with each probe, and only a probe closes: what began before an opening holds an older number.
    serial: u64,
    consecutive_failures: u32,
    failures: DecayingMean,
    /// Set from the opening to the success of a probe.
    trip: Option<Trip>,
}

#[derive(Debug)]
struct Trip {
    until: Duration,
    /// How many openings there were since the breaker was closed.
    openings: u32,
    probe: Option<Probe>,
}

#[derive(Debug)]
struct Probe {
    serial: u64,
    expires: Duration,
}

/// Whose report it is.
enum Standing {
    /// An attempt of the closed breaker.
    Current,
    /// The probe of the half-open breaker.
    Probing,
    /// An attempt from before an opening, or a probe whose lease is over.
    Late,
}

impl Trip {
    /// How long to wait; nothing where a probe may go out.
    fn refusal(&self, policy: &HealthPolicy, now: Duration) -> Option<Duration> {
        if now < self.until {
            return Some(self.until.saturating_sub(now));
        }
        let lease = self.probe.as_ref()?.expires.checked_sub(now).filter(|left| !left.is_zero())?;
        Some(lease.min(policy.open_for))
    }
}

impl Breaker {
    pub(super) fn state(&self, now: Duration) -> BreakerState {
        match &self.trip {
            None => BreakerState::Closed,
            Some(trip) if now < trip.until => BreakerState::Open,
            Some(_) => BreakerState::HalfOpen,
        }
    }

    pub(super) fn refusal(&self, policy: &HealthPolicy, now: Duration) -> Option<Duration> {
        self.trip.as_ref()?.refusal(policy, now)
    }

    pub(super) fn consecutive_failures(&self) -> u32 {
        self.consecutive_failures
    }

    pub(super) fn error_rate(&self, policy: &HealthPolicy, now: Duration) -> f64 {
        let known = self.failures.weight(policy.half_life, now) >= FORGOTTEN;
        self.failures.mean().filter(|_| known).unwrap_or_default()
    }

    pub(super) fn admit(&mut self, policy: &HealthPolicy, now: Duration) -> Admission {
        let Some(trip) = &mut self.trip else {
            return Admission::Admitted(Permit { serial: self.serial, probe: false, index: 0 });
        };
        if let Some(retry_in) = trip.refusal(policy, now) {
            return Admission::Refused { retry_in };
        }
        self.serial = self.serial.wrapping_add(1);
        trip.probe = Some(Probe { serial: self.serial, expires: now.saturating_add(policy.probe_lease) });
        Admission::Admitted(Permit { serial: self.serial, probe: true, index: 0 })
    }

    #[expect(clippy::needless_pass_by_value, reason = "a permit is handed back once")]
    pub(super) fn report(&mut self, policy: &HealthPolicy, permit: Permit, observation: Observation, now: Duration) {
        let told = match observation {
            Observation::Overloaded { retry_after } => policy.told_wait(retry_after),
            _ => None,
        };
        match (self.standing(&permit, now), observation) {
            (Standing::Late, _) => {
                if let Some(wait) = told {
                    self.keep_to(now.saturating_add(wait));
                }
            }
            (_, Observation::Neutral) => {}
            (standing, Observation::Succeeded { .. }) => {
                if matches!(standing, Standing::Probing) {
                    self.trip = None;
                    self.failures = DecayingMean::default();
                }
                self.consecutive_failures = 0;
                self.failures.add(0.0, policy.half_life, now);
            }
            (standing, _) => {
                self.consecutive_failures = self.consecutive_failures.saturating_add(1);
                self.failures.add(1.0, policy.half_life, now);
                let at_once = told.is_some() || observation == Observation::Unauthorised;
                if at_once || matches!(standing, Standing::Probing) || self.fails_too_often(policy, now) {
                    self.open(policy, told, now);
                }
            }
        }
    }

    /// Finds out whose permit it is; a probe's place is free from then on.
    fn standing(&mut self, permit: &Permit, now: Duration) -> Standing {
        match &mut self.trip {
            None if permit.serial == self.serial => Standing::Current,
            Some(trip) => match trip.probe.take_if(|probe| probe.serial == permit.serial) {
                // A `Retry-After` may have moved the opening on while the probe was out: then it decides nothing.
                Some(probe) if now < probe.expires && now >= trip.until => Standing::Probing,
                _ => Standing::Late,
            },
            None => Standing::Late,
        }
    }

    fn fails_too_often(&self, policy: &HealthPolicy, now: Duration) -> bool {
        let enough = f64::from(policy.error_rate_min_observations);
        self.consecutive_failures >= policy.failures_to_open
            || (self.failures.weight(policy.half_life, now) >= enough
                && self.failures.mean().is_some_and(|rate| rate > policy.error_rate_to_open))
    }

    /// Opens for the wait that was told, else for the time that is due.
    fn open(&mut self, policy: &HealthPolicy, told: Option<Duration>, now: Duration) {
        let openings = self.trip.as_ref().map_or(0, |trip| trip.openings).saturating_add(1);
        let length = told.unwrap_or_else(|| policy.opening(openings));
        self.trip = Some(Trip { until: now.saturating_add(length), openings, probe: None });
    }

    /// Stays open until then at least. A wait that a provider asked for is kept to whoever brought the news.
    fn keep_to(&mut self, until: Duration) {
        let trip = self.trip.get_or_insert(Trip { until, openings: 1, probe: None });
        trip.until = trip.until.max(until);
    }
}
