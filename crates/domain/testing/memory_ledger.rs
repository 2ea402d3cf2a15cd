//! The ledger in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::memory_state::{Counter, CounterKey, LedgerState, State};
use super::memory_store::MemoryLedger;
use crate::budget::{
    Account, Hold, HoldRequest, Ledger, LimitExceeded, LimitStatus, Payer, ResetInterval, SpendLimit, UsageCharge,
    admit,
};
use crate::error::StoreError;
use crate::ids::{DecisionId, WorkspaceId};
use crate::money::Usd;
use crate::usage::{AttemptRecord, UsageOutcome, UsageRecord};
use crate::workspace::Workspace;

/// The amounts that are added to all accounts of a payer.
pub(super) struct Posting {
    payer: Payer,
    at: DateTime<Utc>,
    spent: Usd,
    reserved: Usd,
}

impl Posting {
    pub(super) fn spent(record: &UsageRecord) -> Self {
        Self { payer: payer_of(record), at: record.charged_at, spent: record.cost, reserved: Usd::ZERO }
    }

    pub(super) fn unspent(record: &UsageRecord) -> Self {
        Self { spent: negative(record.cost), ..Self::spent(record) }
    }

    fn reserved(reservation: &Hold, amount: Usd) -> Self {
        Self { payer: reservation.payer.clone(), at: reservation.at, spent: Usd::ZERO, reserved: amount }
    }

    fn released(reservation: &Hold) -> Self {
        Self::reserved(reservation, negative(reservation.amount))
    }
}

const INTERVALS: [Option<ResetInterval>; 4] =
    [None, Some(ResetInterval::Daily), Some(ResetInterval::Weekly), Some(ResetInterval::Monthly)];

fn period(interval: Option<ResetInterval>, at: DateTime<Utc>) -> DateTime<Utc> {
    interval.map_or(DateTime::UNIX_EPOCH, |interval| interval.start_of(at))
}

pub(super) fn negative(amount: Usd) -> Usd {
    Usd::from_pico(-amount.pico())
}

pub(super) fn plus(sum: &mut Usd, amount: Usd) -> Result<(), StoreError> {
    *sum =
        sum.checked_add(amount).ok_or_else(|| StoreError::Corrupt("a sum exceeds the range of amounts".to_owned()))?;
    Ok(())
}

impl LedgerState {
    pub(super) fn counter(&self, account: Account, interval: Option<ResetInterval>, at: DateTime<Utc>) -> Counter {
        self.counters.get(&(account, interval, period(interval, at))).copied().unwrap_or_default()
    }

    /// Returns the total spend of an account.
    pub(super) fn spent(&self, account: Account) -> Usd {
        self.counter(account, None, DateTime::UNIX_EPOCH).spent
    }

    /// Returns the spend since the beginning of the credit.
    pub(super) fn spent_of_credit(&self, account: Account) -> Usd {
        let base = self.credit_bases.get(&account).copied().unwrap_or_default();
        self.spent(account).checked_add(negative(base)).unwrap_or_default()
    }

    /// Begins a credit: later spend counts against it.
    pub(super) fn begin_credit(&mut self, account: Account, at: DateTime<Utc>) {
        self.credit_bases.insert(account, self.spent(account));
        self.credits_began.insert(account, at);
    }

    /// Returns the total spend at the beginning of the credit.
    pub(super) fn credit_base(&self, account: Account) -> Usd {
        self.credit_bases.get(&account).copied().unwrap_or_default()
    }

    /// Raises the bases of credits by charges from before their beginning, which do not count against them.
    pub(super) fn raise_credit_bases(&mut self, postings: &[Posting]) -> Result<(), StoreError> {
        for Posting { payer, at, spent, .. } in postings {
            let account = Account::Workspace(payer.workspace_id);
            if self.credits_began.get(&account).is_some_and(|began| at < began) {
                plus(self.credit_bases.entry(account).or_default(), *spent)?;
            }
        }
        Ok(())
    }

    /// Returns the expected counters without records, allowances and adjustments.
    pub(super) fn expected(&self) -> Result<Self, StoreError> {
        let mut expected = Self { archived: self.archived.clone(), ..Self::default() };
        for (account, archived) in &self.archived {
            let counter = expected.counters.entry((*account, None, DateTime::UNIX_EPOCH)).or_default();
            plus(&mut counter.spent, *archived)?;
        }
        for hold in self.holds.values() {
            expected.post(&[Posting::reserved(hold, hold.amount)])?;
        }
        Ok(expected)
    }

    /// Keeps the cost of a removed record.
    pub(super) fn archive(&mut self, account: Account, cost: Usd) -> Result<(), StoreError> {
        plus(self.archived.entry(account).or_default(), cost)
    }

    /// Removes empty counters of past periods.
    pub(super) fn drop_empty(&mut self, before: DateTime<Utc>) {
        self.counters.retain(|(_, interval, start), counter| {
            let over = interval.is_some_and(|interval| interval.end_of(*start) <= before);
            !over || [counter.spent, counter.reserved, counter.allotted] != [Usd::ZERO; 3]
        });
    }

    /// Returns the bytes of records that a workspace added on the day of `now`.
    pub(super) fn recorded_bytes(&self, workspace_id: WorkspaceId, now: DateTime<Utc>) -> u64 {
        let day = (workspace_id, ResetInterval::Daily.start_of(now));
        self.record_bytes.get(&day).copied().unwrap_or_default()
    }

    /// Counts bytes of records on the day of `now`.
    pub(super) fn add_bytes(&mut self, workspace_id: WorkspaceId, bytes: u64, now: DateTime<Utc>) {
        let day = (workspace_id, ResetInterval::Daily.start_of(now));
        *self.record_bytes.entry(day).or_default() += bytes;
    }

    /// Adds all amounts, or none on an error.
    pub(super) fn post(&mut self, postings: &[Posting]) -> Result<(), StoreError> {
        let mut changed: BTreeMap<CounterKey, Counter> = BTreeMap::new();
        for Posting { payer, at, spent, reserved } in postings {
            for account in payer.accounts() {
                for interval in INTERVALS {
                    let before = self.counter(account, interval, *at);
                    let counter = changed.entry((account, interval, period(interval, *at))).or_insert(before);
                    plus(&mut counter.spent, *spent)?;
                    plus(&mut counter.reserved, *reserved)?;
                }
            }
        }
        self.counters.extend(changed);
        Ok(())
    }
}

pub(super) fn not_negative(amount: Usd) -> Result<(), StoreError> {
    let refused = || StoreError::Corrupt("a negative amount is neither reserved nor charged".to_owned());
    if amount < Usd::ZERO { Err(refused()) } else { Ok(()) }
}

pub(super) fn payer_of(record: &UsageRecord) -> Payer {
    Payer { workspace_id: record.workspace_id, api_key: record.api_key, guardrails: record.guardrails.clone() }
}

impl State {
    pub(super) fn limit_statuses_at(&self, payer: &Payer, at: DateTime<Utc>) -> Result<Vec<LimitStatus>, StoreError> {
        let unknown = || StoreError::Corrupt(format!("the key {} of the workspace is not there", payer.api_key));
        let key = &self.keys.get(&payer.api_key).ok_or_else(unknown)?.key;
        let workspace = self.workspace(payer.workspace_id).ok_or_else(unknown)?;
        if key.scope.workspace_id() != Some(payer.workspace_id) {
            return Err(unknown());
        }
        let of = |account: Account, limit: SpendLimit| self.limit_of(account, limit, at);
        let mut limits = self.limits_of_workspace(workspace, at);
        limits.extend(key.limit.map(|limit| of(Account::Key(payer.api_key), limit)));
        for id in &payer.guardrails {
            let budget = self.guardrails.iter().find(|stored| stored.id == *id).and_then(|found| found.budget);
            limits.extend(budget.map(|limit| of(Account::Guardrail(*id, payer.api_key), limit)));
        }
        Ok(limits)
    }

    fn limit_of(&self, account: Account, limit: SpendLimit, at: DateTime<Utc>) -> LimitStatus {
        let counter = self.ledger.counter(account, limit.reset, at);
        LimitStatus {
            scope: account.scope(),
            guardrail_id: match account {
                Account::Guardrail(id, _) => Some(id),
                _ => None,
            },
            is_credit: false,
            limit: limit.amount,
            reset: limit.reset,
            spent: counter.spent,
            reserved: Usd::from_pico(counter.reserved.pico().saturating_add(counter.allotted.pico())),
            resets_at: limit.reset.map(|reset| reset.end_of(at)),
        }
    }

    /// Returns the status of the workspace's credit and budgets.
    pub(super) fn limits_of_workspace(&self, workspace: &Workspace, at: DateTime<Utc>) -> Vec<LimitStatus> {
        let account = Account::Workspace(workspace.id);
        let mut limits = Vec::new();
        if let Some(granted) = workspace.credit {
            let whole = self.limit_of(account, SpendLimit { amount: granted, reset: None }, at);
            let spent = self.ledger.spent_of_credit(account);
            limits.push(LimitStatus { is_credit: true, spent, ..whole });
        }
        limits.extend(workspace.budgets.limits().map(|limit| self.limit_of(account, limit, at)));
        limits
    }

    /// Adds a record unless its id is known, and ends its hold.
    fn charge(&mut self, charge: UsageCharge, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let bytes = charge.stored_bytes();
        let UsageCharge { record, messages, evidence } = charge;
        let mut postings = Vec::new();
        if let Some(hold) = self.ledger.holds.get(&record.id) {
            postings.push(Posting::released(hold));
        }
        let stored = self.usage.iter().position(|stored| stored.id == record.id);
        let stands = stored.is_some_and(|place| {
            self.usage[place].outcome != UsageOutcome::Abandoned || record.outcome == UsageOutcome::Abandoned
        });
        if !stands {
            postings.extend(stored.map(|place| Posting::unspent(&self.usage[place])));
            postings.push(Posting::spent(&record));
        }
        self.ledger.post(&postings)?;
        self.ledger.holds.remove(&record.id);
        if !stands {
            self.ledger.add_bytes(record.workspace_id, bytes, now);
            self.add_evidence(&record, evidence);
            self.replace_record(record)?;
            self.enqueue(messages, now);
        }
        Ok(!stands)
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn reserve(&self, request: HoldRequest) -> Result<Result<Hold, LimitExceeded>, StoreError> {
        not_negative(request.amount)?;
        let at = self.0.now();
        let mut state = self.0.state();
        if let Some(hold) = state.ledger.holds.get(&request.id) {
            return Ok(Ok(hold.clone()));
        }
        if let Err(exceeded) = admit(&state.limit_statuses_at(&request.payer, at)?, request.amount) {
            return Ok(Err(exceeded));
        }
        let hold = Hold { id: request.id, at, payer: request.payer, amount: request.amount };
        state.ledger.post(&[Posting::reserved(&hold, hold.amount)])?;
        state.ledger.holds.insert(hold.id.clone(), hold.clone());
        Ok(Ok(hold))
    }

    async fn increase(
        &self,
        id: &DecisionId,
        more: Usd,
        _: &[AttemptRecord],
    ) -> Result<Result<(), LimitExceeded>, StoreError> {
        not_negative(more)?;
        let mut state = self.0.state();
        let Some(mut hold) = state.ledger.holds.get(id).cloned() else {
            return Err(StoreError::Corrupt(format!("no money is reserved for {id}")));
        };
        if let Err(exceeded) = admit(&state.limit_statuses_at(&hold.payer, hold.at)?, more) {
            return Ok(Err(exceeded));
        }
        plus(&mut hold.amount, more)?;
        state.ledger.post(&[Posting::reserved(&hold, more)])?;
        state.ledger.holds.insert(id.clone(), hold);
        Ok(Ok(()))
    }

    async fn settle(&self, charge: &UsageCharge) -> Result<(), StoreError> {
        not_negative(charge.record.cost)?;
        self.0.state().charge(charge.clone(), self.0.now()).map(drop)
    }

    async fn release(&self, id: &DecisionId) -> Result<(), StoreError> {
        let mut state = self.0.state();
        let Some(hold) = state.ledger.holds.get(id).cloned() else { return Ok(()) };
        state.ledger.post(&[Posting::released(&hold)])?;
        state.ledger.holds.remove(id);
        Ok(())
    }
}
