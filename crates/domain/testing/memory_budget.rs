//! The store of allowances in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::memory_ledger::{Posting, negative, not_negative, plus};
use super::memory_state::{Allotments, Amounts, LedgerState, Process, Recalled, State};
use super::memory_store::MemoryBudget;
use crate::audit::AuditDraft;
use crate::budget::allowances::{CounterId, CounterPeriod};
use crate::budget::{
    Account, BudgetSignals, BudgetStore, BudgetStoreError, CounterBalance, CounterLimit, CounterLimits, DrawReply,
    DrawRequest, FOLD_AGAIN_FOR, FoldEntry, FoldRequest, LiveProcess, Payer, ProcessState, ProcessStatus, Recall,
    RemainingAllowances, ReturnRequest, SpendLimit, decide_draw, has_answered,
};
use crate::error::StoreError;
use crate::ids::ProcessId;
use crate::money::Usd;
use crate::usage::UsageOutcome;

/// How long a recall lasts.
const RECALL: TimeDelta = TimeDelta::seconds(5);

impl Process {
    /// Returns true if the number is that of the last call.
    fn is_repeated(&self, number: u64) -> Result<bool, BudgetStoreError> {
        let ProcessStatus { state, number: last, .. } = self.status;
        if state != ProcessState::Live {
            return Err(BudgetStoreError::NotLive(Some(state)));
        }
        match number.checked_sub(last) {
            Some(0) if number > 0 => Ok(true),
            Some(1) => Ok(false),
            _ => Err(BudgetStoreError::Number { expected: last + 1, found: number }),
        }
    }
}

fn used_by_another_call(number: u64) -> BudgetStoreError {
    BudgetStoreError::Number { expected: number + 1, found: number }
}

impl Allotments {
    fn process(&self, id: ProcessId) -> Result<&Process, BudgetStoreError> {
        self.processes.get(&id).ok_or(BudgetStoreError::NotLive(None))
    }

    /// Returns the beginning of the current recall.
    fn recall(&self, counter: &CounterId, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.recalled.get(counter).filter(|recalled| now - recalled.renewed_at < RECALL).map(|found| found.began_at)
    }

    fn set_recalled(&mut self, counter: CounterId, now: DateTime<Utc>) {
        let began_at = self.recall(&counter, now).unwrap_or(now);
        self.recalled.insert(counter, Recalled { began_at, renewed_at: now });
    }

    /// Returns true if a process other than `asking` has an allowance of a counter and has not answered its recall.
    fn is_unanswered(&self, asking: ProcessId, counter: &CounterId, now: DateTime<Utc>) -> bool {
        let recall = self.recall(counter, now);
        let mut holders = self.allowances.keys().filter(|(process, held)| *process != asking && held == counter);
        holders.any(|(holder, _)| {
            self.processes.get(holder).is_none_or(|process| !has_answered(recall, process.seen_at, now))
        })
    }

    /// Returns true while draws grant nothing after a declaration of an older store.
    fn folds_again(&self, now: DateTime<Utc>) -> bool {
        self.declared_older_at.is_some_and(|at| (now - at).to_std().unwrap_or_default() < FOLD_AGAIN_FOR)
    }

    fn live_processes(&self) -> u64 {
        self.processes.values().filter(|process| process.status.state == ProcessState::Live).count() as u64
    }
}

/// Returns the amount of a process; zero if it has none.
fn amount(amounts: &Amounts, process: ProcessId, counter: CounterId) -> Usd {
    amounts.get(&(process, counter)).copied().unwrap_or_default()
}

/// Adds to the amount of a process; removes an amount of zero.
fn add_amount(amounts: &mut Amounts, process: ProcessId, counter: CounterId, added: Usd) -> Result<(), StoreError> {
    plus(amounts.entry((process, counter)).or_default(), added)?;
    amounts.retain(|_, amount| *amount != Usd::ZERO);
    Ok(())
}

impl LedgerState {
    pub(super) fn add_to_counter(&mut self, counter: CounterId, spent: Usd, allotted: Usd) -> Result<(), StoreError> {
        let key = match counter.period {
            CounterPeriod::Lifetime => (counter.account, None, DateTime::UNIX_EPOCH),
            CounterPeriod::Calendar(interval, start) => (counter.account, Some(interval), start),
        };
        let counter = self.counters.entry(key).or_default();
        plus(&mut counter.spent, spent)?;
        plus(&mut counter.allotted, allotted)
    }
}

impl State {
    /// Returns the limits of an account.
    pub(super) fn limits_of(&self, account: Account) -> Vec<CounterLimit> {
        let plain = |limit: SpendLimit| CounterLimit { limit, base: Usd::ZERO, is_credit: false };
        match account {
            Account::Workspace(id) => {
                let Some(workspace) = self.workspace(id) else { return Vec::new() };
                let credit = workspace.credit.map(|amount| CounterLimit {
                    limit: SpendLimit { amount, reset: None },
                    base: self.ledger.credit_base(account),
                    is_credit: true,
                });
                credit.into_iter().chain(workspace.budgets.limits().map(plain)).collect()
            }
            Account::Key(key) => {
                self.keys.get(&key).and_then(|stored| stored.key.limit).map(plain).into_iter().collect()
            }
            Account::Guardrail(id, _) => {
                let budget = self.guardrails.iter().find(|stored| stored.id == id).and_then(|found| found.budget);
                budget.map(plain).into_iter().collect()
            }
        }
    }

    fn check_payer(&self, payer: &Payer) -> Result<(), StoreError> {
        let key = self.keys.get(&payer.api_key).and_then(|stored| stored.key.scope.workspace_id());
        if key == Some(payer.workspace_id) && self.workspace(payer.workspace_id).is_some() {
            return Ok(());
        }
        Err(StoreError::Corrupt(format!("the limits of the unknown key {}", payer.api_key)))
    }

    fn balance(&self, process: ProcessId, counter: CounterId, now: DateTime<Utc>) -> CounterBalance {
        let (interval, start) = match counter.period {
            CounterPeriod::Lifetime => (None, DateTime::UNIX_EPOCH),
            CounterPeriod::Calendar(interval, start) => (Some(interval), start),
        };
        let row = self.ledger.counters.get(&(counter.account, interval, start)).copied().unwrap_or_default();
        let limits = self.limits_of(counter.account);
        CounterBalance {
            spent: row.spent,
            allotted: row.allotted,
            own: amount(&self.allotments.allowances, process, counter),
            is_recalled: self.allotments.recall(&counter, now).is_some(),
            is_unanswered: self.allotments.is_unanswered(process, &counter, now),
            limits: limits.into_iter().filter(|limit| limit.limit.reset == interval).collect(),
        }
    }

    fn draw(&mut self, request: &DrawRequest, now: DateTime<Utc>) -> Result<DrawReply, BudgetStoreError> {
        let process = self.allotments.process(request.process)?;
        if process.is_repeated(request.number)? {
            return process.last_reply.clone().ok_or_else(|| used_by_another_call(request.number));
        }
        if self.allotments.folds_again(now) {
            return Err(BudgetStoreError::FoldsAgain);
        }
        request.free.values().copied().try_for_each(not_negative)?;
        let mut balances = BTreeMap::new();
        for ask in &request.asks {
            self.check_payer(&ask.payer)?;
            not_negative(ask.amount)?;
            for counter in &ask.counters {
                balances.insert(*counter, self.balance(request.process, *counter, now));
            }
        }
        for ahead in &request.ahead {
            balances.insert(ahead.counter, self.balance(request.process, ahead.counter, now));
        }
        let decision = decide_draw(request, balances, self.allotments.live_processes());
        let (mut ledger, mut allotments) = (self.ledger.clone(), self.allotments.clone());
        for counter in decision.recalls {
            allotments.set_recalled(counter, now);
        }
        for (counter, amount) in &decision.grants {
            add_amount(&mut allotments.allowances, request.process, *counter, *amount)?;
            ledger.add_to_counter(*counter, Usd::ZERO, *amount)?;
        }
        let grants: Vec<_> = decision.grants.into_iter().collect();
        let reply = DrawReply { feed: self.changes.limits, grants, answers: decision.answers };
        if !reply.grants.is_empty()
            && let Some(process) = allotments.processes.get_mut(&request.process)
        {
            process.status.number = request.number;
            process.last_reply = Some(reply.clone());
        }
        (self.ledger, self.allotments) = (ledger, allotments);
        Ok(reply)
    }

    fn return_allowances(&mut self, request: &ReturnRequest) -> Result<(), BudgetStoreError> {
        let process = self.allotments.process(request.process)?;
        if process.is_repeated(request.number)? {
            let is_same = process.last_reply.is_none();
            return if is_same { Ok(()) } else { Err(used_by_another_call(request.number)) };
        }
        let (mut ledger, mut allotments) = (self.ledger.clone(), self.allotments.clone());
        for (counter, returned) in &request.amounts {
            not_negative(*returned)?;
            let returned = negative((*returned).min(amount(&allotments.allowances, request.process, *counter)));
            add_amount(&mut allotments.allowances, request.process, *counter, returned)?;
            ledger.add_to_counter(*counter, Usd::ZERO, returned)?;
        }
        if let Some(process) = allotments.processes.get_mut(&request.process) {
            process.status.number = request.number;
            process.last_reply = None;
            process.seen_at = process.seen_at.max(request.answered.unwrap_or(process.seen_at));
        }
        (self.ledger, self.allotments) = (ledger, allotments);
        Ok(())
    }

    fn fold(&mut self, request: &FoldRequest, now: DateTime<Utc>) -> Result<(), BudgetStoreError> {
        let ProcessStatus { state, folded_sequence, .. } = self.allotments.process(request.process)?.status;
        if request.up_to == folded_sequence {
            return Ok(());
        }
        if request.after != folded_sequence || request.up_to < request.after {
            return Err(BudgetStoreError::Number { expected: folded_sequence, found: request.after });
        }
        let (mut ledger, mut allotments) = (self.ledger.clone(), self.allotments.clone());
        let fresh = self.fresh(&request.entries)?;
        let mut postings: Vec<Posting> = fresh.iter().map(|entry| Posting::spent(&entry.charge.record)).collect();
        for entry in &fresh {
            let replaced = self.usage.iter().find(|stored| stored.id == entry.charge.record.id);
            postings.extend(replaced.map(Posting::unspent));
            ledger.add_bytes(entry.charge.record.workspace_id, entry.charge.stored_bytes(), now);
        }
        ledger.post(&postings)?;
        ledger.raise_credit_bases(&postings)?;
        let is_live = matches!(state, ProcessState::Live | ProcessState::Adopted);
        for (counter, borne) in request.entries.iter().flat_map(|entry| &entry.allowances) {
            not_negative(*borne)?;
            let amounts = if is_live { &mut allotments.allowances } else { &mut allotments.adjustments };
            let taken = negative((*borne).min(amount(amounts, request.process, *counter)));
            add_amount(amounts, request.process, *counter, taken)?;
            let (spent, allotted) = if is_live { (Usd::ZERO, taken) } else { (taken, Usd::ZERO) };
            ledger.add_to_counter(*counter, spent, allotted)?;
        }
        if let Some(process) = allotments.processes.get_mut(&request.process) {
            process.status.folded_sequence = request.up_to;
        }
        let before = std::mem::replace(&mut self.ledger, ledger);
        self.allotments = allotments;
        self.add_alerts(&before, now);
        for entry in fresh {
            self.add_evidence(&entry.charge.record, entry.charge.evidence.clone());
            self.replace_record(entry.charge.record.clone())?;
            self.enqueue(entry.charge.messages.clone(), now);
        }
        Ok(())
    }

    /// Returns the entries whose records count, each id once.
    fn fresh<'a>(&self, entries: &'a [FoldEntry]) -> Result<Vec<&'a FoldEntry>, StoreError> {
        let is_abandoned = |entry: &FoldEntry| entry.charge.record.outcome == UsageOutcome::Abandoned;
        let mut fresh: Vec<&FoldEntry> = Vec::new();
        for entry in entries {
            let id = &entry.charge.record.id;
            not_negative(entry.charge.record.cost)?;
            let stored = self.usage.iter().find(|stored| stored.id == *id);
            if stored.is_some_and(|stored| stored.outcome != UsageOutcome::Abandoned || is_abandoned(entry)) {
                continue;
            }
            match fresh.iter_mut().find(|other| other.charge.record.id == *id) {
                Some(other) if is_abandoned(other) && !is_abandoned(entry) => *other = entry,
                Some(_) => {}
                None => fresh.push(entry),
            }
        }
        Ok(fresh)
    }

    fn end(
        &mut self,
        id: ProcessId,
        remaining: RemainingAllowances,
        now: DateTime<Utc>,
        audit: Option<&AuditDraft>,
    ) -> Result<(), StoreError> {
        let (mut ledger, mut allotments) = (self.ledger.clone(), self.allotments.clone());
        let Some(process) = allotments.processes.get_mut(&id) else { return Ok(()) };
        match (process.status.state, remaining) {
            (ProcessState::Live | ProcessState::Adopted, _) | (ProcessState::Lost, RemainingAllowances::Return) => {}
            _ => return Ok(()),
        }
        process.status.state = match remaining {
            RemainingAllowances::Return => ProcessState::Ended,
            RemainingAllowances::Adjust => ProcessState::Lost,
        };
        if remaining == RemainingAllowances::Return {
            let adjusted: Vec<_> = allotments.adjustments.extract_if(.., |(process, _), _| *process == id).collect();
            for ((_, counter), amount) in adjusted {
                ledger.add_to_counter(counter, negative(amount), Usd::ZERO)?;
            }
        }
        let own: Vec<_> = allotments.allowances.extract_if(.., |(process, _), _| *process == id).collect();
        for ((_, counter), amount) in own {
            let spent = match remaining {
                RemainingAllowances::Return => Usd::ZERO,
                RemainingAllowances::Adjust => amount,
            };
            add_amount(&mut allotments.adjustments, id, counter, spent)?;
            ledger.add_to_counter(counter, spent, negative(amount))?;
        }
        let before = std::mem::replace(&mut self.ledger, ledger);
        self.allotments = allotments;
        self.add_alerts(&before, now);
        audit.map(|audit| self.note(audit, now));
        Ok(())
    }
}

#[async_trait]
impl BudgetStore for MemoryBudget {
    async fn register(&self, process: ProcessId) -> Result<(), StoreError> {
        let status = ProcessStatus { state: ProcessState::Live, number: 0, folded_sequence: 0 };
        let new = Process { status, seen_at: self.0.now(), last_reply: None };
        self.0.state().allotments.processes.entry(process).or_insert(new);
        Ok(())
    }

    async fn process(&self, process: ProcessId) -> Result<Option<ProcessStatus>, StoreError> {
        Ok(self.0.state().allotments.processes.get(&process).map(|found| found.status))
    }

    async fn live_processes(&self) -> Result<Vec<LiveProcess>, StoreError> {
        let now = self.0.now();
        let state = self.0.state();
        let live = state.allotments.processes.iter().filter(|(_, found)| found.status.state == ProcessState::Live);
        let live = live.map(|(process, Process { seen_at, .. })| LiveProcess {
            process: *process,
            seen_at: *seen_at,
            silent_for: (now - *seen_at).to_std().unwrap_or_default(),
        });
        Ok(live.collect())
    }

    async fn draw(&self, request: &DrawRequest) -> Result<DrawReply, BudgetStoreError> {
        self.0.state().draw(request, self.0.now())
    }

    async fn return_allowances(&self, request: &ReturnRequest) -> Result<(), BudgetStoreError> {
        self.0.state().return_allowances(request)
    }

    async fn fold(&self, request: &FoldRequest) -> Result<(), BudgetStoreError> {
        self.0.state().fold(request, self.0.now())
    }

    async fn declare_older(&self) -> Result<(), StoreError> {
        let now = self.0.now();
        let mut state = self.0.state();
        if !state.allotments.folds_again(now) {
            state.allotments.declared_older_at = Some(now);
        }
        Ok(())
    }

    async fn end(&self, process: ProcessId, remaining: RemainingAllowances) -> Result<(), StoreError> {
        self.0.state().end(process, remaining, self.0.now(), None)
    }

    async fn forget(
        &self,
        process: ProcessId,
        remaining: RemainingAllowances,
        audit: &AuditDraft,
    ) -> Result<(), StoreError> {
        self.0.state().end(process, remaining, self.0.now(), Some(audit))
    }

    async fn limits(&self, payer: &Payer) -> Result<(Vec<CounterLimits>, u64), StoreError> {
        let state = self.0.state();
        state.check_payer(payer)?;
        let limits = payer.accounts().map(|account| CounterLimits { account, limits: state.limits_of(account) });
        Ok((limits.filter(|found| !found.limits.is_empty()).collect(), state.changes.limits))
    }

    async fn signals(&self) -> Result<BudgetSignals, StoreError> {
        let (state, now) = (self.0.state(), self.0.now());
        let recalls = state.allotments.recalled.keys().filter_map(|counter| {
            let began_at = state.allotments.recall(counter, now)?;
            Some(Recall { counter: *counter, began_at })
        });
        let declared_older_at = state.allotments.declared_older_at;
        Ok(BudgetSignals { feed: state.changes.limits, at: now, declared_older_at, recalled: recalls.collect() })
    }
}
