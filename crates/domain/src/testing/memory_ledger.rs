//! The ledger in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::MemoryStore;
use super::memory_store::State;
use crate::budget::{
    Account, BudgetScope, Claim, Discrepancy, ExpiryReport, Ledger, LedgerAudit, Overspent, Payer, Reservation,
    ResetInterval, Settlement, SpendLimit, StandingLimit, admit,
};
use crate::decision::UnknownUsage;
use crate::error::StoreError;
use crate::ids::DecisionId;
use crate::money::Usd;
use crate::usage::{TokenSource, UsageOutcome, UsageRecord, UsageShare};

/// An account in one period: by the interval's place (0 is for ever) and the period's beginning.
type CounterKey = (Account, Option<ResetInterval>, DateTime<Utc>);

/// Money in memory.
#[derive(Default)]
pub(super) struct Books {
    counters: BTreeMap<CounterKey, Counter>,
    reservations: BTreeMap<DecisionId, Held>,
    /// What records that were pruned had come to.
    archived: BTreeMap<Account, Usd>,
    /// What a workspace had spent in all when it was last given credit after having none, by its account.
    credit_bases: BTreeMap<Account, Usd>,
}

#[derive(Default, Clone, Copy)]
struct Counter {
    spent: Usd,
    reserved: Usd,
}

struct Held {
    reservation: Reservation,
    claim: Claim,
    expires_at: DateTime<Utc>,
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

    fn post(&mut self, payer: &Payer, at: DateTime<Utc>, spent: Usd, reserved: Usd) -> Result<(), StoreError> {
        for account in payer.accounts() {
            for interval in INTERVALS {
                let counter = self.counters.entry((account, interval, period(interval, at))).or_default();
                plus(&mut counter.spent, spent)?;
                plus(&mut counter.reserved, reserved)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, id: &DecisionId) -> Result<Option<Held>, StoreError> {
        let Some(held) = self.reservations.remove(id) else { return Ok(None) };
        let Reservation { at, payer, amount, .. } = &held.reservation;
        self.post(payer, *at, Usd::ZERO, negative(*amount))?;
        Ok(Some(held))
    }
}

fn payer_of(record: &UsageRecord) -> Payer {
    Payer { workspace_id: record.workspace_id, api_key: record.api_key, guardrails: record.guardrails.clone() }
}

impl State {
    fn standing(&self, payer: &Payer, at: DateTime<Utc>) -> Vec<StandingLimit> {
        let of = |account: Account, limit: SpendLimit| {
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
        };
        let mut limits = Vec::new();
        let account = Account::Workspace(payer.workspace_id);
        if let Some(workspace) = self.workspace(payer.workspace_id) {
            if let Some(granted) = workspace.credit {
                let whole = of(account, SpendLimit { amount: granted, reset: None });
                limits.push(StandingLimit {
                    is_credit: true,
                    spent: self.books.spent_of_credit(account),
                    scope: BudgetScope::Workspace,
                    ..whole
                });
            }
            limits.extend(workspace.budgets.limits().map(|limit| of(account, limit)));
        }
        if let Some(limit) = self.keys.get(&payer.api_key).and_then(|stored| stored.key.limit) {
            limits.push(of(Account::Key(payer.api_key), limit));
        }
        for id in &payer.guardrails {
            let budget = self.guardrails.iter().find(|stored| stored.id == *id).and_then(|found| found.budget);
            limits.extend(budget.map(|limit| of(Account::Guardrail(*id, payer.api_key), limit)));
        }
        limits
    }

    fn charge(&mut self, settlement: Settlement) -> Result<(), StoreError> {
        let Settlement { record, messages } = settlement;
        let payer = payer_of(&record);
        if let Some(place) = self.usage.iter().position(|stored| stored.id == record.id) {
            let stored = &self.usage[place];
            if stored.outcome != UsageOutcome::Abandoned || record.outcome == UsageOutcome::Abandoned {
                return Ok(());
            }
            let (before, at, cost) = (payer_of(stored), stored.charged_at, stored.cost);
            self.books.post(&before, at, negative(cost), Usd::ZERO)?;
            self.usage.remove(place);
        }
        self.books.end(&record.id)?;
        self.books.post(&payer, record.charged_at, record.cost, Usd::ZERO)?;
        self.enqueue(messages, record.created_at);
        self.usage.push(record);
        Ok(())
    }
}

fn abandoned(held: &Held) -> UsageRecord {
    let Held { reservation, claim, .. } = held;
    let last = claim.attempts.last();
    let tokens = |count: fn(&crate::usage::AttemptRecord) -> u64| claim.attempts.iter().map(count).sum();
    UsageRecord {
        id: reservation.id.clone(),
        workspace_id: reservation.payer.workspace_id,
        api_key: reservation.payer.api_key,
        request_id: claim.request_id.clone(),
        requested_model: claim.requested_model.clone(),
        model: claim.attempts[0].model.clone(),
        provider: last.map(|attempt| attempt.provider.clone()).unwrap_or_default(),
        outcome: UsageOutcome::Abandoned,
        input_tokens: tokens(|attempt| attempt.input_tokens),
        output_tokens: tokens(|attempt| attempt.output_tokens),
        token_source: TokenSource::Bound,
        cost: reservation.amount,
        prices: claim.attempts[0].prices,
        share: UsageShare::WHOLE,
        attempts: claim.attempts.clone(),
        guardrails: reservation.payer.guardrails.clone(),
        findings: Vec::new(),
        charged_at: reservation.at,
        session_id: None,
        trace: None,
        user: None,
        created_at: reservation.at,
        latency: Duration::ZERO,
    }
}

#[async_trait]
impl Ledger for MemoryStore {
    async fn reserve(&self, claim: Claim) -> Result<Result<Reservation, Overspent>, StoreError> {
        let at = self.now();
        let mut state = self.state();
        if let Some(held) = state.books.reservations.get(&claim.id) {
            return Ok(Ok(held.reservation.clone()));
        }
        if let Err(overspent) = admit(&state.standing(&claim.payer, at), claim.amount) {
            return Ok(Err(overspent));
        }
        let reservation = Reservation { id: claim.id.clone(), at, payer: claim.payer.clone(), amount: claim.amount };
        state.books.post(&claim.payer, at, Usd::ZERO, claim.amount)?;
        let expires_at = at + TimeDelta::from_std(claim.lease).unwrap_or(TimeDelta::MAX);
        let held = Held { reservation: reservation.clone(), claim, expires_at };
        state.books.reservations.insert(reservation.id.clone(), held);
        Ok(Ok(reservation))
    }

    async fn extend(&self, id: &DecisionId, more: Usd) -> Result<Result<(), Overspent>, StoreError> {
        let mut state = self.state();
        let Some(held) = state.books.reservations.get(id) else {
            return Err(StoreError::Corrupt(format!("no money is reserved for {id}")));
        };
        let Reservation { at, payer, .. } = held.reservation.clone();
        if let Err(overspent) = admit(&state.standing(&payer, at), more) {
            return Ok(Err(overspent));
        }
        state.books.post(&payer, at, Usd::ZERO, more)?;
        if let Some(held) = state.books.reservations.get_mut(id) {
            plus(&mut held.reservation.amount, more)?;
        }
        Ok(Ok(()))
    }

    async fn settle(&self, settlement: Settlement) -> Result<(), StoreError> {
        self.state().charge(settlement)
    }

    async fn release(&self, id: &DecisionId) -> Result<(), StoreError> {
        self.state().books.end(id).map(drop)
    }

    async fn expire(&self, unknown: UnknownUsage, limit: u64) -> Result<ExpiryReport, StoreError> {
        let now = self.now();
        let mut state = self.state();
        let over: Vec<DecisionId> = state
            .books
            .reservations
            .iter()
            .filter(|(_, held)| held.expires_at <= now)
            .map(|(id, _)| id.clone())
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .collect();
        let mut report = ExpiryReport::default();
        for id in over {
            let Some(held) = state.books.end(&id)? else { continue };
            if unknown == UnknownUsage::Free || held.claim.attempts.is_empty() {
                report.released += 1;
            } else {
                state.charge(Settlement { record: abandoned(&held), messages: Vec::new() })?;
                report.charged += 1;
            }
        }
        Ok(report)
    }

    async fn standing(&self, payer: &Payer) -> Result<Vec<StandingLimit>, StoreError> {
        Ok(self.state().standing(payer, self.now()))
    }

    async fn audit(&self) -> Result<LedgerAudit, StoreError> {
        let state = self.state();
        let mut expected = Books { archived: state.books.archived.clone(), ..Books::default() };
        for (account, archived) in &state.books.archived {
            let counter = expected.counters.entry((*account, None, DateTime::UNIX_EPOCH)).or_default();
            plus(&mut counter.spent, *archived)?;
        }
        for record in &state.usage {
            expected.post(&payer_of(record), record.charged_at, record.cost, Usd::ZERO)?;
        }
        for held in state.books.reservations.values() {
            let Reservation { payer, at, amount, .. } = &held.reservation;
            expected.post(payer, *at, Usd::ZERO, *amount)?;
        }
        let mut report = LedgerAudit {
            records: state.usage.len() as u64,
            counters: state.books.counters.len() as u64,
            reservations: state.books.reservations.len() as u64,
            discrepancies: Vec::new(),
        };
        for (key, found) in &state.books.counters {
            let wanted = expected.counters.get(key).copied().unwrap_or_default();
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

    async fn prune(&self, older_than: Duration, limit: u64) -> Result<u64, StoreError> {
        let before = self.now() - TimeDelta::from_std(older_than).unwrap_or(TimeDelta::MAX);
        let before = ResetInterval::Daily.start_of(before);
        let mut state = self.state();
        let mut pruned = 0;
        while pruned < limit {
            let Some(place) = state.usage.iter().position(|record| record.charged_at < before) else { break };
            let record = state.usage.remove(place);
            for account in payer_of(&record).accounts() {
                plus(state.books.archived.entry(account).or_default(), record.cost)?;
            }
            pruned += 1;
        }
        if pruned < limit {
            // A period that is over and of which no record is left.
            state.books.counters.retain(|(_, interval, start), counter| {
                let Some(interval) = interval else { return true };
                interval.end_of(*start) > before || counter.reserved != Usd::ZERO
            });
        }
        Ok(pruned)
    }
}
