//! A naive model of an endpoint's health. It keeps the whole history and works everything out from it each time: no
//! counters, no serial numbers, no running sums.

use super::*;
use crate::routing::health::BreakerState;

#[derive(Debug, Clone, Copy)]
enum Event {
    Admitted { attempt: usize, probe: bool, at: Duration },
    Reported { attempt: usize, what: Observation, at: Duration },
}

/// From an opening to the closing. Positions are places in the history.
#[derive(Debug, Clone, Copy)]
struct Spell {
    began: usize,
    until: Duration,
    openings: u32,
    ended: Option<usize>,
}

/// What the history comes to.
#[derive(Debug, Default)]
struct Account {
    spells: Vec<Spell>,
    /// Places of the reports that count for opening and closing.
    counted: Vec<usize>,
}

impl Account {
    fn open(&self) -> Option<Spell> {
        self.spells.last().copied().filter(|spell| spell.ended.is_none())
    }

    /// Where the memory of failures begins: at the last closing, which counts itself.
    fn memory(&self) -> impl DoubleEndedIterator<Item = usize> {
        let from = self.spells.iter().filter_map(|spell| spell.ended).max().unwrap_or(0);
        self.counted.iter().copied().filter(move |place| *place >= from)
    }
}

/// What the model expects of an admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Attempt,
    Probe,
    Refused(Duration),
}

#[derive(Debug)]
pub(super) struct Reference {
    policy: HealthPolicy,
    history: Vec<Event>,
}

impl Reference {
    pub(super) fn new(policy: HealthPolicy) -> Self {
        Self { policy, history: Vec::new() }
    }

    pub(super) fn admit(&mut self, attempt: usize, now: Duration) -> Expected {
        let expected = self.expect(now);
        if !matches!(expected, Expected::Refused(_)) {
            self.history.push(Event::Admitted { attempt, probe: expected == Expected::Probe, at: now });
        }
        expected
    }

    pub(super) fn report(&mut self, attempt: usize, what: Observation, at: Duration) {
        self.history.push(Event::Reported { attempt, what, at });
    }

    pub(super) fn expect(&self, now: Duration) -> Expected {
        let Some(spell) = self.account().open() else { return Expected::Attempt };
        if now < spell.until {
            return Expected::Refused(between(now, spell.until));
        }
        let out = self.last_probe(self.history.len()).filter(|(_, place, _)| *place > spell.began);
        match out {
            Some((attempt, _, at)) if !self.has_reported(attempt) && now < at + self.policy.probe_lease => {
                Expected::Refused(between(now, at + self.policy.probe_lease).min(self.policy.open_for))
            }
            _ => Expected::Probe,
        }
    }

    pub(super) fn state(&self, now: Duration) -> BreakerState {
        match self.account().open() {
            None => BreakerState::Closed,
            Some(spell) if now < spell.until => BreakerState::Open,
            Some(_) => BreakerState::HalfOpen,
        }
    }

    pub(super) fn consecutive_failures(&self) -> usize {
        self.row(&self.account())
    }

    pub(super) fn error_rate(&self, now: Duration) -> f64 {
        let (rate, weight) = self.rate(&self.account(), now);
        if weight < 1.0 / 1024.0 { 0.0 } else { rate }
    }

    pub(super) fn latency(&self, now: Duration) -> Option<f64> {
        let answers: Vec<(f64, f64)> = self
            .reports()
            .filter_map(|(what, at)| match what {
                Observation::Succeeded { latency, .. } => Some((latency.as_secs_f64(), self.weight(at, now))),
                _ => None,
            })
            .collect();
        let weights: f64 = answers.iter().map(|(_, weight)| weight).sum();
        (!answers.is_empty()).then(|| answers.iter().map(|(latency, weight)| latency * weight).sum::<f64>() / weights)
    }

    pub(super) fn observations(&self) -> usize {
        self.reports().filter(|(what, _)| *what != Observation::Neutral).count()
    }

    pub(super) fn last_failure_at(&self) -> Option<Duration> {
        self.reports().filter(|(what, _)| what.is_failure()).map(|(_, at)| at).max()
    }

    fn reports(&self) -> impl Iterator<Item = (Observation, Duration)> {
        self.history.iter().filter_map(|event| match event {
            Event::Reported { what, at, .. } => Some((*what, *at)),
            Event::Admitted { .. } => None,
        })
    }

    /// The last probe that was let out before this place: its attempt, its place, and when.
    fn last_probe(&self, before: usize) -> Option<(usize, usize, Duration)> {
        self.history[..before].iter().enumerate().rev().find_map(|(place, event)| match event {
            Event::Admitted { attempt, probe: true, at } => Some((*attempt, place, *at)),
            _ => None,
        })
    }

    fn has_reported(&self, wanted: usize) -> bool {
        self.history.iter().any(|event| matches!(event, Event::Reported { attempt, .. } if *attempt == wanted))
    }

    fn admission(&self, wanted: usize) -> (usize, bool, Duration) {
        let found = self.history.iter().enumerate().find_map(|(place, event)| match event {
            Event::Admitted { attempt, probe, at } if *attempt == wanted => Some((place, *probe, *at)),
            _ => None,
        });
        found.expect("what reports was admitted")
    }

    fn account(&self) -> Account {
        let mut account = Account::default();
        for (place, event) in self.history.iter().enumerate() {
            if let Event::Reported { attempt, what, at } = event {
                self.enter(&mut account, place, *attempt, *what, *at);
            }
        }
        account
    }

    fn enter(&self, account: &mut Account, place: usize, attempt: usize, what: Observation, at: Duration) {
        let told = match what {
            Observation::Overloaded { retry_after: Some(wait) } => Some(wait.min(self.policy.max_retry_after)),
            _ => None,
        };
        let told = told.filter(|wait| *wait > Duration::ZERO);
        let opened = |openings: u32| {
            let doubled = (1..openings).fold(self.policy.open_for, |length, _| length * 2);
            at + told.unwrap_or(doubled.min(self.policy.open_for_max))
        };
        let (admitted, probe, since) = self.admission(attempt);
        let last = self.last_probe(place).is_some_and(|(last, _, _)| last == attempt);
        match account.open() {
            None if !probe && account.spells.iter().all(|spell| spell.began < admitted) => {
                if what == Observation::Neutral {
                    return;
                }
                account.counted.push(place);
                let (rate, weight) = self.rate(account, at);
                let too_often = self.row(account) >= self.policy.failures_to_open as usize
                    || weight >= f64::from(self.policy.error_rate_min_observations)
                        && rate > self.policy.error_rate_to_open + 1e-9;
                if what.is_failure() && (too_often || told.is_some() || what == Observation::Unauthorised) {
                    account.spells.push(Spell { began: place, until: opened(1), openings: 1, ended: None });
                }
            }
            Some(spell) if probe && last && at >= spell.until && at < since + self.policy.probe_lease => {
                let current = account.spells.last_mut().expect("one is open");
                if what.is_failure() {
                    current.openings += 1;
                    current.until = opened(current.openings);
                } else if what != Observation::Neutral {
                    current.ended = Some(place);
                }
                if what != Observation::Neutral {
                    account.counted.push(place);
                }
            }
            late => {
                let Some(wait) = told else { return };
                match account.spells.last_mut().filter(|_| late.is_some()) {
                    Some(spell) => spell.until = spell.until.max(at + wait),
                    None => account.spells.push(Spell { began: place, until: at + wait, openings: 1, ended: None }),
                }
            }
        }
    }

    fn told_at(&self, place: usize) -> (Observation, Duration) {
        match self.history[place] {
            Event::Reported { what, at, .. } => (what, at),
            Event::Admitted { .. } => unreachable!("only reports are counted"),
        }
    }

    /// Failures since the last success.
    fn row(&self, account: &Account) -> usize {
        account.memory().rev().take_while(|place| self.told_at(*place).0.is_failure()).count()
    }

    /// The share of failures, and the weight that it rests on.
    fn rate(&self, account: &Account, now: Duration) -> (f64, f64) {
        let (mut failures, mut all) = (0.0, 0.0);
        for place in account.memory() {
            let (what, at) = self.told_at(place);
            all += self.weight(at, now);
            if what.is_failure() {
                failures += self.weight(at, now);
            }
        }
        (if all > 0.0 { failures / all } else { 0.0 }, all)
    }

    fn weight(&self, at: Duration, now: Duration) -> f64 {
        0.5_f64.powf(between(at, now).as_secs_f64() / self.policy.half_life.as_secs_f64())
    }
}
