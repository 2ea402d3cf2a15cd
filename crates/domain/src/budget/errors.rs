//! What can go wrong with money.

use chrono::{DateTime, Utc};

use super::{BudgetScope, LimitStatus, ResetInterval};
use crate::ids::GuardrailId;
use crate::money::Usd;

/// A limit that leaves no room for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {} limit of {} USD leaves no room for {wanted} USD", scope.as_str(), limit)]
pub struct LimitExceeded {
    /// Whose limit it is.
    pub scope: BudgetScope,
    /// The guardrail, where it is one's budget.
    pub guardrail_id: Option<GuardrailId>,
    /// True for the workspace's prepaid credit.
    pub is_credit: bool,
    /// The limit.
    pub limit: Usd,
    /// The period; `None` is for ever.
    pub reset: Option<ResetInterval>,
    /// What has been spent in the period.
    pub spent: Usd,
    /// What requests in flight may come to.
    pub reserved: Usd,
    /// What the request may come to.
    pub wanted: Usd,
    /// When the period ends.
    pub resets_at: Option<DateTime<Utc>>,
    /// True where another process has money of this limit and has not answered the store's request to return what it
    /// has free: it is unknown whether there is room.
    pub is_uncertain: bool,
}

impl LimitExceeded {
    pub(super) fn by(standing: &LimitStatus, wanted: Usd) -> Self {
        let LimitStatus { scope, guardrail_id, is_credit, limit, reset, spent, reserved, resets_at } = *standing;
        Self { scope, guardrail_id, is_credit, limit, reset, spent, reserved, wanted, resets_at, is_uncertain: false }
    }

    /// The same refusal of a request that holds so much already, which no other request keeps from it: as if it had
    /// asked for everything at once.
    #[must_use]
    pub fn beside(self, held: Usd) -> Self {
        let others = self.reserved.pico().saturating_sub(held.pico()).max(0);
        let wanted = self.wanted.checked_add(held).unwrap_or(Usd::from_pico(i64::MAX));
        Self { reserved: Usd::from_pico(others), wanted, ..self }
    }

    /// What may be reserved beside all that is spent and reserved; less than nothing where the limit was lowered.
    pub fn room(&self) -> Usd {
        Usd::from_pico(self.limit.pico().saturating_sub(self.spent.pico()).saturating_sub(self.reserved.pico()))
    }

    /// True where the request would fit if nothing were reserved: others may come to less than they reserved, so
    /// waiting for them may help.
    pub fn waits_for_others(&self) -> bool {
        self.reserved > Usd::ZERO && self.spent.checked_add(self.wanted).is_some_and(|sum| sum <= self.limit)
    }
}
