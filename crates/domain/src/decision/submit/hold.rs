//! The holds of requests in the ledger: placed before the first attempt, increased before each further one, released.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::bounds::{Bounds, limit_to};
use super::request::Request;
use crate::budget::{Ledger, LimitExceeded};
use crate::decision::{ClientConnection, DecisionSettings, Metrics};
use crate::error::StoreError;
use crate::money::Usd;
use crate::system::TimeSource;
use crate::usage::AttemptRecord;

/// The first wait; each further one is twice as long.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(10);

/// The total time that a request or an attempt may wait, from its first rejection on.
pub(super) struct WaitBudget {
    whole: Duration,
    since: Option<Duration>,
    next: Duration,
}

impl WaitBudget {
    pub(super) fn new(whole: Duration) -> Self {
        Self { whole, since: None, next: FIRST_WAIT }
    }

    /// Waits before the next try. Returns false if the budget is used up or the client disconnects.
    pub(super) async fn wait(&mut self, time: &TimeSource, client: &Arc<dyn ClientConnection>) -> bool {
        let now = time.monotonic();
        let waited = now.saturating_sub(*self.since.get_or_insert(now));
        let left = self.whole.saturating_sub(waited);
        if left.is_zero() {
            return false;
        }
        let sleep = time.sleep(self.next.min(left));
        self.next = self.next.saturating_mul(2);
        matches!(select(sleep, client.disconnected()).await, Either::Left(_))
    }
}

/// Returns the error for a request that waits for holds of a process that does not respond.
pub(super) fn unknown_room() -> StoreError {
    StoreError::unavailable("a process with allowances of the limit does not respond")
}

/// Plans the holds of requests: acquires, increases and releases them in the ledger.
pub(in crate::decision) struct HoldPlanner {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) metrics: Arc<dyn Metrics>,
    pub(in crate::decision) time: TimeSource,
    pub(super) settings: Arc<DecisionSettings>,
    pub(super) bounds: Bounds,
}

impl HoldPlanner {
    /// Holds `amount` in total for a request. The first hold is for all of `attempts`, of which the first `starting` begin
    /// with it; an increase is for the first one.
    pub(super) async fn increase_to(
        &self,
        request: &Request,
        amount: Usd,
        (attempts, starting): (&[AttemptRecord], usize),
    ) -> Result<Result<(), LimitExceeded>, StoreError> {
        let (before, is_first) = {
            let hold = request.lock_hold();
            (hold.amount, hold.at.is_none())
        };
        let more = Usd::from_pico(amount.pico().saturating_sub(before.pico()).max(0));
        // No account can hold the largest amount. An unlimited request proceeds without a hold of it.
        let is_out_of_range = !request.is_limited && amount == Usd::from_pico(i64::MAX);
        if !is_first && (more == Usd::ZERO || is_out_of_range) {
            let mut hold = request.lock_hold();
            hold.amount = hold.amount.max(amount);
            return Ok(Ok(()));
        }
        // The latency of the ledger counts for limited requests only.
        let now = || if request.is_limited { self.time.monotonic() } else { Duration::ZERO };
        let began = now();
        let granted = if is_first {
            let (amount, attempts) = if is_out_of_range { (Usd::ZERO, &[][..]) } else { (amount, attempts) };
            self.ledger.reserve(request.hold_request(amount, attempts, starting)).await?.map(|hold| Some(hold.at))
        } else {
            let attempts: Vec<AttemptRecord> = attempts.iter().map(|attempt| limit_to(attempt, more)).take(1).collect();
            self.ledger.increase(&request.id, more, &attempts).await?.map(|()| None)
        };
        let took = now().saturating_sub(began);
        if granted.is_ok() && request.is_limited {
            self.metrics.record_hold(None, took);
        }
        let granted = granted.map_err(|exceeded| exceeded.including_held(before));
        let mut hold = request.lock_hold();
        Ok(match granted {
            Ok(at) => {
                hold.amount = amount;
                hold.at = hold.at.or(at);
                Ok(())
            }
            Err(exceeded) => {
                hold.rejection = Some((exceeded, took));
                Err(exceeded)
            }
        })
    }

    /// Records the attempts of a later stage, whose bounds are held: from now on they are charged if the process dies.
    pub(super) async fn begin_stage(&self, request: &Request, attempts: &[AttemptRecord]) -> Result<(), StoreError> {
        // An increase by nothing exceeds no limit.
        self.ledger.increase(&request.id, Usd::ZERO, attempts).await.map(drop)
    }

    /// Counts the last rejection: once for each attempt that is not made, regardless of the number of ledger calls, and
    /// not for optional attempts. Returns it.
    pub(super) fn count_rejection(&self, request: &Request) -> Option<LimitExceeded> {
        let (exceeded, took) = request.lock_hold().rejection?;
        self.metrics.record_hold(Some(exceeded.scope), took);
        Some(exceeded)
    }

    /// Counts and logs a rejected increase. The client receives the failures of earlier attempts.
    pub(super) fn report_rejection(&self, request: &Request) {
        if let Some(exceeded) = self.count_rejection(request) {
            tracing::info!(
                decision.id = %request.id,
                limit.scope = exceeded.scope.as_str(),
                limit_usd = %exceeded.limit,
                wanted_usd = %exceeded.wanted,
                "attempt not made: limit exceeded"
            );
        }
    }

    /// Releases the hold of a request without attempts.
    pub(super) async fn release(&self, request: &Request) {
        let is_granted = request.lock_hold().at.is_some();
        if !is_granted || self.ledger.release(&request.id).await.is_ok() {
            return;
        }
        // Another request of the same batch may have failed the transaction. A hold that is not released is charged.
        self.time.sleep(FIRST_WAIT).await;
        if let Err(error) = self.ledger.release(&request.id).await {
            let error: &dyn std::error::Error = &error;
            let amount = request.lock_hold().amount;
            tracing::warn!(
                decision.id = %request.id,
                amount_usd = %amount,
                error,
                "hold not released; it ends with the process"
            );
        }
    }

    /// Returns the wait budget of one attempt, within the request's deadline.
    pub(super) fn wait_budget(&self, request: &Request) -> WaitBudget {
        let left = self.time.time_left(request.began, self.settings.deadline);
        WaitBudget::new(left.min(self.settings.budget_wait))
    }
}
