//! The ledger of a process: holds in memory, charges in its journal, both backed by allowances from the store.
//!
//! A request waits for the store only for a draw while a counter is cold or nearly empty. Draws, returns and folds go
//! through one [`Keeper`], one after the other; whoever needs a draw locks it and serves all requests that wait.

mod asks;
mod calls;
mod charging;
mod forgetting;
mod keeper;
mod omission;
mod omitted_traces;
mod recovery;
mod refusals;
mod state;
mod sync;
mod workspaces;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{Either, select};
use futures_util::lock::Mutex as AsyncMutex;

use self::asks::{Answer, Ask};
use self::calls::{OpenCall, lock};
pub use self::forgetting::{ForgetError, ForgetProcesses, ForgetSettings};
use self::keeper::{Keeper, journal_failed};
pub use self::recovery::{RecoverJournals, RecoveryReport};
use self::state::SharedState;
pub use self::workspaces::LedgerSettings;
use super::allowances::{CounterId, CounterPeriod, HoldError};
use super::entries::{IncreasedEntry, SentEntry, charge_bytes, encode_closed};
use super::{
    Account, BudgetStore, CounterLimits, EntryKind, Hold, HoldRequest, Ledger, LimitExceeded, LimitStatus,
    LimitStatusReader, Payer, RemainingAllowances, UsageCharge, UsageJournal, UsageJournalError, UsageJournalStatus,
};
use crate::error::StoreError;
use crate::ids::{DecisionId, WorkspaceId};
use crate::money::Usd;
use crate::system::{Clock, Timer};
use crate::usage::{AttemptRecord, PendingRecords};

/// The time between two rounds of the work beside requests.
const TICK: Duration = Duration::from_millis(50);
/// The pause between two rounds while more is to be folded, for requests that wait for a draw.
const TURN: Duration = Duration::from_millis(1);
/// The time between two log lines of one outage of the store.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// Holds and charges money for the requests of one process.
pub struct JournaledLedger {
    store: Arc<dyn BudgetStore>,
    journal: Arc<dyn UsageJournal>,
    clock: Arc<dyn Clock>,
    state: Arc<SharedState>,
    keeper: AsyncMutex<Keeper>,
    limits: Arc<dyn LimitStatusReader>,
}

impl JournaledLedger {
    /// Without any allowance. The process is registered in the store with the first call that needs the store.
    /// `limits` reads the amounts in the store.
    pub fn new(
        store: Arc<dyn BudgetStore>,
        journal: Arc<dyn UsageJournal>,
        clock: Arc<dyn Clock>,
        limits: Arc<dyn LimitStatusReader>,
        settings: LedgerSettings,
    ) -> Self {
        let state = Arc::new(SharedState::new(settings));
        let keeper = Keeper::new(Arc::clone(&store), Arc::clone(&journal), Arc::clone(&clock), Arc::clone(&state));
        Self { store, journal, clock, state, keeper: AsyncMutex::new(keeper), limits }
    }

    /// Takes money out of the allowances of a request, or returns false where they lack some.
    fn take(
        &self,
        workspace: WorkspaceId,
        id: &DecisionId,
        amounts: &[(CounterId, Usd)],
        is_increase: bool,
    ) -> Result<bool, StoreError> {
        match self.state.take(workspace, id, self.clock.monotonic(), amounts, is_increase) {
            Ok(()) => Ok(true),
            Err(HoldError::Short(_)) => Ok(false),
            Err(HoldError::State(id)) => Err(StoreError::Corrupt(format!("the hold {id} is not open"))),
        }
    }

    /// Waits for a draw of what a request lacks.
    async fn draw(&self, ask: Arc<Ask>) -> Answer {
        let free = self.keeper.try_lock();
        if free.is_none() && self.state.is_store_away() {
            // The keeper waits for a store that failed before: requests do not queue up behind it.
            return Err(StoreError::unavailable("the store of limits does not answer"));
        }
        let waiting = LeavesQueue { ask: &ask, state: &self.state };
        self.state.asks.push(Arc::clone(&ask));
        let mut keeper = match free {
            Some(keeper) => keeper,
            None => self.keeper.lock().await,
        };
        if ask.is_waiting() {
            keeper.serve_asks().await;
        }
        drop(keeper);
        let answer = ask.take_answer();
        drop(waiting);
        answer.unwrap_or_else(|| Err(StoreError::unavailable("the draw was interrupted")))
    }

    /// The limits of a payer, at most half a second older than a change of them. While the store cannot be read, as
    /// they were read last.
    async fn limits(&self, payer: &Payer) -> Result<Arc<[CounterLimits]>, StoreError> {
        let now = self.clock.monotonic();
        if let Some(limits) = self.state.workspaces.limits(payer, now) {
            return Ok(limits);
        }
        match self.store.limits(payer).await {
            Ok((limits, feed)) => {
                self.state.workspaces.changed(feed);
                Ok(self.state.workspaces.keep_limits(payer, limits, feed, now))
            }
            Err(error @ StoreError::Unavailable(_)) => self.state.workspaces.last_limits(payer).ok_or(error),
            Err(error) => Err(error),
        }
    }

    /// The part of the allowance of a counter that no request holds.
    pub fn free(&self, workspace: WorkspaceId, counter: CounterId) -> Usd {
        lock(&self.state.workspaces.get(workspace)).allowances.status(counter).free
    }

    /// Folds everything that was charged until now.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.keeper.lock().await.flush().await
    }

    /// True where charges may be in the journal that are not in the store.
    pub fn has_unfolded(&self) -> bool {
        self.journal.status().unfolded_entries > 0
    }

    /// One round of the work beside requests: folds, returns, draws ahead.
    pub async fn tick(&self) -> Result<(), StoreError> {
        self.work().await.map(drop)
    }

    /// One round; true where more is to be folded.
    async fn work(&self) -> Result<bool, StoreError> {
        let worked = self.keeper.lock().await.tick().await;
        self.state.set_store_away(worked.is_err());
        worked
    }

    /// The status of the journal.
    pub fn journal_status(&self) -> UsageJournalStatus {
        self.journal.status()
    }

    /// The number of requests that were sent and have not ended.
    pub fn open_calls(&self) -> usize {
        self.state.calls.count()
    }

    /// Works beside requests until `stopped`, then ends the process in the store: at the latest after `patience`. What
    /// could not be folded by then is folded by the next process of this machine.
    pub async fn run(&self, stopped: impl Future<Output = ()>, timer: &dyn Timer, patience: Duration) {
        let mut stopped = pin!(stopped);
        let mut outage = None;
        loop {
            let worked = self.work().await;
            let pause = if matches!(worked, Ok(true)) { TURN } else { TICK };
            outage = self.log_outage(worked.err(), outage);
            match select(&mut stopped, timer.sleep(pause)).await {
                Either::Left(_) => break,
                Either::Right(_) => {}
            }
        }
        let ended = async {
            while let Err(error) = self.close().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "journal not folded, retrying");
                timer.sleep(Duration::from_millis(250)).await;
            }
        };
        if let Either::Right(_) = select(pin!(ended), timer.sleep(patience)).await {
            let unfolded = self.journal.status().unfolded_entries;
            tracing::error!(unfolded, "the store took no charges; they stay in the journal for the next start");
        }
    }

    /// Logs a store that is away once a minute. Takes and returns the time of the last such line.
    fn log_outage(&self, error: Option<StoreError>, logged: Option<Duration>) -> Option<Duration> {
        let Some(error) = error else {
            if logged.is_some() {
                tracing::info!("journal folded again");
            }
            return None;
        };
        let now = self.clock.monotonic();
        if logged.is_some_and(|logged| now.saturating_sub(logged) < LOG_EVERY) {
            return logged;
        }
        let unfolded = self.journal.status().unfolded_entries;
        let error: &dyn std::error::Error = &error;
        tracing::warn!(unfolded, error, "journal not folded: the store is away");
        Some(now)
    }

    /// Folds everything, returns every allowance and ends the process in the store.
    pub async fn close(&self) -> Result<(), StoreError> {
        let mut keeper = self.keeper.lock().await;
        keeper.flush().await?;
        let open = self.state.calls.count();
        if open > 0 {
            // Their charges may still come. What never ends is ended by the next process of this machine.
            return Err(StoreError::unavailable(format!("{open} requests have not ended")));
        }
        let closed = self.journal.append_end(EntryKind::Closed, &encode_closed(), 0).map_err(journal_failed)?;
        self.journal.wait_synced(closed).await.map_err(journal_failed)?;
        keeper.flush().await?;
        tracing::debug!(folded = keeper.folded(), "journal closed");
        self.store.end(self.journal.process(), RemainingAllowances::Return).await
    }
}

#[async_trait]
impl Ledger for JournaledLedger {
    async fn reserve(&self, request: HoldRequest) -> Result<Result<Hold, LimitExceeded>, StoreError> {
        check_amount(request.amount)?;
        if let Some(open) = self.state.calls.get(&request.id) {
            return Ok(Ok(open.hold));
        }
        let at = self.clock.now();
        let HoldRequest { id, payer, amount, request_id, requested_model, attempts, .. } = request;
        let limits = if request.is_limited { self.limits(&payer).await? } else { Arc::default() };
        let counters: Vec<CounterId> = limits.iter().flat_map(|account| account.counters(at)).collect();
        let workspace = payer.workspace_id;
        if !self.take(workspace, &id, &amounts(&counters, amount), false)? {
            if let Some(exceeded) = self.state.refused(&payer, amount, (self.clock.monotonic(), at)) {
                return Ok(Err(exceeded));
            }
            let ask = Ask::new(id.clone(), payer.clone(), at, (amount, counters.clone()), false);
            if let Err(exceeded) = self.draw(ask).await? {
                self.state.keep_refusal(&payer, exceeded, self.clock.monotonic());
                return Ok(Err(exceeded));
            }
        }
        let reserved_bytes = charge_bytes(attempts.len(), counters.len(), payer.guardrails.len());
        let entry =
            SentEntry { id, payer, at, request_id, requested_model, amount, counters: counters.clone(), attempts };
        let appended = self.journal.append_sent(EntryKind::Sent, &entry.encode(), reserved_bytes);
        let SentEntry { id, payer, .. } = entry;
        let hold = Hold { id, at, payer, amount };
        match appended {
            Ok(sequence) => {
                let call = OpenCall { hold: hold.clone(), counters, sequence, reserved_bytes };
                self.state.calls.insert(call);
                Ok(Ok(hold))
            }
            Err(error) => {
                if let UsageJournalError::Retained { sequence, .. } = error {
                    self.append_release(workspace, &hold.id, sequence, reserved_bytes);
                } else {
                    self.state.cancel(workspace, &hold.id);
                }
                Err(journal_failed(error))
            }
        }
    }

    async fn increase(
        &self,
        id: &DecisionId,
        more: Usd,
        attempts: &[AttemptRecord],
    ) -> Result<Result<(), LimitExceeded>, StoreError> {
        check_amount(more)?;
        let Some(open) = self.state.calls.get(id) else {
            return Err(StoreError::Corrupt(format!("the hold {id} is not open")));
        };
        if !self.take(open.hold.payer.workspace_id, id, &amounts(&open.counters, more), true)? {
            let ask = Ask::new(id.clone(), open.hold.payer, open.hold.at, (more, open.counters), true);
            if let Err(exceeded) = self.draw(ask).await? {
                return Ok(Err(exceeded));
            }
        }
        let entry = IncreasedEntry { id: id.clone(), amount: more, attempts: attempts.to_vec() };
        self.journal.append_sent(EntryKind::Increased, &entry.encode(), 0).map_err(journal_failed)?;
        self.state.calls.increase(id, more);
        Ok(Ok(()))
    }

    async fn settle(&self, charge: UsageCharge) -> Result<(), StoreError> {
        check_amount(charge.record.cost)?;
        let sequence = self.append_charge(charge)?;
        self.journal.wait_durable(sequence).await.map_err(journal_failed)
    }

    async fn release(&self, id: &DecisionId) -> Result<(), StoreError> {
        if let Some(open) = self.state.calls.remove(id) {
            self.append_release(open.hold.payer.workspace_id, id, open.sequence, open.reserved_bytes);
        }
        Ok(())
    }
}

#[async_trait]
impl LimitStatusReader for JournaledLedger {
    /// The amounts of the store with the charges of this process. What this process has free counts as room.
    async fn limit_statuses(&self, payer: &Payer) -> Result<Vec<LimitStatus>, StoreError> {
        self.flush().await?;
        let at = self.clock.now();
        let mut statuses = self.limits.limit_statuses(payer).await?;
        for status in &mut statuses {
            let account = payer.accounts().find(|account| match account {
                Account::Guardrail(id, _) => status.guardrail_id == Some(*id),
                other => other.scope() == status.scope,
            });
            let Some(account) = account else { continue };
            let counter = CounterId { account, period: CounterPeriod::containing(status.reset, at) };
            let free = self.free(payer.workspace_id, counter);
            status.reserved = Usd::from_pico(status.reserved.pico().saturating_sub(free.pico()).max(0));
        }
        Ok(statuses)
    }
}

#[async_trait]
impl PendingRecords for JournaledLedger {
    async fn store_pending(&self) -> Result<(), StoreError> {
        if self.has_unfolded() { self.flush().await } else { Ok(()) }
    }
}

/// A request in the queue whose caller may leave.
struct LeavesQueue<'a> {
    ask: &'a Ask,
    state: &'a SharedState,
}

impl Drop for LeavesQueue<'_> {
    fn drop(&mut self) {
        // What was added to an open hold ends with it.
        if self.ask.leave() && !self.ask.is_increase {
            self.state.cancel(self.ask.payer.workspace_id, &self.ask.id);
        }
    }
}

/// The same amount in each counter.
fn amounts(counters: &[CounterId], amount: Usd) -> Vec<(CounterId, Usd)> {
    counters.iter().map(|counter| (*counter, amount)).collect()
}

fn check_amount(amount: Usd) -> Result<(), StoreError> {
    if amount < Usd::ZERO { Err(StoreError::Corrupt(format!("{amount} USD cannot be charged"))) } else { Ok(()) }
}
