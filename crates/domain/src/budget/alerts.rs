//! Budget alerts: the thresholds of limits that spend has crossed.

use std::fmt;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::allowances::CounterPeriod;
use super::{Account, ResetInterval};
use crate::error::StoreError;
use crate::ids::{ApiKeyId, GuardrailId, WorkspaceId};
use crate::money::Usd;
use crate::usage::OutboxMessage;

/// A share of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlertThreshold {
    /// 50 %.
    Half,
    /// 80 %.
    FourFifths,
    /// 100 %.
    Whole,
}

impl AlertThreshold {
    /// All thresholds, lowest first.
    pub const ALL: [Self; 3] = [Self::Half, Self::FourFifths, Self::Whole];

    /// Returns the share in percent.
    pub fn percent(self) -> u8 {
        match self {
            Self::Half => 50,
            Self::FourFifths => 80,
            Self::Whole => 100,
        }
    }

    /// Returns the threshold of a share in percent.
    pub fn from_percent(percent: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|threshold| i64::from(threshold.percent()) == percent)
    }

    /// Returns true if `spent` is this share of the limit or more. Amounts are in picodollars.
    fn is_reached(self, limit: Usd, spent: i128) -> bool {
        spent.saturating_mul(100) >= i128::from(limit.pico()) * i128::from(self.percent())
    }
}

/// Returns the thresholds that spend crosses upwards, lowest first. Amounts are in picodollars. A limit of zero has no
/// thresholds, because no request can spend of it.
pub fn crossed_thresholds(limit: Usd, before: i128, after: i128) -> impl Iterator<Item = AlertThreshold> {
    AlertThreshold::ALL.into_iter().filter(move |threshold| {
        limit > Usd::ZERO && !threshold.is_reached(limit, before) && threshold.is_reached(limit, after)
    })
}

/// A threshold of a limit that was crossed in a period. Account, kind, base, limit, period and threshold identify it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetAlert {
    /// The workspace of the account.
    pub workspace_id: WorkspaceId,
    /// The account that the limit binds.
    pub account: Account,
    /// True for the prepaid credit of the workspace.
    pub is_credit: bool,
    /// The total spend of the account when the credit began; zero for other limits. It tells credits apart.
    pub base: Usd,
    /// The limit.
    pub limit: Usd,
    /// The period of the limit.
    pub period: CounterPeriod,
    /// The crossed threshold.
    pub threshold: AlertThreshold,
    /// The amount spent of the limit in the period when the threshold was crossed.
    pub spent: Usd,
    /// The time at which the spend was stored.
    pub at: DateTime<Utc>,
}

impl BudgetAlert {
    /// Returns the key of the account.
    pub fn api_key(&self) -> Option<ApiKeyId> {
        match self.account {
            Account::Workspace(_) => None,
            Account::Key(key) | Account::Guardrail(_, key) => Some(key),
        }
    }

    /// Returns the guardrail of the account.
    pub fn guardrail_id(&self) -> Option<GuardrailId> {
        match self.account {
            Account::Guardrail(id, _) => Some(id),
            Account::Workspace(_) | Account::Key(_) => None,
        }
    }

    /// Returns the interval of the period; `None` is all time.
    pub fn reset(&self) -> Option<ResetInterval> {
        match self.period {
            CounterPeriod::Lifetime => None,
            CounterPeriod::Calendar(interval, _) => Some(interval),
        }
    }

    /// Returns the start of the period.
    pub fn period_start(&self) -> Option<DateTime<Utc>> {
        match self.period {
            CounterPeriod::Lifetime => None,
            CounterPeriod::Calendar(_, start) => Some(start),
        }
    }

    /// Returns the end of the period.
    pub fn resets_at(&self) -> Option<DateTime<Utc>> {
        match self.period {
            CounterPeriod::Lifetime => None,
            CounterPeriod::Calendar(interval, start) => Some(interval.end_of(start)),
        }
    }

    /// Returns true for an alert of the same limit, period and threshold.
    pub fn is_same(&self, other: &Self) -> bool {
        let identity =
            |alert: &Self| (alert.account, alert.is_credit, alert.base, alert.limit, alert.period, alert.threshold);
        identity(self) == identity(other)
    }
}

/// The identity of the alert as text, from which ids of events derive.
impl fmt::Display for BudgetAlert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.period_start().map_or(0, |start| start.timestamp_millis());
        let reset = self.reset().map_or("lifetime", ResetInterval::as_str);
        let (credit, threshold) = (if self.is_credit { "credit" } else { "limit" }, self.threshold.percent());
        match self.account {
            Account::Workspace(id) => write!(f, "workspace {id}")?,
            Account::Key(key) => write!(f, "key {key}")?,
            Account::Guardrail(id, key) => write!(f, "guardrail {id} key {key}")?,
        }
        write!(f, " {credit} {} {} {reset} {start} {threshold}", self.base, self.limit)
    }
}

/// Stores budget alerts until they are published. [`super::BudgetStore::fold`] and [`super::BudgetStore::end`] add
/// them.
///
/// # Contract
/// - `publish` is one transaction: it marks the alert as published and adds its messages to the outbox, or changes
///   nothing. An alert is published once, over all processes.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait BudgetAlertStore: Send + Sync {
    /// Returns up to `limit` unpublished alerts, oldest first. Alerts that cannot be read are skipped.
    async fn unpublished(&self, limit: u64) -> Result<Vec<BudgetAlert>, StoreError>;

    /// Publishes an alert with its messages. Returns false, and adds nothing, if it does not exist or is published.
    async fn publish(&self, alert: &BudgetAlert, messages: &[OutboxMessage]) -> Result<bool, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crossed(limit: i64, before: i128, after: i128) -> Vec<u8> {
        crossed_thresholds(Usd::from_pico(limit), before, after).map(AlertThreshold::percent).collect()
    }

    #[test]
    fn thresholds_are_crossed_upwards_once() {
        assert_eq!(crossed(100, 0, 49), [0; 0]);
        assert_eq!(crossed(100, 49, 50), [50]);
        assert_eq!(crossed(100, 50, 79), [0; 0]);
        assert_eq!(crossed(100, 79, 100), [80, 100]);
        assert_eq!(crossed(100, 0, 1_000), [50, 80, 100]);
        assert_eq!(crossed(100, 100, 2_000), [0; 0]);
        assert_eq!(crossed(100, 90, 10), [0; 0]);
    }

    #[test]
    fn thresholds_are_exact_for_amounts_that_percentages_do_not_divide() {
        assert_eq!(crossed(3, 0, 1), [0; 0], "33 %");
        assert_eq!(crossed(3, 1, 2), [50], "66 %");
        assert_eq!(crossed(1, 0, 1), [50, 80, 100]);
        let most = i64::MAX;
        assert_eq!(crossed(most, i128::from(most) - 1, i128::from(most)), [100]);
    }

    #[test]
    fn limit_of_zero_and_spend_below_base_have_no_thresholds() {
        assert_eq!(crossed(0, -1, 5), [0; 0]);
        assert_eq!(crossed(100, -60, 20), [0; 0]);
        for threshold in AlertThreshold::ALL {
            assert_eq!(AlertThreshold::from_percent(threshold.percent().into()), Some(threshold));
        }
        assert_eq!(AlertThreshold::from_percent(51), None);
    }
}
