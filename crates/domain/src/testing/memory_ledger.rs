//! The ledger in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::MemoryStore;
use super::memory_store::State;
use crate::budget::{
    Account, Claim, Discrepancy, ExpiryReport, Ledger, LedgerAudit, Overspent, Payer, PruneReport, Reservation,
    ResetInterval, Settlement, SpendLimit, StandingLimit, abandoned_record, admit, cost_of_record, prunable_before,
};
use crate::decision::UnknownUsage;
use crate::error::StoreError;
use crate::ids::{DecisionId, WorkspaceId};
use crate::money::Usd;
use crate::usage::{AttemptRecord, UsageOutcome, UsageRecord};
use crate::workspace::Workspace;

/// An account in one period: by the interval's place (0 is for ever) and the period's beginning.
type CounterKey = (Account, Option<ResetInterval>, DateTime<Utc>);

/// Money in memory.
#[derive(Default)]
pub(super) struct Books {
    counters: BTreeMap<CounterKey, Counter>,
    reservations: BTreeMap<DecisionId, Held>,
    /// What records that were pruned had come to.
    archived: BTreeMap<Account, Usd>,
    /// Bytes of records by workspace and the day on which they were added.
    record_bytes: BTreeMap<(WorkspaceId, DateTime<Utc>), u64>,
    /// What a workspace had spent in all when it was last given credit after having none, by its account.
    credit_bases: BTreeMap<Account, Usd>,
}

#[derive(Default, Clone, Copy)]
struct Counter {
    spent: Usd,
    reserved: Usd,
}

#[derive(Clone)]
struct Held {
    reservation: Reservation,
    claim: Claim,
    expires_at: DateTime<Utc>,
}

/// What is added to every account of a payer.
struct Posting {
    payer: Payer,
    at: DateTime<Utc>,
    spent: Usd,
    reserved: Usd,
}

impl Posting {
    fn spent(record: &UsageRecord) -> Self {
        Self { payer: payer_of(record), at: record.charged_at, spent: record.cost, reserved: Usd::ZERO }
    }

    fn unspent(record: &UsageRecord) -> Self {
        Self { spent: negative(record.cost), ..Self::spent(record) }
    }

    fn reserved(reservation: &Reservation, amount: Usd) -> Self {
        Self { payer: reservation.payer.clone(), at: reservation.at, spent: Usd::ZERO, reserved: amount }
    }

    fn released(reservation: &Reservation) -> Self {
        Self::reserved(reservation, negative(reservation.amount))
    }
}

const INTERVALS: [Option<ResetInterval>; 4] =
    [None, Some(ResetInterval::Daily), Some(ResetInterval::Weekly), Some(ResetInterval::Monthly)];

fn period(interval: Option<ResetInterval>, at: DateTime<Utc>) -> DateTime<Utc> {
    interval.map_or(DateTime::UNIX_EPOCH, |interval| interval.start_of(at))
}

fn negative(amount: Usd) -> Usd {
    Usd::from_pico(-amount.pico())
}

fn plus(sum: &mut Usd, amount: Usd) -> Result<(), StoreError> {
    *sum = sum.checked_add(amount).ok_or_else(|| StoreError::Corrupt("a sum leaves the range of money".to_owned()))?;
    Ok(())
}

impl Books {
    fn counter(&self, account: Account, interval: Option<ResetInterval>, at: DateTime<Utc>) -> Counter {
        self.counters.get(&(account, interval, period(interval, at))).copied().unwrap_or_default()
    }

    /// What an account has spent in all.
    pub(super) fn spent(&self, account: Account) -> Usd {
        self.counter(account, None, DateTime::UNIX_EPOCH).spent
    }

    /// What of it was spent since the credit began.
    pub(super) fn spent_of_credit(&self, account: Account) -> Usd {
        let base = self.credit_bases.get(&account).copied().unwrap_or_default();
        self.spent(account).checked_add(negative(base)).unwrap_or_default()
    }

    /// From here on what is spent is taken from the credit.
    pub(super) fn begin_credit(&mut self, account: Account) {
        self.credit_bases.insert(account, self.spent(account));
    }

    /// All or nothing.
    fn post(&mut self, postings: &[Posting]) -> Result<(), StoreError> {
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

fn not_negative(amount: Usd) -> Result<(), StoreError> {
    let refused = || StoreError::Corrupt("a negative amount is neither reserved nor charged".to_owned());
    if amount < Usd::ZERO { Err(refused()) } else { Ok(()) }
}

fn payer_of(record: &UsageRecord) -> Payer {
    Payer { workspace_id: record.workspace_id, api_key: record.api_key, guardrails: record.guardrails.clone() }
}

impl State {
    fn standing(&self, payer: &Payer, at: DateTime<Utc>) -> Result<Vec<StandingLimit>, StoreError> {
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

    fn limit_of(&self, account: Account, limit: SpendLimit, at: DateTime<Utc>) -> StandingLimit {
        let counter = self.books.counter(account, limit.reset, at);
        StandingLimit {
            scope: account.scope(),
            guardrail_id: match account {
                Account::Guardrail(id, _) => Some(id),
                _ => None,
            },
            is_credit: false,
            limit: limit.amount,
            reset: limit.reset,
            spent: counter.spent,
            reserved: counter.reserved,
            resets_at: limit.reset.map(|reset| reset.end_of(at)),
        }
    }

    /// The workspace's credit and budgets as they stand.
    pub(super) fn limits_of_workspace(&self, workspace: &Workspace, at: DateTime<Utc>) -> Vec<StandingLimit> {
        let account = Account::Workspace(workspace.id);
        let mut limits = Vec::new();
        if let Some(granted) = workspace.credit {
            let whole = self.limit_of(account, SpendLimit { amount: granted, reset: None }, at);
            let spent = self.books.spent_of_credit(account);
            limits.push(StandingLimit { is_credit: true, spent, ..whole });
        }
        limits.extend(workspace.budgets.limits().map(|limit| self.limit_of(account, limit, at)));
        limits
    }

    /// Adds a record unless it is there, and ends the reservation of its id.
    fn charge(&mut self, settlement: Settlement, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let Settlement { record, messages } = settlement;
        let mut postings = Vec::new();
        if let Some(held) = self.books.reservations.get(&record.id) {
            postings.push(Posting::released(&held.reservation));
        }
        let stored = self.usage.iter().position(|stored| stored.id == record.id);
        let stands = stored.is_some_and(|place| {
            self.usage[place].outcome != UsageOutcome::Abandoned || record.outcome == UsageOutcome::Abandoned
        });
        if !stands {
            postings.extend(stored.map(|place| Posting::unspent(&self.usage[place])));
            postings.push(Posting::spent(&record));
        }
        self.books.post(&postings)?;
        self.books.reservations.remove(&record.id);
        if !stands {
            let day = (record.workspace_id, ResetInterval::Daily.start_of(now));
            *self.books.record_bytes.entry(day).or_default() += record.stored_bytes();
            self.usage.retain(|other| other.id != record.id);
            self.usage.push(record);
            self.enqueue(messages, now);
        }
        Ok(!stands)
    }
}

#[async_trait]
impl Ledger for MemoryStore {
    async fn reserve(&self, claim: Claim) -> Result<Result<Reservation, Overspent>, StoreError> {
        not_negative(claim.amount)?;
        let at = self.now();
        let mut state = self.state();
        if let Some(held) = state.books.reservations.get(&claim.id) {
            return Ok(Ok(held.reservation.clone()));
        }
        if let Err(overspent) = admit(&state.standing(&claim.payer, at)?, claim.amount) {
            return Ok(Err(overspent));
        }
        let reservation = Reservation { id: claim.id.clone(), at, payer: claim.payer.clone(), amount: claim.amount };
        state.books.post(&[Posting::reserved(&reservation, claim.amount)])?;
        let expires_at = TimeDelta::from_std(claim.lease).ok().and_then(|lease| at.checked_add_signed(lease));
        let held = Held {
            reservation: reservation.clone(),
            claim,
            expires_at: expires_at.unwrap_or(DateTime::<Utc>::MAX_UTC),
        };
        state.books.reservations.insert(reservation.id.clone(), held);
        Ok(Ok(reservation))
    }

    async fn extend(
        &self,
        id: &DecisionId,
        more: Usd,
        attempts: &[AttemptRecord],
    ) -> Result<Result<(), Overspent>, StoreError> {
        not_negative(more)?;
        let mut state = self.state();
        let Some(mut held) = state.books.reservations.get(id).cloned() else {
            return Err(StoreError::Corrupt(format!("no money is reserved for {id}")));
        };
        let Reservation { at, payer, .. } = &held.reservation;
        if let Err(overspent) = admit(&state.standing(payer, *at)?, more) {
            return Ok(Err(overspent));
        }
        plus(&mut held.reservation.amount, more)?;
        state.books.post(&[Posting::reserved(&held.reservation, more)])?;
        held.claim.attempts = held.claim.attempts.iter().chain(attempts).cloned().collect();
        state.books.reservations.insert(id.clone(), held);
        Ok(Ok(()))
    }

    async fn settle(&self, settlement: Settlement) -> Result<(), StoreError> {
        not_negative(settlement.record.cost)?;
        self.state().charge(settlement, self.now()).map(drop)
    }

    async fn release(&self, id: &DecisionId) -> Result<(), StoreError> {
        let mut state = self.state();
        let Some(held) = state.books.reservations.get(id).cloned() else { return Ok(()) };
        state.books.post(&[Posting::released(&held.reservation)])?;
        state.books.reservations.remove(id);
        Ok(())
    }

    async fn expire(&self, unknown: UnknownUsage, limit: u64) -> Result<ExpiryReport, StoreError> {
        let now = self.now();
        let mut state = self.state();
        let over = state.books.reservations.values().filter(|held| held.expires_at <= now);
        let over: Vec<Held> = over.take(usize::try_from(limit).unwrap_or(usize::MAX)).cloned().collect();
        let mut report = ExpiryReport::default();
        for held in over {
            let record = abandoned_record(&held.claim, &held.reservation).filter(|_| unknown == UnknownUsage::Bound);
            let charged = match record {
                Some(record) => state.charge(Settlement { record, messages: Vec::new() }, now)?,
                None => false,
            };
            if state.books.reservations.contains_key(&held.reservation.id) {
                state.books.post(&[Posting::released(&held.reservation)])?;
                state.books.reservations.remove(&held.reservation.id);
            }
            *(if charged { &mut report.charged } else { &mut report.released }) += 1;
        }
        Ok(report)
    }

    async fn standing(&self, payer: &Payer) -> Result<Vec<StandingLimit>, StoreError> {
        self.state().standing(payer, self.now())
    }

    async fn recorded_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError> {
        let day = (workspace_id, ResetInterval::Daily.start_of(self.now()));
        Ok(self.state().books.record_bytes.get(&day).copied().unwrap_or_default())
    }

    async fn audit(&self) -> Result<LedgerAudit, StoreError> {
        let state = self.state();
        let mut expected = Books { archived: state.books.archived.clone(), ..Books::default() };
        for (account, archived) in &state.books.archived {
            let counter = expected.counters.entry((*account, None, DateTime::UNIX_EPOCH)).or_default();
            plus(&mut counter.spent, *archived)?;
        }
        for record in &state.usage {
            expected.post(&[Posting::spent(record)])?;
        }
        for held in state.books.reservations.values() {
            expected.post(&[Posting::reserved(&held.reservation, held.reservation.amount)])?;
        }
        let mut report = LedgerAudit {
            records: state.usage.len() as u64,
            counters: state.books.counters.len() as u64,
            reservations: state.books.reservations.len() as u64,
            discrepancies: Vec::new(),
        };
        for record in &state.usage {
            let (expected, found) = (cost_of_record(record).unwrap_or(record.cost), record.cost);
            if expected != found {
                report.discrepancies.push(Discrepancy { what: format!("record {}", record.id), expected, found });
            }
        }
        let keys = state.books.counters.keys().chain(expected.counters.keys()).collect::<BTreeSet<_>>();
        for key in keys {
            let of = |books: &Books| books.counters.get(key).copied().unwrap_or_default();
            let (wanted, found) = (of(&expected), of(&state.books));
            for (what, expected, found) in
                [("spent", wanted.spent, found.spent), ("reserved", wanted.reserved, found.reserved)]
            {
                if expected != found {
                    report.discrepancies.push(Discrepancy { what: format!("{key:?} {what}"), expected, found });
                }
            }
        }
        Ok(report)
    }

    async fn prune(&self, older_than: Duration, limit: u64) -> Result<PruneReport, StoreError> {
        let now = self.now();
        let mut state = self.state();
        let oldest_reservation = state.books.reservations.values().map(|held| held.reservation.at).min();
        let before = prunable_before(now, older_than, oldest_reservation);
        let mut report = PruneReport::default();
        while report.removed < limit {
            let Some(place) = state.usage.iter().position(|record| record.charged_at < before) else { break };
            let record = state.usage.remove(place);
            for account in payer_of(&record).accounts() {
                plus(state.books.archived.entry(account).or_default(), record.cost)?;
                for interval in ResetInterval::ALL {
                    let key = (account, Some(interval), interval.start_of(record.charged_at));
                    plus(&mut state.books.counters.entry(key).or_default().spent, negative(record.cost))?;
                }
            }
            report.removed += 1;
        }
        // A period that is over and of which nothing is left.
        state.books.counters.retain(|(_, interval, start), counter| {
            let over = interval.is_some_and(|interval| interval.end_of(*start) <= before);
            !over || counter.spent != Usd::ZERO || counter.reserved != Usd::ZERO
        });
        Ok(report)
    }
}
