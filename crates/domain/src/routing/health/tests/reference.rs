//! A reference model of an endpoint's throttle. It computes every value from the whole history, without buckets, sums
//! or caches.
#![expect(clippy::cast_precision_loss, reason = "the counts of a test are small")]

use super::*;
use crate::routing::FailureClass;

#[derive(Debug, Clone, Copy)]
enum Event {
    Admitted { of: u128, at: Duration },
    Reported { of: u128, began: Duration, observation: Observation, at: Duration },
}

#[derive(Debug)]
pub(super) struct Reference {
    policy: HealthPolicy,
    history: Vec<Event>,
}

/// Requests by weight.
#[derive(Debug, Clone, Copy, Default)]
struct Requests {
    accepts: u64,
    failures: u64,
    content: u64,
}

/// The expectation for an admission: never rejected, always rejected, or by chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Expected {
    Normal,
    Backoff(Duration),
    Chance { rejection: f64, retry_in: Duration },
}

impl Reference {
    pub(super) fn new(policy: HealthPolicy) -> Self {
        Self { policy, history: Vec::new() }
    }

    pub(super) fn admitted(&mut self, of: u128, at: Duration) {
        self.history.push(Event::Admitted { of, at });
    }

    pub(super) fn report(&mut self, of: u128, began: Duration, observation: Observation, at: Duration) {
        if observation != Observation::Neutral {
            self.history.push(Event::Reported { of, began, observation, at });
        }
    }

    pub(super) fn expect(&self, of: u128, now: Duration) -> Expected {
        let until = self.backoff_until_for_all().max(self.own_backoff_until(of));
        if until > now {
            return Expected::Backoff(until.checked_sub(now).unwrap().min(self.policy.max_backoff));
        }
        let mut expected = Expected::Normal;
        let own = (self.probability(self.own_requests(of, now)), self.own_last_admitted(of));
        for (rejection, last) in [(self.probability_for_all(now), self.last_admitted()), own] {
            let probe_at = last.map_or(Duration::ZERO, |last| last + self.policy.probe_interval);
            if rejection > 0.0 && probe_at > now {
                let wait = probe_at.checked_sub(now).unwrap().min(self.policy.max_backoff);
                expected = match expected {
                    Expected::Chance { rejection: other, retry_in } => {
                        Expected::Chance { rejection: rejection.max(other), retry_in: retry_in.max(wait) }
                    }
                    _ => Expected::Chance { rejection, retry_in: wait },
                };
            }
        }
        expected
    }

    pub(super) fn throttled_workspaces(&self, now: Duration) -> usize {
        let is_throttled =
            |of: u128| self.own_backoff_until(of) > now || self.probability(self.own_requests(of, now)) >= 0.1;
        self.known().into_iter().filter(|(of, _)| is_throttled(*of)).count()
    }

    pub(super) fn retry_in_for_all(&self, now: Duration) -> Option<Duration> {
        let until = self.backoff_until_for_all();
        (until > now).then(|| until.checked_sub(now).unwrap().min(self.policy.max_backoff))
    }

    pub(super) fn accept_rate(&self, now: Duration) -> Option<f64> {
        let live: Vec<bool> = self
            .reports()
            .filter(|(_, _, _, _, at)| self.is_live(*at, now))
            .map(|(_, _, _, observation, _)| matches!(observation, Observation::Succeeded { .. }))
            .collect();
        (!live.is_empty()).then(|| live.iter().filter(|good| **good).count() as f64 / live.len() as f64)
    }

    pub(super) fn failed_recently(&self, of: u128, now: Duration) -> bool {
        let recent: Vec<(u128, FailureClass)> = self
            .failures()
            .filter(|(_, _, _, at)| now.checked_sub(*at).unwrap() < self.policy.recent_failure)
            .map(|(_, of, class, _)| (of, class))
            .collect();
        let for_all = |class| matches!(class, FailureClass::Connection | FailureClass::Credentials);
        let mut by_content: Vec<u128> =
            recent.iter().filter(|(_, class)| !for_all(*class)).map(|(of, _)| *of).collect();
        by_content.sort_unstable();
        by_content.dedup();
        let since = self.known_since(of);
        let own = self.failures().any(|(place, who, class, at)| {
            who == of
                && class != FailureClass::Credentials
                && since.is_some_and(|since| place >= since)
                && now.checked_sub(at).unwrap() < self.policy.recent_failure
        });
        own || by_content.len() >= 2 || recent.iter().any(|(_, class)| for_all(*class))
    }

    /// The probability with which requests of any workspace are rejected.
    pub(super) fn probability_for_all(&self, now: Duration) -> f64 {
        let last_rejection = self
            .failures()
            .filter(|(_, _, class, _)| *class == FailureClass::Credentials)
            .map(|(place, ..)| place)
            .max();
        let mut requests = Requests::default();
        for (place, _, _, observation, at) in self.reports() {
            if last_rejection.is_none_or(|rejection| place >= rejection) && self.is_live(at, now) {
                match observation {
                    Observation::Succeeded { .. } => requests.accepts += 1,
                    Observation::Failed { class: FailureClass::Connection, .. } => requests.failures += 1,
                    Observation::Failed { class: FailureClass::Credentials, .. } => {
                        requests.failures += u64::from(self.policy.min_requests.max(1));
                    }
                    _ => {}
                }
            }
        }
        let own: Vec<u64> = self.known().iter().map(|(of, _)| self.own_requests(*of, now).content).collect();
        let (sum, most) = (own.iter().sum::<u64>(), own.iter().copied().max().unwrap_or(0));
        requests.content = (sum - most) + most.min(sum - most);
        self.probability(requests)
    }

    fn probability(&self, requests: Requests) -> f64 {
        let all = requests.accepts + requests.failures + requests.content;
        if all < u64::from(self.policy.min_requests) {
            return 0.0;
        }
        let (all, accepts) = (all as f64, requests.accepts as f64);
        f64::max(0.0, (all - self.policy.accept_multiplier * accepts) / (all + 1.0))
    }

    fn own_requests(&self, of: u128, now: Duration) -> Requests {
        let mut requests = Requests::default();
        let Some(since) = self.known_since(of) else { return requests };
        for (place, who, _, observation, at) in self.reports() {
            if who != of || place < since || !self.is_live(at, now) {
                continue;
            }
            match observation {
                Observation::Succeeded { .. } => requests.accepts += 1,
                Observation::Failed { class, .. } => match class {
                    FailureClass::Connection => requests.failures += 1,
                    FailureClass::Credentials => {}
                    FailureClass::Content | FailureClass::Overloaded { .. } => requests.content += 1,
                    FailureClass::Timeout => requests.content += u64::from(self.policy.timeout_weight),
                },
                Observation::Neutral => {}
            }
        }
        requests
    }

    fn last_admitted(&self) -> Option<Duration> {
        let admitted = self.history.iter().filter_map(|event| match event {
            Event::Admitted { at, .. } => Some(*at),
            Event::Reported { .. } => None,
        });
        admitted.max()
    }

    /// The last admission of a workspace while it is known, or the beginning of an attempt that made it known.
    fn own_last_admitted(&self, of: u128) -> Option<Duration> {
        let since = self.known_since(of)?;
        let times = self.history.iter().enumerate().skip(since).filter_map(|(_, event)| match event {
            Event::Admitted { of: who, at } if *who == of => Some(*at),
            Event::Reported { of: who, began, observation, .. } if *who == of => match observation {
                Observation::Failed { class: FailureClass::Credentials, .. } => None,
                _ => Some(*began),
            },
            _ => None,
        });
        times.max()
    }

    fn own_backoff_until(&self, of: u128) -> Duration {
        let Some(since) = self.known_since(of) else { return Duration::ZERO };
        self.backoffs()
            .filter(|(place, who, _)| *who == of && *place >= since)
            .map(|(.., until)| until)
            .max()
            .unwrap_or_default()
    }

    fn backoff_until_for_all(&self) -> Duration {
        let rejections = self.failures().filter(|(_, _, class, _)| *class == FailureClass::Credentials);
        let wait = self.policy.auth_backoff.min(self.policy.max_backoff);
        let by_credentials = rejections.map(|(.., at)| at + wait).max().unwrap_or_default();
        let mut latest: Vec<(u128, Duration)> = Vec::new();
        for (_, of, until) in self.backoffs() {
            match latest.iter_mut().find(|(who, _)| *who == of) {
                Some((_, latest)) => *latest = until.max(*latest),
                None => latest.push((of, until)),
            }
        }
        latest.sort_by_key(|(_, until)| std::cmp::Reverse(*until));
        by_credentials.max(latest.get(1).map(|(_, until)| *until).unwrap_or_default())
    }

    fn backoffs(&self) -> impl Iterator<Item = (usize, u128, Duration)> {
        self.failures().filter_map(|(place, of, class, at)| match class {
            FailureClass::Overloaded { retry_after: Some(wait) } => {
                Some((place, of, at + wait.min(self.policy.max_backoff)))
            }
            _ => None,
        })
    }

    fn reports(&self) -> impl Iterator<Item = (usize, u128, Duration, Observation, Duration)> {
        self.history.iter().enumerate().filter_map(|(place, event)| match event {
            Event::Reported { of, began, observation, at } => Some((place, *of, *began, *observation, *at)),
            Event::Admitted { .. } => None,
        })
    }

    fn failures(&self) -> impl Iterator<Item = (usize, u128, FailureClass, Duration)> {
        self.reports().filter_map(|(place, of, _, observation, at)| match observation {
            Observation::Failed { class, .. } => Some((place, of, class, at)),
            _ => None,
        })
    }

    fn is_live(&self, at: Duration, now: Duration) -> bool {
        let bucket = |time: Duration| time.as_nanos() / (self.policy.throttle_window.as_nanos() / 24);
        bucket(at) + 24 > bucket(now)
    }

    fn known_since(&self, of: u128) -> Option<usize> {
        self.known().into_iter().find(|(who, _)| *who == of).map(|(_, since)| since)
    }

    /// The workspaces that are remembered, with the place in the history from which on they are.
    fn known(&self) -> Vec<(u128, usize)> {
        let mut known: Vec<(u128, usize, Duration)> = Vec::new();
        for (place, of, _, _, at) in self.reports() {
            if let Some((.., seen)) = known.iter_mut().find(|(who, ..)| *who == of) {
                *seen = at;
                continue;
            }
            if known.len() >= self.policy.max_workspaces {
                let oldest = known.iter().enumerate().min_by_key(|(_, (who, _, seen))| (*seen, *who)).unwrap().0;
                known.remove(oldest);
            }
            known.push((of, place, at));
        }
        known.into_iter().map(|(of, since, _)| (of, since)).collect()
    }
}
