//! Processes that draw, return and fold.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::super::Stores;
use super::super::ledger::fixtures::{usd, utc};
use crate::budget::allowances::{CounterId, CounterPeriod};
use crate::budget::{
    Account, BudgetStoreError, DrawAhead, DrawAsk, DrawReply, DrawRequest, FoldEntry, FoldRequest, LimitExceeded,
    Payer, ResetInterval, ReturnRequest, UsageCharge,
};
use crate::error::StoreError;
use crate::ids::ProcessId;
use crate::usage::UsageRecord;

/// Returns the time at which [`super::super::ledger::fixtures::insert_fixtures`] sets the clock.
pub(super) fn noon() -> DateTime<Utc> {
    utc("2026-07-15T12:00:00Z")
}

pub(super) fn lifetime(account: Account) -> CounterId {
    CounterId { account, period: CounterPeriod::Lifetime }
}

pub(super) fn period(account: Account, interval: ResetInterval, at: DateTime<Utc>) -> CounterId {
    CounterId { account, period: CounterPeriod::containing(Some(interval), at) }
}

pub(super) fn key_of(payer: &Payer) -> CounterId {
    lifetime(Account::Key(payer.api_key))
}

pub(super) fn workspace_of(payer: &Payer) -> CounterId {
    lifetime(Account::Workspace(payer.workspace_id))
}

/// Returns an ask that lacks the whole amount in each of the counters.
pub(super) fn ask(payer: &Payer, pico: i64, counters: &[CounterId]) -> DrawAsk {
    ask_at(payer, noon(), pico, counters)
}

pub(super) fn ask_at(payer: &Payer, at: DateTime<Utc>, pico: i64, counters: &[CounterId]) -> DrawAsk {
    DrawAsk { payer: payer.clone(), at, amount: usd(pico), counters: counters.to_vec() }
}

pub(super) fn entry(record: UsageRecord, allowances: &[(CounterId, i64)]) -> FoldEntry {
    FoldEntry {
        charge: UsageCharge::new(record),
        allowances: allowances.iter().map(|(counter, pico)| (*counter, usd(*pico))).collect(),
    }
}

pub(super) fn is_corrupt<T: std::fmt::Debug>(result: &Result<T, BudgetStoreError>) -> bool {
    matches!(result, Err(BudgetStoreError::Store(StoreError::Corrupt(_))))
}

/// A registered process and its numbers.
pub(super) struct Holder {
    pub(super) id: ProcessId,
    number: AtomicU64,
    folded: AtomicU64,
}

impl Holder {
    pub(super) async fn register(stores: &Stores, number: u128) -> Self {
        let id = ProcessId::from_uuid(Uuid::from_u128(number));
        stores.budget.register(id).await.expect("a process is registered");
        Self { id, number: AtomicU64::new(0), folded: AtomicU64::new(0) }
    }

    pub(super) fn request(&self, asks: &[DrawAsk], ahead: &[(CounterId, i64)]) -> DrawRequest {
        let number = self.number.load(Ordering::SeqCst) + 1;
        let ahead = ahead.iter().map(|(counter, pico)| DrawAhead { counter: *counter, amount: usd(*pico) });
        DrawRequest { process: self.id, number, asks: asks.to_vec(), free: BTreeMap::new(), ahead: ahead.collect() }
    }

    pub(super) async fn draw(&self, stores: &Stores, asks: &[DrawAsk], ahead: &[(CounterId, i64)]) -> DrawReply {
        let reply = stores.budget.draw(&self.request(asks, ahead)).await.expect("the store answers");
        if !reply.grants.is_empty() {
            self.number.fetch_add(1, Ordering::SeqCst);
        }
        reply
    }

    /// Draws for one request.
    pub(super) async fn draw_one(
        &self,
        stores: &Stores,
        payer: &Payer,
        pico: i64,
        counters: &[CounterId],
    ) -> Result<(), LimitExceeded> {
        self.draw(stores, &[ask(payer, pico, counters)], &[]).await.answers.remove(0)
    }

    pub(super) fn return_request(&self, amounts: &[(CounterId, i64)]) -> ReturnRequest {
        let amounts = amounts.iter().map(|(counter, pico)| (*counter, usd(*pico))).collect();
        ReturnRequest { process: self.id, number: self.number.load(Ordering::SeqCst) + 1, amounts, answered: None }
    }

    pub(super) async fn return_allowances(&self, stores: &Stores, amounts: &[(CounterId, i64)]) {
        stores.budget.return_allowances(&self.return_request(amounts)).await.expect("the store takes it back");
        self.number.fetch_add(1, Ordering::SeqCst);
    }

    /// Answers the current recalls without a return.
    pub(super) async fn answer(&self, stores: &Stores) {
        let answered = Some(stores.budget.signals().await.expect("the store answers").at);
        let request = ReturnRequest { answered, ..self.return_request(&[]) };
        stores.budget.return_allowances(&request).await.expect("the store takes the answer");
        self.number.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns a fold whose entry numbers continue by the number of charges.
    pub(super) fn fold_request(&self, entries: Vec<FoldEntry>) -> FoldRequest {
        let after = self.folded.load(Ordering::SeqCst);
        FoldRequest { process: self.id, after, up_to: after + entries.len() as u64, entries }
    }

    pub(super) async fn fold(&self, stores: &Stores, entries: Vec<FoldEntry>) {
        let request = self.fold_request(entries);
        stores.budget.fold(&request).await.expect("the store folds");
        self.folded.store(request.up_to, Ordering::SeqCst);
    }
}

pub(super) async fn adds_up(stores: &Stores, case: &str) {
    let audit = stores.maintenance.audit().await.expect("the ledger is audited");
    assert_eq!(audit.discrepancies, [], "after {case}");
}
