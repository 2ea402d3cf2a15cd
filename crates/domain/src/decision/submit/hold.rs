//! The hold of a request in the ledger: placed before the first attempt, increased before each further one, released.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::bounds::limit_to;
use super::wait_budget::{FIRST_WAIT, WaitBudget};
use crate::budget::{HoldRequest, Ledger, LimitExceeded, Payer};
use crate::decision::Metrics;
use crate::decision::{DecisionSettings, RequestOrigin};
use crate::error::StoreError;
use crate::ids::DecisionId;
use crate::money::Usd;
use crate::system::{IdGenerator, TimeSource};
use crate::usage::AttemptRecord;

/// Returns the error for a request that waits for holds of a process that does not respond.
pub(super) fn unknown_room() -> StoreError {
    StoreError::unavailable("a process with allowances of the limit does not respond")
}

/// The ports and settings of holds.
pub(super) struct HoldPorts {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) metrics: Arc<dyn Metrics>,
    pub(super) ids: Arc<dyn IdGenerator>,
    pub(super) time: TimeSource,
    pub(super) settings: Arc<DecisionSettings>,
}

impl HoldPorts {
    /// Creates the hold of a request, with an amount of zero.
    pub(super) fn open(
        self: &Arc<Self>,
        (payer, is_limited): (Payer, bool),
        origin: RequestOrigin,
        requested_model: String,
    ) -> Arc<HoldHandle> {
        Arc::new(HoldHandle {
            ports: Arc::clone(self),
            id: self.ids.decision_id(),
            payer,
            is_limited,
            origin,
            requested_model,
            state: Mutex::default(),
        })
    }
}

/// The hold of one request, before and after its grant: acquires, increases and releases it in the ledger.
pub(super) struct HoldHandle {
    ports: Arc<HoldPorts>,
    id: DecisionId,
    payer: Payer,
    is_limited: bool,
    origin: RequestOrigin,
    requested_model: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The time of the grant, by the store's clock; `None` before a grant.
    at: Option<DateTime<Utc>>,
    amount: Usd,
    /// The limit that rejected the last increase, and the latency of the ledger.
    rejection: Option<(LimitExceeded, Duration)>,
}

/// The reason why an attempt was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HoldRejection {
    /// A limit has no room for it: [`HoldHandle::rejection`].
    LimitExceeded,
    /// The ledger failed.
    Store,
}

impl HoldHandle {
    pub(super) fn id(&self) -> &DecisionId {
        &self.id
    }

    pub(super) fn payer(&self) -> &Payer {
        &self.payer
    }

    pub(super) fn origin(&self) -> &RequestOrigin {
        &self.origin
    }

    /// Returns the held amount.
    pub(super) fn amount(&self) -> Usd {
        self.state().amount
    }

    /// Returns the held amount if a limit applies.
    pub(super) fn limited_amount(&self) -> Option<Usd> {
        self.is_limited.then(|| self.amount())
    }

    /// Returns the time of the grant; `None` before a grant.
    pub(super) fn at(&self) -> Option<DateTime<Utc>> {
        self.state().at
    }

    /// Returns the limit that rejected the last increase.
    pub(super) fn rejection(&self) -> Option<LimitExceeded> {
        self.state().rejection.map(|(exceeded, _)| exceeded)
    }

    /// Holds `amount` in total. The first hold is for all of `attempts`, an increase for the first one.
    pub(super) async fn increase_to(
        &self,
        amount: Usd,
        attempts: &[AttemptRecord],
    ) -> Result<Result<(), LimitExceeded>, StoreError> {
        let (held, is_first) = (self.amount(), self.at().is_none());
        let more = Usd::from_pico(amount.pico().saturating_sub(held.pico()).max(0));
        // No account can hold the largest amount. An unlimited request proceeds without a hold of it.
        let is_out_of_range = !self.is_limited && amount == Usd::from_pico(i64::MAX);
        if !is_first && (more == Usd::ZERO || is_out_of_range) {
            let mut state = self.state();
            state.amount = state.amount.max(amount);
            return Ok(Ok(()));
        }
        let began = self.time().monotonic();
        let granted = if is_first {
            let (amount, attempts) = if is_out_of_range { (Usd::ZERO, &[][..]) } else { (amount, attempts) };
            self.ports.ledger.reserve(self.request(amount, attempts)).await?.map(|hold| Some(hold.at))
        } else {
            let attempts: Vec<AttemptRecord> = attempts.iter().map(|attempt| limit_to(attempt, more)).take(1).collect();
            self.ports.ledger.increase(&self.id, more, &attempts).await?.map(|()| None)
        };
        let took = self.time().monotonic().saturating_sub(began);
        if granted.is_ok() && self.is_limited {
            self.ports.metrics.record_hold(None, took);
        }
        let granted = granted.map_err(|exceeded| exceeded.including_held(held));
        let mut state = self.state();
        Ok(match granted {
            Ok(at) => {
                state.amount = amount;
                state.at = state.at.or(at);
                Ok(())
            }
            Err(exceeded) => {
                state.rejection = Some((exceeded, took));
                Err(exceeded)
            }
        })
    }

    fn request(&self, amount: Usd, attempts: &[AttemptRecord]) -> HoldRequest {
        HoldRequest {
            id: self.id.clone(),
            payer: self.payer.clone(),
            amount,
            is_limited: self.is_limited,
            request_id: self.origin.request_id.clone(),
            requested_model: self.requested_model.clone(),
            client_address: self.origin.client_address,
            attempts: attempts.into(),
        }
    }

    /// Counts the last rejection: once for each attempt that is not made, regardless of the number of ledger calls, and
    /// not for optional attempts.
    pub(super) fn count_rejection(&self) {
        let rejection = self.state().rejection;
        if let Some((exceeded, took)) = rejection {
            self.ports.metrics.record_hold(Some(exceeded.scope), took);
        }
    }

    /// Counts and logs a rejected increase. The client receives the failures of earlier attempts.
    pub(super) fn report_rejection(&self) {
        self.count_rejection();
        if let Some(exceeded) = self.rejection() {
            tracing::info!(
                decision.id = %self.id,
                limit.scope = exceeded.scope.as_str(),
                limit_usd = %exceeded.limit,
                wanted_usd = %exceeded.wanted,
                "attempt not made: limit exceeded"
            );
        }
    }

    /// Releases the hold of a request without attempts.
    pub(super) async fn release(&self) {
        if self.at().is_none() || self.ports.ledger.release(&self.id).await.is_ok() {
            return;
        }
        // Another request of the same batch may have failed the transaction. A hold that is not released is charged.
        self.time().sleep(FIRST_WAIT).await;
        if let Err(error) = self.ports.ledger.release(&self.id).await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(
                decision.id = %self.id,
                amount_usd = %self.amount(),
                error,
                "hold not released; it ends with the process"
            );
        }
    }

    /// Returns the wait budget of one attempt, within the request's deadline.
    pub(super) fn wait_budget(&self) -> WaitBudget {
        let settings = &self.ports.settings;
        let left = self.origin.began.map(|began| self.time().time_left(began, settings.deadline));
        WaitBudget::new(left.map_or(settings.budget_wait, |left| left.min(settings.budget_wait)))
    }

    pub(super) fn time(&self) -> &TimeSource {
        &self.ports.time
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
