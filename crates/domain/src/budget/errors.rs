//! Errors of limits.

use chrono::{DateTime, Utc};

use super::{BudgetScope, LimitStatus, ResetInterval};
use crate::ids::GuardrailId;
use crate::money::Usd;

/// A limit that a request would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {} limit of {} USD does not allow another {wanted} USD", scope.as_str(), limit)]
pub struct LimitExceeded {
    /// The scope of the limit.
    pub scope: BudgetScope,
    /// The guardrail, if the limit is its budget.
    pub guardrail_id: Option<GuardrailId>,
    /// True for the workspace's prepaid credit.
    pub is_credit: bool,
    /// The limit.
    pub limit: Usd,
    /// The period; `None` is all time.
    pub reset: Option<ResetInterval>,
    /// The amount spent in the period.
    pub spent: Usd,
    /// The amount held for running requests.
    pub reserved: Usd,
    /// The upper bound of the request.
    pub wanted: Usd,
    /// The end of the period.
    pub resets_at: Option<DateTime<Utc>>,
    /// True if another process has an allowance of this limit and has not answered its recall: the room is unknown.
    pub is_uncertain: bool,
}

impl LimitExceeded {
    pub(super) fn by(status: &LimitStatus, wanted: Usd) -> Self {
        let LimitStatus { scope, guardrail_id, is_credit, limit, reset, spent, reserved, resets_at } = *status;
        Self { scope, guardrail_id, is_credit, limit, reset, spent, reserved, wanted, resets_at, is_uncertain: false }
    }

    /// Returns the same error for a request that already holds an amount: as if it had asked for everything at once.
    #[must_use]
    pub fn including_held(self, held: Usd) -> Self {
        let others = self.reserved.pico().saturating_sub(held.pico()).max(0);
        let wanted = self.wanted.checked_add(held).unwrap_or(Usd::from_pico(i64::MAX));
        Self { reserved: Usd::from_pico(others), wanted, ..self }
    }

    /// Returns the amount that may still be held; negative after the limit was lowered.
    pub fn room(&self) -> Usd {
        Usd::from_pico(self.limit.pico().saturating_sub(self.spent.pico()).saturating_sub(self.reserved.pico()))
    }

    /// Returns true if the request would fit without any holds. Waiting may then help, because requests may cost less
    /// than their holds.
    pub fn waits_for_others(&self) -> bool {
        self.reserved > Usd::ZERO && self.spent.checked_add(self.wanted).is_some_and(|sum| sum <= self.limit)
    }
}
