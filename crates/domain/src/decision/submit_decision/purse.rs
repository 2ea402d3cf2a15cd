//! What further attempts need: nobody makes one that is not paid for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::coalescing::Everyone;
use super::money::{Denied, Funds, Patience, charge, in_money};
use super::plan::Part;
use super::router::Router;
use crate::decision::{CallerPresence, Inquiry};
use crate::money::{Charge, Usd};
use crate::routing::Candidate;
use crate::usage::AttemptRecord;

/// Who has to have reserved what a call may come to, before it does.
pub(super) enum Payers {
    /// Nobody is limited.
    Nobody,
    /// One request.
    One(Arc<Funds>),
    /// All who share the call, limited or not.
    Everyone(Arc<Everyone>),
}

impl Payers {
    pub(super) fn of(funds: Option<&Arc<Funds>>) -> Self {
        funds.map_or(Self::Nobody, |funds| Self::One(Arc::clone(funds)))
    }

    /// Whoever has reserved less than `to`. Whoever comes later must have reserved as much.
    fn short_of(&self, to: Usd) -> Vec<Arc<Funds>> {
        match self {
            Self::Nobody => Vec::new(),
            Self::One(funds) if funds.amount() >= to => Vec::new(),
            Self::One(funds) => vec![Arc::clone(funds)],
            Self::Everyone(everyone) => everyone.short_of(to),
        }
    }

    /// Goes on without those who cannot pay; false, and nothing has changed, where nobody else is there.
    fn go_on_without(&self, refused: &[Arc<Funds>]) -> bool {
        match self {
            Self::Nobody | Self::One(_) => refused.is_empty(),
            Self::Everyone(everyone) => everyone.go_on_without(refused),
        }
    }
}

/// What money a call needs.
pub(super) struct Purse {
    payers: Payers,
    /// The first attempt of each part that has not begun.
    planned: Mutex<Vec<AttemptRecord>>,
    /// The endpoints that these are planned at, in the order of the parts.
    firsts: Vec<usize>,
    /// One at a time asks the ledger for more.
    gate: futures_util::lock::Mutex<()>,
}

/// An attempt that is to be made.
pub(super) struct Next<'a> {
    pub(super) candidate: &'a Candidate,
    pub(super) inquiry: &'a Inquiry,
    pub(super) part: u32,
    /// Who waits for its answer.
    pub(super) caller: &'a Arc<dyn CallerPresence>,
    /// True where the request can do without it, so that nobody is refused because of it.
    pub(super) is_optional: bool,
}

impl Purse {
    /// `planned` is the first attempt of each part.
    pub(super) fn new(payers: Payers, planned: Vec<AttemptRecord>, parts: &[Part]) -> Self {
        let first = |part: &Part| part.candidates.first().map_or(usize::MAX, |first| first.endpoint.index);
        let firsts = if planned.is_empty() { Vec::new() } else { parts.iter().map(first).collect() };
        Self { payers, planned: Mutex::new(planned), firsts, gate: futures_util::lock::Mutex::default() }
    }

    /// Makes sure that an attempt is paid for, whatever it comes to, beside all that the log knows of and all that is
    /// planned. What only others' reservations keep out waits a moment for them, as far as patience goes. Returns its
    /// bound in tokens; it has to begin before anything else is awaited.
    pub(super) async fn cover(
        &self,
        router: &Router,
        next: &Next<'_>,
        patience: &mut Patience,
        so_far: impl Fn() -> Option<Charge> + Send + Sync,
    ) -> Result<u64, Denied> {
        if matches!(self.payers, Payers::Nobody) {
            return Ok(0);
        }
        let known = self.known(next.part, next.candidate);
        let bound = known.unwrap_or_else(|| router.bound(next.candidate, next.part, next.inquiry));
        let tokens = bound.input_tokens.saturating_add(bound.output_tokens);
        loop {
            let to = self.total(so_far(), &bound);
            if self.payers.short_of(to).is_empty() {
                return Ok(tokens);
            }
            let gate = self.gate.lock().await;
            // Somebody else may have been at the ledger in the meantime.
            let to = self.total(so_far(), &bound);
            let mut refused = Vec::new();
            for funds in self.payers.short_of(to) {
                match router.raise(&funds, to, std::slice::from_ref(&bound)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => refused.push(funds),
                    Err(error) => {
                        let error: &dyn std::error::Error = &error;
                        tracing::warn!(error, "money for another attempt could not be reserved");
                        return Err(Denied::Store);
                    }
                }
            }
            drop(gate);
            if refused.is_empty() {
                continue;
            }
            if next.is_optional {
                return Err(Denied::Overspent);
            }
            let goes_on = self.payers.go_on_without(&refused);
            let may_pass = |funds: &Arc<Funds>| funds.refused().is_some_and(|limit| limit.waits_for_others());
            if !goes_on && refused.iter().all(may_pass) && patience.wait(router, next.caller).await {
                continue;
            }
            for funds in &refused {
                router.count_refusal(funds);
                funds.tell_of_refusal();
            }
            if !goes_on {
                return Err(Denied::Overspent);
            }
        }
    }

    /// An attempt of a part begins, or none ever will: what was planned for it is not needed any more.
    pub(super) fn begun(&self, part: u32) {
        self.planned().retain(|planned| planned.part != part);
    }

    /// The bound of an attempt that was planned: to find it again, all that would be sent were to be written again.
    fn known(&self, part: u32, candidate: &Candidate) -> Option<AttemptRecord> {
        let first = self.firsts.get(usize::try_from(part).ok()?)?;
        let planned = self.planned();
        let known = planned.iter().find(|planned| planned.part == part)?;
        let is_same =
            *first == candidate.endpoint.index && known.model == candidate.model && known.prices == candidate.prices;
        is_same.then(|| known.clone())
    }

    fn total(&self, so_far: Option<Charge>, bound: &AttemptRecord) -> Usd {
        let planned = self.planned();
        let others = planned.iter().filter(|planned| planned.part != bound.part);
        let sum = others.chain([bound]).try_fold(so_far, |sum, record| Some(sum?.checked_add(charge(record)?)));
        in_money(sum.flatten())
    }

    fn planned(&self) -> MutexGuard<'_, Vec<AttemptRecord>> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
