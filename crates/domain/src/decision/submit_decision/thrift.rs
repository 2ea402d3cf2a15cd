//! Which first attempts a request is planned with where the preferred ones cost more than a limit leaves.

use super::money::total;
use super::plan::Part;
use super::router::Router;
use crate::money::Usd;
use crate::usage::AttemptRecord;

/// The first attempts of a request's parts, and cheaper ones that may stand in for them. Endpoints are given up for
/// money alone: in the order of preference, and only for ones that cost less.
pub(super) struct Thrift {
    /// Of each part: the places of candidates that are each cheaper than all before it, with what they may come to.
    steps: Vec<Vec<(usize, AttemptRecord)>>,
    /// Which of them it is now, of each part.
    at: Vec<usize>,
}

impl Thrift {
    /// Begins with the preferred ones, which are those of the first candidate of each part.
    pub(super) fn new(router: &Router, parts: &[Part], preferred: &[AttemptRecord]) -> Self {
        let steps = (0..).zip(parts).zip(preferred).map(|((number, part), preferred)| {
            let mut cheaper = vec![(0, preferred.clone())];
            let mut least = cost(preferred);
            for (place, candidate) in part.candidates.iter().enumerate().skip(1) {
                let bound = router.bound(candidate, number, &part.inquiry);
                let amount = cost(&bound);
                if amount < least {
                    least = amount;
                    cheaper.push((place, bound));
                }
            }
            cheaper
        });
        let steps: Vec<_> = steps.collect();
        Self { at: vec![0; steps.len()], steps }
    }

    /// What the first attempts may come to, each.
    pub(super) fn planned(&self) -> Vec<AttemptRecord> {
        self.steps.iter().zip(&self.at).map(|(steps, at)| steps[*at].1.clone()).collect()
    }

    /// What they may come to together, from what they are now to the cheapest.
    pub(super) fn totals(mut self) -> Vec<Usd> {
        let mut totals = vec![total(&self.planned())];
        while self.step() {
            totals.push(total(&self.planned()));
        }
        totals
    }

    /// The least that any come to.
    pub(super) fn least(&self) -> Usd {
        let cheapest: Vec<AttemptRecord> =
            self.steps.iter().filter_map(|steps| steps.last().map(|(_, bound)| bound.clone())).collect();
        total(&cheapest)
    }

    /// The preferred ones again.
    pub(super) fn begin_again(&mut self) {
        self.at.fill(0);
    }

    /// Goes to cheaper ones until they fit into that much; false, and nothing has changed, where none do. What is free
    /// fits everywhere.
    pub(super) fn fit_into(&mut self, room: Usd) -> bool {
        let before = self.at.clone();
        while self.step() {
            let amount = total(&self.planned());
            if amount <= room || amount == Usd::ZERO {
                return true;
            }
        }
        self.at = before;
        false
    }

    /// Puts them before all other candidates of their parts.
    pub(super) fn put_first(&self, parts: &mut [Part]) {
        for ((part, steps), at) in parts.iter_mut().zip(&self.steps).zip(&self.at) {
            let (place, _) = steps[*at];
            part.candidates[..=place].rotate_right(1);
        }
    }

    /// Takes the next cheaper one in the part where that saves the most; false where all are the cheapest.
    fn step(&mut self) -> bool {
        let saved = |part: usize| {
            let (steps, at) = (&self.steps[part], self.at[part]);
            let (_, next) = steps.get(at + 1)?;
            Some(cost(&steps[at].1).pico().saturating_sub(cost(next).pico()))
        };
        let most = (0..self.steps.len()).filter_map(|part| Some((saved(part)?, std::cmp::Reverse(part)))).max();
        let Some((_, std::cmp::Reverse(part))) = most else { return false };
        self.at[part] += 1;
        true
    }
}

fn cost(attempt: &AttemptRecord) -> Usd {
    total(std::slice::from_ref(attempt))
}
