//! Draws of allowances, and the stored form of their replies for repeated calls.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::budget::allowances::CounterId;
use domain::budget::{
    BudgetScope, BudgetStoreError, CounterBalance, DrawDecision, DrawReply, DrawRequest, FOLD_AGAIN_FOR, LimitExceeded,
    ResetInterval, decide_draw, has_answered,
};
use domain::error::StoreError;
use domain::ids::ProcessId;
use domain::money::Usd;
use sea_orm::{ConnectionTrait, Value};
use serde::{Deserialize, Serialize};

use super::counters::{
    Amounts, CounterRow, NAMES, any_of, columns_of, counter_named, positive, read_balances, read_holders, set_amounts,
    set_counters, sum,
};
use super::limits::AccountLimits;
use super::processes::{self, CallNumber, StoreState};
use crate::change_feed;
use crate::convert::{millis, moment, parse};
use crate::database::Database;
use crate::errors::corrupt;
use crate::statements::{chunks_of, run};

/// The lifetime of a recall, in milliseconds.
pub(super) const RECALL: i64 = 5_000;
/// The age of a recall after which it is renewed if still needed, in milliseconds.
const RENEWED_AFTER: i64 = RECALL / 2;

/// The rows that decide a draw, read in one transaction.
struct Balances {
    feed: u64,
    live_processes: u64,
    rows: BTreeMap<CounterId, CounterRow>,
    /// The time at which the most silent other holder was last seen, for counters that block a request.
    holders: BTreeMap<CounterId, i64>,
    own: BTreeMap<CounterId, i64>,
    limits: AccountLimits,
}

/// Implements the port. Reads first, and takes the write lock only to grant or mark.
pub(super) async fn draw(database: &Database, request: &DrawRequest) -> Result<DrawReply, BudgetStoreError> {
    check_amounts(request)?;
    let snapshot = database.snapshot().await?;
    let state = processes::read_state(&snapshot, request.process, request.number).await?;
    if let CallNumber::Repeated(text) = state.call {
        return repeated(text.as_deref(), request);
    }
    let now = database.now();
    check_age(&state.feed, now)?;
    let mut balances = Balances::read(&snapshot, request, &state).await?;
    let decision = balances.decide(&snapshot, request, now).await?;
    if decision.grants.is_empty() && balances.marks(&decision, now).is_empty() {
        return Ok(balances.reply(decision));
    }
    drop(snapshot);
    // The rows may have changed since: the final decision needs the write lock.
    let transaction = database.begin_durable().await?;
    let state = processes::read_state(&transaction, request.process, request.number).await?;
    if let CallNumber::Repeated(text) = state.call {
        return repeated(text.as_deref(), request);
    }
    let now = database.now();
    check_age(&state.feed, now)?;
    let mut balances = Balances::read(&transaction, request, &state).await?;
    let decision = balances.decide(&transaction, request, now).await?;
    mark(&transaction, &balances.marks(&decision, now), now).await?;
    balances.grant(&transaction, request, &decision).await?;
    let reply = balances.reply(decision);
    if !reply.grants.is_empty() {
        let text = write_reply(&reply, request.process)?;
        processes::advance(&transaction, request.process, request.number, Some(text)).await?;
    }
    transaction.commit().await?;
    Ok(reply)
}

/// Answers a repeated number: with the stored reply of a draw; an error if it was a return.
fn repeated(text: Option<&str>, request: &DrawRequest) -> Result<DrawReply, BudgetStoreError> {
    match text {
        Some(text) => Ok(read_reply(text, request.process)?),
        None => Err(BudgetStoreError::Number { expected: request.number.saturating_add(1), found: request.number }),
    }
}

fn check_amounts(request: &DrawRequest) -> Result<(), StoreError> {
    let amounts = request.asks.iter().map(|ask| ask.amount).chain(request.free.values().copied());
    amounts.map(positive).try_for_each(|amount| amount.map(drop))
}

/// Returns true while processes must return their free allowance of a counter.
fn is_in_force(row: &CounterRow, now: DateTime<Utc>) -> bool {
    row.recalled_at.is_some_and(|at| at > millis(now).saturating_sub(RECALL))
}

/// Returns true while processes fold again what an older store lacks.
pub(super) fn is_folding_again(declared_older_at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> bool {
    declared_older_at.is_some_and(|at| (now - at).to_std().unwrap_or_default() < FOLD_AGAIN_FOR)
}

fn check_age(feed: &change_feed::Counters, now: DateTime<Utc>) -> Result<(), BudgetStoreError> {
    if is_folding_again(feed.declared_older_at, now) { Err(BudgetStoreError::FoldsAgain) } else { Ok(()) }
}

impl Balances {
    async fn read(
        connection: &impl ConnectionTrait,
        request: &DrawRequest,
        state: &StoreState,
    ) -> Result<Self, StoreError> {
        let asked = request.asks.iter().flat_map(|ask| ask.counters.iter().copied());
        let counters: Vec<CounterId> = asked.chain(request.ahead.iter().map(|ahead| ahead.counter)).collect();
        let payers = request.asks.iter().map(|ask| &ask.payer);
        let limits = AccountLimits::read(connection, counters.iter().map(|counter| counter.account), payers).await?;
        for ask in &request.asks {
            limits.check(&ask.payer)?;
        }
        let (rows, own) = read_balances(connection, request.process, counters).await?;
        Ok(Self {
            feed: state.feed.limits,
            live_processes: state.live_processes,
            rows,
            holders: BTreeMap::new(),
            own,
            limits,
        })
    }

    /// Decides; reads the other holders only of counters that block a request.
    async fn decide(
        &mut self,
        connection: &impl ConnectionTrait,
        request: &DrawRequest,
        now: DateTime<Utc>,
    ) -> Result<DrawDecision, StoreError> {
        let decision = self.decide_by_rows(request, now);
        if decision.recalls.is_empty() {
            return Ok(decision);
        }
        self.holders = read_holders(connection, request.process, &decision.recalls).await?;
        Ok(self.decide_by_rows(request, now))
    }

    fn decide_by_rows(&self, request: &DrawRequest, now: DateTime<Utc>) -> DrawDecision {
        let asked = request.asks.iter().flat_map(|ask| ask.counters.iter().copied());
        let counters = asked.chain(request.ahead.iter().map(|ahead| ahead.counter));
        let balances = counters.map(|counter| (counter, self.balance(&counter, now))).collect();
        decide_draw(request, balances, self.live_processes)
    }

    fn balance(&self, counter: &CounterId, now: DateTime<Utc>) -> CounterBalance {
        let row = self.rows.get(counter).copied().unwrap_or_default();
        let is_recalled = is_in_force(&row, now);
        let time = |at: i64| DateTime::from_timestamp_millis(at);
        let recall = row.recall_began_at.filter(|_| is_recalled).and_then(time);
        let answered = |seen_at: &i64| time(*seen_at).is_some_and(|seen_at| has_answered(recall, seen_at, now));
        CounterBalance {
            spent: Usd::from_pico(row.spent),
            allotted: Usd::from_pico(row.allotted),
            own: Usd::from_pico(self.own.get(counter).copied().unwrap_or_default()),
            is_recalled,
            is_unanswered: self.holders.get(counter).is_some_and(|seen_at| !answered(seen_at)),
            limits: self.limits.of_counter(counter),
        }
    }

    /// Returns the recalls to write or to renew.
    fn marks(&self, decision: &DrawDecision, now: DateTime<Utc>) -> Vec<CounterId> {
        let old = millis(now).saturating_sub(RENEWED_AFTER);
        let marked_at = |counter: &CounterId| self.rows.get(counter).and_then(|row| row.recalled_at);
        let due = |counter: &&CounterId| marked_at(counter).is_none_or(|at| at < old);
        decision.recalls.iter().filter(due).copied().collect()
    }

    fn reply(&self, decision: DrawDecision) -> DrawReply {
        DrawReply { feed: self.feed, grants: decision.grants.into_iter().collect(), answers: decision.answers }
    }

    async fn grant(
        &self,
        transaction: &impl ConnectionTrait,
        request: &DrawRequest,
        decision: &DrawDecision,
    ) -> Result<(), StoreError> {
        let mut allowances = BTreeMap::new();
        let mut counters = BTreeMap::new();
        for (counter, amount) in &decision.grants {
            let own = self.own.get(counter).copied().unwrap_or_default();
            allowances.insert(*counter, sum(own, amount.pico().into())?);
            let row = self.rows.get(counter).copied().unwrap_or_default();
            counters.insert(*counter, CounterRow { allotted: sum(row.allotted, amount.pico().into())?, ..row });
        }
        set_amounts(transaction, Amounts::Allowances, request.process, &allowances).await?;
        set_counters(transaction, &counters).await
    }
}

/// Marks counters whose allowances other processes must return.
async fn mark(
    transaction: &impl ConnectionTrait,
    counters: &[CounterId],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    for piece in chunks_of(counters, NAMES) {
        // Renews a recall that is still active: answers to it continue to count.
        let text = format!(
            "UPDATE spend_counters SET recall_began_at = CASE WHEN recalled_at > ? THEN recall_began_at ELSE ? END, \
             recalled_at = ? WHERE {}",
            any_of(piece.len())
        );
        let now = millis(now);
        let times = [now.saturating_sub(RECALL), now, now].map(Value::from);
        run(transaction, &text, times.into_iter().chain(piece.iter().flat_map(columns_of)).collect()).await?;
    }
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct StoredReply {
    feed: u64,
    grants: Vec<StoredGrant>,
    answers: Vec<Option<StoredExceeded>>,
}

#[derive(Serialize, Deserialize)]
struct StoredGrant {
    scope: String,
    subject: String,
    interval: String,
    start: i64,
    pico: i64,
}

#[derive(Serialize, Deserialize)]
struct StoredExceeded {
    scope: String,
    guardrail_id: Option<String>,
    is_credit: bool,
    limit: i64,
    reset: Option<String>,
    spent: i64,
    reserved: i64,
    wanted: i64,
    resets_at: Option<i64>,
    is_uncertain: bool,
}

const COLUMN: &str = "budget_processes.last_reply";

/// Encodes a reply.
fn write_reply(reply: &DrawReply, process: ProcessId) -> Result<String, StoreError> {
    let unwritable = || corrupt(COLUMN, process);
    let mut grants = Vec::with_capacity(reply.grants.len());
    for (counter, amount) in &reply.grants {
        let [
            Value::String(Some(scope)),
            Value::String(Some(subject)),
            Value::String(Some(interval)),
            Value::BigInt(Some(start)),
        ] = columns_of(counter)
        else {
            return Err(unwritable());
        };
        grants.push(StoredGrant { scope, subject, interval, start, pico: amount.pico() });
    }
    let answers = reply.answers.iter().map(|answer| answer.as_ref().err().map(to_stored)).collect();
    serde_json::to_string(&StoredReply { feed: reply.feed, grants, answers }).map_err(|_| unwritable())
}

/// Decodes a reply.
fn read_reply(text: &str, process: ProcessId) -> Result<DrawReply, StoreError> {
    let stored: StoredReply = serde_json::from_str(text).map_err(|_| corrupt(COLUMN, process))?;
    let mut grants = Vec::with_capacity(stored.grants.len());
    for StoredGrant { scope, subject, interval, start, pico } in &stored.grants {
        grants.push((counter_named(scope, subject, interval, *start)?, Usd::from_pico(*pico)));
    }
    let mut answers = Vec::with_capacity(stored.answers.len());
    for answer in stored.answers {
        answers.push(match answer {
            Some(stored) => Err(to_exceeded(stored, process)?),
            None => Ok(()),
        });
    }
    Ok(DrawReply { feed: stored.feed, grants, answers })
}

fn to_stored(exceeded: &LimitExceeded) -> StoredExceeded {
    StoredExceeded {
        scope: exceeded.scope.as_str().to_owned(),
        guardrail_id: exceeded.guardrail_id.map(|id| id.to_string()),
        is_credit: exceeded.is_credit,
        limit: exceeded.limit.pico(),
        reset: exceeded.reset.map(|reset| reset.as_str().to_owned()),
        spent: exceeded.spent.pico(),
        reserved: exceeded.reserved.pico(),
        wanted: exceeded.wanted.pico(),
        resets_at: exceeded.resets_at.map(millis),
        is_uncertain: exceeded.is_uncertain,
    }
}

fn to_exceeded(stored: StoredExceeded, process: ProcessId) -> Result<LimitExceeded, StoreError> {
    let scopes = [BudgetScope::Workspace, BudgetScope::Key, BudgetScope::Guardrail];
    let scope = scopes.into_iter().find(|scope| scope.as_str() == stored.scope);
    let interval = |name: String| ResetInterval::from_name(&name).ok_or_else(|| corrupt(COLUMN, process));
    Ok(LimitExceeded {
        scope: scope.ok_or_else(|| corrupt(COLUMN, process))?,
        guardrail_id: stored.guardrail_id.map(|id| parse(&id, COLUMN, process)).transpose()?,
        is_credit: stored.is_credit,
        limit: Usd::from_pico(stored.limit),
        reset: stored.reset.map(interval).transpose()?,
        spent: Usd::from_pico(stored.spent),
        reserved: Usd::from_pico(stored.reserved),
        wanted: Usd::from_pico(stored.wanted),
        resets_at: stored.resets_at.map(|at| moment(at, COLUMN, process)).transpose()?,
        is_uncertain: stored.is_uncertain,
    })
}
