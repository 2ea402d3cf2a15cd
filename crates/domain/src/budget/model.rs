//! Payers, accounts, spend limits and their periods.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Datelike, Days, Months, NaiveTime, TimeDelta, Utc};

use crate::ids::{ApiKeyId, DecisionId, GuardrailId, RequestId, WorkspaceId};
use crate::money::Usd;
use crate::usage::AttemptRecord;

/// A spend limit: an amount per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpendLimit {
    /// The most that may be spent in a period; positive.
    pub amount: Usd,
    /// The period; `None` is all time.
    pub reset: Option<ResetInterval>,
}

/// The budgets of a workspace by period, each independent; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkspaceBudgets {
    /// A UTC day.
    pub daily: Option<Usd>,
    /// Monday to Monday.
    pub weekly: Option<Usd>,
    /// A calendar month.
    pub monthly: Option<Usd>,
    /// All time.
    pub lifetime: Option<Usd>,
}

impl WorkspaceBudgets {
    /// Returns the budgets that are set.
    pub fn limits(&self) -> impl Iterator<Item = SpendLimit> {
        let all = [
            (self.daily, Some(ResetInterval::Daily)),
            (self.weekly, Some(ResetInterval::Weekly)),
            (self.monthly, Some(ResetInterval::Monthly)),
            (self.lifetime, None),
        ];
        all.into_iter().filter_map(|(amount, reset)| amount.map(|amount| SpendLimit { amount, reset }))
    }

    /// Returns the budget of a period; `None` is all time.
    pub fn of(&self, period: Option<ResetInterval>) -> Option<Usd> {
        self.limits().find(|limit| limit.reset == period).map(|limit| limit.amount)
    }
}

named_enum! {
    /// The scope of a limit.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum BudgetScope {
        /// The workspace's credit or one of its budgets.
        Workspace = "workspace",
        /// The key's own limit.
        Key = "key",
        /// The budget of a guardrail, counted for the key alone.
        Guardrail = "guardrail",
    }
}

/// An account, whose spend is counted in total and by day, week and month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Account {
    /// The spend of a workspace.
    Workspace(WorkspaceId),
    /// The spend of a key.
    Key(ApiKeyId),
    /// The spend of a key under a guardrail.
    Guardrail(GuardrailId, ApiKeyId),
}

impl Account {
    /// Returns the scope of its limits.
    pub fn scope(&self) -> BudgetScope {
        match self {
            Self::Workspace(_) => BudgetScope::Workspace,
            Self::Key(_) => BudgetScope::Key,
            Self::Guardrail(..) => BudgetScope::Guardrail,
        }
    }
}

/// The payer of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payer {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The key.
    pub api_key: ApiKeyId,
    /// The guardrails of the request, the workspace's first; each at most once.
    pub guardrails: Vec<GuardrailId>,
}

impl Payer {
    /// Returns all accounts that a request of this payer counts in.
    pub fn accounts(&self) -> impl Iterator<Item = Account> {
        let own = [Account::Workspace(self.workspace_id), Account::Key(self.api_key)];
        own.into_iter().chain(self.guardrails.iter().map(|id| Account::Guardrail(*id, self.api_key)))
    }
}

/// The status of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitStatus {
    /// The scope of the limit.
    pub scope: BudgetScope,
    /// The guardrail, if the limit is its budget.
    pub guardrail_id: Option<GuardrailId>,
    /// True for the workspace's prepaid credit: `limit` is then the sum of the credit since the workspace last had
    /// none, and `spent` the spend of it.
    pub is_credit: bool,
    /// The most that may be spent in the period.
    pub limit: Usd,
    /// The period; `None` is all time.
    pub reset: Option<ResetInterval>,
    /// The amount spent in the period.
    pub spent: Usd,
    /// The amount held for running requests, and the free allowances of other processes.
    pub reserved: Usd,
    /// The end of the period.
    pub resets_at: Option<DateTime<Utc>>,
}

impl LimitStatus {
    /// Returns the amount that is not spent; negative after the limit was lowered.
    pub fn unspent(&self) -> Usd {
        Usd::from_pico(self.limit.pico().saturating_sub(self.spent.pico()))
    }

    /// Returns the amount that may still be held; negative after the limit was lowered.
    pub fn room(&self) -> Usd {
        Usd::from_pico(self.unspent().pico().saturating_sub(self.reserved.pico()))
    }
}

/// The spend of a key, in total and in the current UTC day, week and month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeySpend {
    /// Of all time.
    pub total: Usd,
    /// Today.
    pub daily: Usd,
    /// This week, from Monday.
    pub weekly: Usd,
    /// This month.
    pub monthly: Usd,
    /// As [`LimitStatus::reserved`], under the key's own limit; zero without a limit.
    pub reserved: Usd,
}

impl KeySpend {
    /// Returns the spend of the current period of a limit; without a period, that of all time.
    pub fn of(&self, reset: Option<ResetInterval>) -> Usd {
        match reset {
            None => self.total,
            Some(ResetInterval::Daily) => self.daily,
            Some(ResetInterval::Weekly) => self.weekly,
            Some(ResetInterval::Monthly) => self.monthly,
        }
    }
}

/// A request to hold an amount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldRequest {
    /// The id of the request and of its usage record; settling it ends the hold.
    pub id: DecisionId,
    /// The payer.
    pub payer: Payer,
    /// The amount; zero is always granted.
    pub amount: Usd,
    /// False if no limit applies to the payer: the hold then only records the attempts, in case the process dies.
    pub is_limited: bool,
    /// The HTTP request.
    pub request_id: RequestId,
    /// The model as the caller named it.
    pub requested_model: String,
    /// The client's address; `None` if it is unknown or not recorded.
    pub client_address: Option<IpAddr>,
    /// The attempts with their upper bounds, which sum to `amount`.
    pub attempts: Arc<[AttemptRecord]>,
    /// The number of those that begin with the hold; the others begin in later stages. Attempts that have begun are
    /// charged if the process dies; without any the hold is released then.
    pub begun: usize,
}

/// An amount that is held for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The request's id.
    pub id: DecisionId,
    /// The time by the store's clock. The charge belongs to the periods of this time, whenever it is settled.
    pub at: DateTime<Utc>,
    /// The payer.
    pub payer: Payer,
    /// The held amount.
    pub amount: Usd,
}

/// The result of retention.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PruneReport {
    /// Removed records.
    pub removed: u64,
    /// Old records that stay because they are unreadable.
    pub unreadable: u64,
    /// The ids of the first unreadable records, up to [`PruneReport::NAMED`].
    pub named: Vec<String>,
}

impl PruneReport {
    /// The most named records.
    pub const NAMED: usize = 10;

    /// Counts an unreadable record.
    pub fn cannot_read(&mut self, id: String) {
        self.unreadable += 1;
        if self.named.len() < Self::NAMED {
            self.named.push(id);
        }
    }
}

/// A counter or record that differs from the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discrepancy {
    /// The counter or record, such as `workspace 0199… daily 2026-11-21`.
    pub what: String,
    /// The expected amount.
    pub expected: Usd,
    /// The stored amount.
    pub found: Usd,
}

/// The result of an audit of the ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerAudit {
    /// The number of records whose cost was recomputed from tokens and prices.
    pub records: u64,
    /// The number of compared counters.
    pub counters: u64,
    /// The number of compared allowances.
    pub allowances: u64,
    /// The number of compared sums of usage a day.
    pub sums: u64,
    /// All discrepancies.
    pub discrepancies: Vec<Discrepancy>,
}

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

named_enum! {
    /// A calendar period in UTC; weeks start on Monday.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum ResetInterval {
        /// From midnight to midnight.
        Daily = "daily",
        /// From Monday to Monday.
        Weekly = "weekly",
        /// From the first to the first.
        Monthly = "monthly",
    }
}

impl ResetInterval {
    /// Returns the beginning of the period that contains `at`.
    pub fn start_of(self, at: DateTime<Utc>) -> DateTime<Utc> {
        let day = at.date_naive();
        let first = match self {
            Self::Daily => Some(day),
            Self::Weekly => day.checked_sub_days(Days::new(day.weekday().num_days_from_monday().into())),
            Self::Monthly => day.with_day(1),
        };
        // Such a day is missing only before the first representable year.
        first.unwrap_or(day).and_time(NaiveTime::MIN).and_utc()
    }

    /// Returns the end of the period that contains `at`.
    pub fn end_of(self, at: DateTime<Utc>) -> DateTime<Utc> {
        let start = self.start_of(at).date_naive();
        let next = match self {
            Self::Daily => start.checked_add_days(Days::new(1)),
            Self::Weekly => start.checked_add_days(Days::new(7)),
            Self::Monthly => start.checked_add_months(Months::new(1)),
        };
        next.unwrap_or(start).and_time(NaiveTime::MIN).and_utc()
    }
}

/// The longest time of a running request: retention keeps the periods that were current within this time.
const LONGEST_REQUEST: TimeDelta = TimeDelta::hours(1);

/// Returns the time before which charged records may be removed, if they are kept for `older_than`.
///
/// Records of the current day, week and month stay, because limits count them. So do records of periods that were
/// current an hour ago, because a request of that time may still increase its hold.
pub fn prunable_before(now: DateTime<Utc>, older_than: Duration) -> DateTime<Utc> {
    let old = TimeDelta::from_std(older_than).ok().and_then(|age| now.checked_sub_signed(age));
    let needed = now.checked_sub_signed(LONGEST_REQUEST).unwrap_or(now);
    let running = ResetInterval::ALL.map(|interval| interval.start_of(needed));
    running.into_iter().fold(old.unwrap_or(DateTime::<Utc>::MIN_UTC), DateTime::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn utc(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[rstest]
    #[case(ResetInterval::Daily, "2026-11-21T19:20:20Z", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z")]
    #[case(ResetInterval::Weekly, "2026-11-21T19:20:20Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z")]
    #[case(ResetInterval::Weekly, "2026-11-16T00:00:00Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z")]
    #[case(ResetInterval::Weekly, "2027-01-01T00:00:00Z", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z")]
    #[case(ResetInterval::Monthly, "2028-02-29T23:59:59.999Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z")]
    #[case(ResetInterval::Monthly, "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z")]
    fn periods_are_calendar_periods(
        #[case] interval: ResetInterval,
        #[case] at: &str,
        #[case] start: &str,
        #[case] end: &str,
    ) {
        assert_eq!((interval.start_of(utc(at)), interval.end_of(utc(at))), (utc(start), utc(end)));
    }
}
