//! Cheaper plans for a request whose preferred plan does not fit into a limit.

use std::time::Duration;

use super::bounds::{Bounds, total};
use super::plan::SubRequest;
use crate::money::Usd;
use crate::usage::AttemptRecord;

/// The first attempts of a request's sub-requests, with cheaper alternatives. Each
/// alternative keeps the order of preference and replaces endpoints only by cheaper ones.
pub(super) struct AffordablePlans {
    /// By sub-request: the positions of candidates that are each cheaper than all before, with their bounds.
    steps: Vec<Vec<(usize, AttemptRecord)>>,
    /// The chosen step of each sub-request.
    chosen: Vec<usize>,
}

impl AffordablePlans {
    /// Begins with the preferred attempts, those of the first candidate of each sub-request.
    pub(super) fn new(
        sub_requests: &[SubRequest],
        preferred: &[AttemptRecord],
        (bounds, now): (&Bounds, Duration),
    ) -> Self {
        let steps = (0..).zip(sub_requests).zip(preferred).map(|((number, part), preferred)| {
            let mut cheaper = vec![(0, preferred.clone())];
            let mut least = cost(preferred);
            for (position, candidate) in part.candidates.iter().enumerate().skip(1) {
                let bound = bounds.attempt(candidate, number, &part.input, now);
                let amount = cost(&bound);
                if amount < least {
                    least = amount;
                    cheaper.push((position, bound));
                }
            }
            cheaper
        });
        let steps: Vec<_> = steps.collect();
        Self { chosen: vec![0; steps.len()], steps }
    }

    /// Returns the bounds of the chosen first attempts.
    pub(super) fn attempts(&self) -> Vec<AttemptRecord> {
        self.steps.iter().zip(&self.chosen).map(|(steps, chosen)| steps[*chosen].1.clone()).collect()
    }

    /// Returns the cost of each plan, from the chosen one to the cheapest.
    pub(super) fn totals(mut self) -> Vec<Usd> {
        let mut totals = vec![total(&self.attempts())];
        while self.advance() {
            totals.push(total(&self.attempts()));
        }
        totals
    }

    /// Returns the cost of the cheapest plan.
    pub(super) fn least(&self) -> Usd {
        let cheapest: Vec<AttemptRecord> =
            self.steps.iter().filter_map(|steps| steps.last().map(|(_, bound)| bound.clone())).collect();
        total(&cheapest)
    }

    /// Chooses the preferred plan again.
    pub(super) fn reset(&mut self) {
        self.chosen.fill(0);
    }

    /// Chooses the next plan that costs no more than `room`. Returns false without a change if there is none. A free
    /// plan always fits.
    pub(super) fn fit_into(&mut self, room: Usd) -> bool {
        let before = self.chosen.clone();
        while self.advance() {
            let amount = total(&self.attempts());
            if amount <= room || amount == Usd::ZERO {
                return true;
            }
        }
        self.chosen = before;
        false
    }

    /// Moves the chosen candidates to the front of their sub-requests.
    pub(super) fn apply_to(&self, sub_requests: &mut [SubRequest]) {
        for ((part, steps), chosen) in sub_requests.iter_mut().zip(&self.steps).zip(&self.chosen) {
            let (position, _) = steps[*chosen];
            part.candidates[..=position].rotate_right(1);
        }
    }

    /// Chooses the next cheaper candidate in the sub-request with the largest saving. Returns false if all are the
    /// cheapest.
    fn advance(&mut self) -> bool {
        let saved = |part: usize| {
            let (steps, chosen) = (&self.steps[part], self.chosen[part]);
            let (_, next) = steps.get(chosen + 1)?;
            Some(cost(&steps[chosen].1).pico().saturating_sub(cost(next).pico()))
        };
        let most = (0..self.steps.len()).filter_map(|part| Some((saved(part)?, std::cmp::Reverse(part)))).max();
        let Some((_, std::cmp::Reverse(part))) = most else { return false };
        self.chosen[part] += 1;
        true
    }
}

fn cost(attempt: &AttemptRecord) -> Usd {
    total(std::slice::from_ref(attempt))
}
