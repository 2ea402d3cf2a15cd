//! The money of a request: reserved before anything is sent, and more of it before anything more is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::{Either, select};

use super::attempt_log::{beginning, bound_tokens};
use super::plan::Part;
use super::router::Router;
use super::thrift::Thrift;
use crate::budget::{Claim, Overspent, Payer};
use crate::decision::{CallerPresence, Inquiry, SubmitDecisionError};
use crate::error::StoreError;
use crate::ids::{DecisionId, RequestId};
use crate::money::{Charge, Usd};
use crate::routing::Candidate;
use crate::usage::{AttemptRecord, TokenSource};

/// How long the first wait for others' money is; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(10);

/// What one limited request has reserved.
#[derive(Debug)]
pub(super) struct Funds {
    id: DecisionId,
    payer: Payer,
    request_id: RequestId,
    requested_model: String,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// When it was reserved, by the store's clock; `None` where nothing is.
    at: Option<DateTime<Utc>>,
    amount: Usd,
    /// The limit that left no room for more, and how long the store took to say so.
    refused: Option<(Overspent, Duration)>,
}

impl Funds {
    pub(super) fn new(id: DecisionId, payer: Payer, request_id: RequestId, requested_model: String) -> Self {
        Self { id, payer, request_id, requested_model, held: Mutex::default() }
    }

    /// How much is reserved.
    pub(super) fn amount(&self) -> Usd {
        self.held().amount
    }

    /// When it was reserved; `None` where nothing is.
    pub(super) fn at(&self) -> Option<DateTime<Utc>> {
        self.held().at
    }

    /// The limit that left no room for more, where one did.
    pub(super) fn refused(&self) -> Option<Overspent> {
        self.held().refused.map(|(overspent, _)| overspent)
    }

    /// Callers hear of what failed before; that there was more to try, and no money for it, the log says.
    pub(super) fn tell_of_refusal(&self) {
        if let Some(overspent) = self.refused() {
            tracing::info!(
                decision.id = %self.id,
                limit.scope = overspent.scope.as_str(),
                limit_usd = %overspent.limit,
                wanted_usd = %overspent.wanted,
                "another attempt was not made: a limit leaves no room for it"
            );
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why an attempt was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    /// No limit leaves room for it; which, each payer's [`Funds`] say.
    Overspent,
    /// The money could not be reserved, because the store failed.
    Store,
}

/// How long others are waited for, who may need less than they have reserved: a moment in all, from the first refusal on.
pub(super) struct Patience {
    since: Option<Duration>,
    next: Duration,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { since: None, next: FIRST_WAIT }
    }

    /// Waits before the ledger is asked again; false where there is no more waiting, or nobody to wait with.
    pub(super) async fn wait(&mut self, router: &Router, caller: &Arc<dyn CallerPresence>) -> bool {
        let now = router.ports.clock.monotonic();
        let waited = now.saturating_sub(*self.since.get_or_insert(now));
        let left = router.settings.budget_wait.saturating_sub(waited);
        if left.is_zero() {
            return false;
        }
        let sleep = router.ports.timer.sleep(self.next.min(left));
        self.next = self.next.saturating_mul(2);
        matches!(select(sleep, caller.left()).await, Either::Left(_))
    }
}

pub(super) fn charge(record: &AttemptRecord) -> Option<Charge> {
    record.prices.charge(record.input_tokens, record.output_tokens)
}

/// Rounded up; what is beyond all money is the most that there is, for which no limit has room.
pub(super) fn in_money(charge: Option<Charge>) -> Usd {
    charge.and_then(Charge::round_up).unwrap_or(Usd::from_pico(i64::MAX))
}

/// What attempts come to.
pub(super) fn total(attempts: &[AttemptRecord]) -> Usd {
    in_money(attempts.iter().try_fold(Charge::ZERO, |sum, attempt| sum.checked_add(charge(attempt)?)))
}

/// The attempt with as many tokens at most as the amount pays for: where some of what was reserved is not needed, what
/// is added to it is less than the attempt may come to, and all together is never charged at more than is reserved.
fn within(attempt: &AttemptRecord, amount: Usd) -> AttemptRecord {
    let prices = attempt.prices;
    let most = attempt.input_tokens.saturating_add(attempt.output_tokens);
    let fits = |tokens: u64| {
        let (input, output) = prices.dearest(tokens);
        prices.charge(input, output).and_then(Charge::round_up).is_some_and(|cost| cost <= amount)
    };
    // So many fit, and so many do not.
    let (mut fit, mut beyond) = if fits(most) { (most, most) } else { (0, most) };
    while beyond - fit > 1 {
        let middle = fit + (beyond - fit) / 2;
        if fits(middle) { fit = middle } else { beyond = middle }
    }
    let (input_tokens, output_tokens) = prices.dearest(fit);
    AttemptRecord { input_tokens, output_tokens, ..attempt.clone() }
}

impl Router {
    /// An attempt that comes to the most that it may.
    pub(super) fn bound(&self, candidate: &Candidate, part: u32, inquiry: &Inquiry) -> AttemptRecord {
        let endpoint = &candidate.endpoint;
        let bytes = self.ports.provider.outbound_bytes(endpoint, inquiry);
        let tokens = bound_tokens(self.settings.token_factor, bytes, endpoint.token_overhead);
        let (input_tokens, output_tokens) = candidate.prices.dearest(tokens);
        let record = beginning(candidate, part, Duration::ZERO);
        AttemptRecord { input_tokens, output_tokens, token_source: TokenSource::Bound, ..record }
    }

    /// The first attempt of each part, at the most that it may come to.
    pub(super) fn planned(&self, parts: &[Part]) -> Vec<AttemptRecord> {
        let firsts = (0..).zip(parts).filter_map(|(number, part)| Some((number, part, part.candidates.first()?)));
        firsts.map(|(number, part, first)| self.bound(first, number, &part.inquiry)).collect()
    }

    /// Reserves what the planned attempts may come to. Where a limit leaves no room for them, cheaper ones of the same
    /// parts are planned instead and come first. What only others' reservations keep out waits a moment for them, as
    /// long as the caller does. Returns the attempts that are paid for.
    pub(super) async fn reserve(
        &self,
        funds: &Funds,
        planned: Vec<AttemptRecord>,
        parts: &mut [Part],
        caller: &Arc<dyn CallerPresence>,
    ) -> Result<Vec<AttemptRecord>, SubmitDecisionError> {
        let Err(mut refused) = self.raise(funds, total(&planned), &planned).await? else { return Ok(planned) };
        let (mut thrift, mut patience) = (Thrift::new(self, parts, &planned), Patience::new());
        loop {
            let mut last = refused;
            // What is refused costs more than there is room for, and what is tried next costs no more than that.
            while thrift.fit_into(last.room()) {
                let cheaper = thrift.planned();
                let Err(overspent) = self.raise(funds, total(&cheaper), &cheaper).await? else {
                    thrift.put_first(parts);
                    return Ok(cheaper);
                };
                last = overspent;
            }
            let cheapest = Overspent { wanted: thrift.least(), ..last };
            if !cheapest.waits_for_others() || !patience.wait(self, caller).await {
                self.count_refusal(funds);
                return Err(SubmitDecisionError::Overspent(refused));
            }
            thrift.begin_again();
            match self.raise(funds, total(&planned), &planned).await? {
                Ok(()) => return Ok(planned),
                Err(overspent) => refused = overspent,
            }
        }
    }

    /// Reserves so much in all. `attempts` are those that the reservation is made for where it is the first; otherwise
    /// the first of them stands for what is added.
    pub(super) async fn raise(
        &self,
        funds: &Funds,
        to: Usd,
        attempts: &[AttemptRecord],
    ) -> Result<Result<(), Overspent>, StoreError> {
        let held = funds.amount();
        let Some(more) = to.pico().checked_sub(held.pico()).filter(|more| *more > 0).map(Usd::from_pico) else {
            return Ok(Ok(()));
        };
        let began = self.ports.clock.monotonic();
        let reserved = if funds.at().is_some() {
            let attempts: Vec<AttemptRecord> = attempts.iter().map(|attempt| within(attempt, more)).take(1).collect();
            self.ports.ledger.extend(&funds.id, more, &attempts).await?.map(|()| None)
        } else {
            let claim = Claim {
                id: funds.id.clone(),
                payer: funds.payer.clone(),
                amount: to,
                lease: self.settings.reservation_lease,
                request_id: funds.request_id.clone(),
                requested_model: funds.requested_model.clone(),
                attempts: attempts.into(),
            };
            self.ports.ledger.reserve(claim).await?.map(|reservation| Some(reservation.at))
        };
        let took = self.ports.clock.monotonic().saturating_sub(began);
        if reserved.is_ok() {
            self.ports.meter.reserved(None, took);
        }
        let reserved = reserved.map_err(|overspent| overspent.beside(held));
        let mut held = funds.held();
        Ok(match reserved {
            Ok(at) => {
                held.amount = to;
                held.at = held.at.or(at);
                Ok(())
            }
            Err(overspent) => {
                held.refused = Some((overspent, took));
                Err(overspent)
            }
        })
    }

    /// Counts the last refusal: once for each attempt that there is no money for, however often it was looked again, and
    /// not where the request can do without.
    pub(super) fn count_refusal(&self, funds: &Funds) {
        let refused = funds.held().refused;
        if let Some((overspent, took)) = refused {
            self.ports.meter.reserved(Some(overspent.scope), took);
        }
    }

    /// Gives everything back, because nothing was sent.
    pub(super) async fn release(&self, funds: Option<&Arc<Funds>>) {
        let Some(funds) = funds.filter(|funds| funds.at().is_some()) else { return };
        if self.ports.ledger.release(&funds.id).await.is_ok() {
            return;
        }
        // It may have been refused with others for what one of them met. What is not given back is charged in the end.
        self.ports.timer.sleep(FIRST_WAIT).await;
        if let Err(error) = self.ports.ledger.release(&funds.id).await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(
                decision.id = %funds.id,
                amount_usd = %funds.amount(),
                error,
                "money that was not needed could not be given back: it counts as used once its lease is over"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::TokenPrices;

    /// An attempt of so many tokens at that price.
    fn attempt(tokens: u64, price: &str) -> AttemptRecord {
        AttemptRecord {
            provider: "acme".to_owned(),
            model: "acme/judge".parse().unwrap(),
            upstream_model: "judge".to_owned(),
            part: 0,
            outcome: "cancelled".to_owned(),
            upstream_status: None,
            began: Duration::ZERO,
            latency: Duration::ZERO,
            input_tokens: tokens,
            output_tokens: 0,
            token_source: TokenSource::Bound,
            prices: TokenPrices { prompt: price.parse().unwrap(), completion: "0".parse().unwrap() },
        }
    }

    #[test]
    fn attempt_keeps_all_tokens_when_its_bound_equals_the_amount() {
        let tokens = |attempt: &AttemptRecord, pico| {
            let kept = within(attempt, Usd::from_pico(pico));
            assert!(total(std::slice::from_ref(&kept)) <= Usd::from_pico(pico.max(0)));
            kept.input_tokens + kept.output_tokens
        };
        let whole = attempt(1_000, "0.000000000001");
        assert_eq!([0, 1, 999, 1_000, 1_001].map(|pico| tokens(&whole, pico)), [0, 1, 999, 1_000, 1_000]);
        // Half a picodollar a token: the sum is rounded up, so three tokens come to two picodollars.
        let halves = attempt(3, "0.0000000000005");
        assert_eq!([0, 1, 2].map(|pico| tokens(&halves, pico)), [0, 2, 3]);
        assert_eq!(tokens(&attempt(7, "0"), 0), 7, "free tokens fit everywhere");
    }
}
