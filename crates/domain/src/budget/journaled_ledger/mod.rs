//! The ledger of a process: holds in memory, charges in its journal, both backed by allowances from the store.
//!
//! A request waits for the store only for a draw while a counter is cold or nearly empty. Draws, returns and folds go
//! through one [`Keeper`], one after the other; a request that needs a draw locks it and serves all waiting requests.

mod asks;
mod calls;
mod charging;
mod forgetting;
mod keeper;
mod omission;
mod recovery;
mod renewing;
mod state;
mod sync;
mod workspaces;

use std::iter;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{Either, select};
use futures_util::lock::Mutex as AsyncMutex;

use self::asks::{Answer, Ask};
use self::calls::{ChargeError, OpenCall, journal_failed, lock};
pub use self::forgetting::{ForgetError, ForgetProcesses, ForgetSettings};
use self::keeper::Keeper;
pub use self::recovery::{RecoverJournals, RecoveryReport};
pub use self::renewing::{RenewingLedger, RenewingLedgerPorts};
use self::state::SharedState;
pub use self::workspaces::LedgerSettings;
use super::allowances::{CounterId, CounterPeriod, HoldError};
use super::entries::{IncreasedEntry, SentEntry, charge_bytes, encode_closed};
use super::{
    Account, BudgetStore, CounterLimits, EntryKind, Hold, HoldRequest, JournalEntry, KeySpend, Ledger, LedgerReader,
    LimitExceeded, LimitStatus, Payer, RemainingAllowances, ResetInterval, UsageCharge, UsageJournal,
    UsageJournalError, UsageJournalStatus,
};
use crate::error::StoreError;
use crate::ids::{ApiKeyId, DecisionId, ProcessId, WorkspaceId};
use crate::money::Usd;
use crate::system::TimeSource;
use crate::usage::AttemptRecord;

/// The longest wait for the limits of a payer whose last ones are known.
const LIMITS_TIMEOUT: Duration = Duration::from_secs(1);

/// Holds and charges money for the requests of one process.
pub struct JournaledLedger {
    store: Arc<dyn BudgetStore>,
    journal: Arc<dyn UsageJournal>,
    time: TimeSource,
    state: Arc<SharedState>,
    keeper: AsyncMutex<Keeper>,
    limits: Arc<dyn LedgerReader>,
}

impl JournaledLedger {
    /// Creates a ledger without allowances. Its first call to the store registers the process. `limits` reads the
    /// amounts in the store.
    pub fn new(
        store: Arc<dyn BudgetStore>,
        journal: Arc<dyn UsageJournal>,
        time: TimeSource,
        limits: Arc<dyn LedgerReader>,
        settings: LedgerSettings,
    ) -> Self {
        let state = Arc::new(SharedState::new(settings));
        let keeper = Keeper::new(Arc::clone(&store), Arc::clone(&journal), Arc::clone(&time.clock), Arc::clone(&state));
        Self { store, journal, time, state, keeper: AsyncMutex::new(keeper), limits }
    }

    /// Returns the id of this process, which its journal and its allowances have.
    pub fn process(&self) -> ProcessId {
        self.journal.process()
    }

    /// Holds the amount of a request from allowances, which a request without limits needs not. Returns false if they
    /// are too small.
    fn take(
        &self,
        workspace: WorkspaceId,
        id: &DecisionId,
        amounts: &[(CounterId, Usd)],
        is_increase: bool,
    ) -> Result<bool, StoreError> {
        if amounts.is_empty() {
            return Ok(true);
        }
        match self.state.take(workspace, id, self.time.monotonic(), amounts, is_increase) {
            Ok(()) => Ok(true),
            Err(HoldError::Short(_)) => Ok(false),
            Err(HoldError::State(id)) => Err(StoreError::Corrupt(format!("the hold {id} is not open"))),
        }
    }

    /// Waits for a draw of the missing amounts of a request.
    async fn draw(&self, ask: Arc<Ask>) -> Answer {
        let free = self.keeper.try_lock();
        if free.is_none() && self.state.is_store_away() {
            // The keeper waits for a store that failed before, so requests do not queue for it.
            return Err(StoreError::unavailable("the limit store does not respond"));
        }
        let waiting = QueuedAsk { ask: &ask, state: &self.state };
        self.state.asks.push(Arc::clone(&ask));
        let keeper = match free {
            Some(keeper) => Some(keeper),
            // The draw of another request may answer this one, which then needs no turn with the keeper: a turn comes
            // after the draws of later requests.
            None => match select(pin!(self.keeper.lock()), pin!(ask.wait_for_answer())).await {
                Either::Left((keeper, _)) => Some(keeper),
                Either::Right(_) => None,
            },
        };
        if let Some(mut keeper) = keeper
            && ask.is_waiting()
        {
            keeper.serve_asks().await;
        }
        let answer = ask.take_answer();
        drop(waiting);
        answer.unwrap_or_else(|| Err(StoreError::unavailable("the draw was interrupted")))
    }

    /// Returns the limits of a payer, at most half a second old; during an outage of the store, as they were read last.
    async fn limits(&self, payer: &Payer) -> Result<Arc<[CounterLimits]>, StoreError> {
        if let Some(limits) = self.state.workspaces.limits(payer, self.time.monotonic()) {
            return Ok(limits);
        }
        let last = self.state.workspaces.last_limits(payer);
        if let Some(last) = &last
            && self.state.are_limits_delayed()
        {
            return Ok(Arc::clone(last));
        }
        let read = self.read_limits(payer);
        let limits = match &last {
            // A silent store would delay the request until the store's own time limit. The next read has no timeout: a
            // slow store must respond to some.
            Some(_) if self.state.workspaces.may_time_out(payer) => {
                self.time.run_with_timeout(LIMITS_TIMEOUT, read).await
            }
            _ => Some(read.await),
        };
        match (limits, last) {
            (Some(Err(StoreError::Unavailable(_))), Some(last)) => Ok(last),
            (Some(limits), _) => limits,
            (None, last) => {
                self.state.workspaces.note_timeout(payer);
                self.state.set_limits_delayed(true);
                last.ok_or_else(|| StoreError::unavailable("the limit store does not respond"))
            }
        }
    }

    async fn read_limits(&self, payer: &Payer) -> Result<Arc<[CounterLimits]>, StoreError> {
        let now = self.time.monotonic();
        let (limits, feed) = self.store.limits(payer).await?;
        self.state.workspaces.changed(feed);
        Ok(self.state.workspaces.keep_limits(payer, limits, feed, now))
    }

    /// Returns the part of the allowance of a counter that no request holds.
    pub fn free(&self, workspace: WorkspaceId, counter: CounterId) -> Usd {
        lock(&self.state.workspaces.get(workspace)).allowances.status(counter).free
    }

    /// Returns the statuses of the accounts without the free allowances of this process.
    fn without_free(
        &self,
        workspace: WorkspaceId,
        accounts: &[Account],
        mut statuses: Vec<LimitStatus>,
    ) -> Vec<LimitStatus> {
        let at = self.time.now();
        for status in &mut statuses {
            let account = accounts.iter().copied().find(|account| match account {
                Account::Guardrail(id, _) => status.guardrail_id == Some(*id),
                other => other.scope() == status.scope,
            });
            let Some(account) = account else { continue };
            let counter = CounterId { account, period: CounterPeriod::containing(status.reset, at) };
            let free = self.free(workspace, counter);
            status.reserved = Usd::from_pico(status.reserved.pico().saturating_sub(free.pico()).max(0));
        }
        statuses
    }

    /// Folds all charges until now. Callers that wait together for a store that fails get one error: their own attempts
    /// would wait for its time limit one after the other.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let mut keeper = if let Some(keeper) = self.keeper.try_lock() {
            keeper
        } else {
            let keeper = self.keeper.lock().await;
            if self.state.is_store_away() {
                return Err(StoreError::unavailable("the store does not accept the charges of this process"));
            }
            keeper
        };
        let folded = keeper.folded();
        let flushed = keeper.flush().await;
        match &flushed {
            Err(StoreError::Unavailable(_)) => self.state.set_store_away(true),
            // Without entries the store was not asked.
            Ok(()) if keeper.folded() > folded => self.state.set_store_away(false),
            _ => {}
        }
        flushed
    }

    /// Returns true if the journal may have charges that the store lacks.
    pub fn has_unfolded(&self) -> bool {
        self.journal.status().unfolded_entries > 0
    }

    /// Does one round of background work: folds, returns, draws ahead.
    pub async fn tick(&self) -> Result<(), StoreError> {
        self.work().await.map(drop)
    }

    /// Does one round. Returns true if entries are left to fold. If the store is unavailable, so are the requests that
    /// waited for the round: their draws would wait for the same store, each for its time limit.
    async fn work(&self) -> Result<bool, StoreError> {
        let mut keeper = self.keeper.lock().await;
        let worked = keeper.tick().await;
        self.state.set_store_away(worked.is_err());
        if worked.is_ok() {
            self.state.set_limits_delayed(false);
        }
        if let Err(error @ StoreError::Unavailable(_)) = &worked {
            keeper.fail_waiting(error);
        }
        worked
    }

    /// Returns the status of the journal.
    pub fn journal_status(&self) -> UsageJournalStatus {
        self.journal.status()
    }

    /// Returns true if this process cannot continue under its id.
    fn is_superseded(&self) -> bool {
        self.state.is_superseded()
    }

    /// Seals the journal. Returns the entries that its recovery cannot read.
    async fn seal(&self) -> Vec<JournalEntry> {
        self.journal.seal().await
    }

    /// Returns true if the request has a hold.
    fn is_open(&self, id: &DecisionId) -> bool {
        self.state.calls.get(id).is_some()
    }

    /// Returns the number of open requests.
    pub fn open_calls(&self) -> usize {
        self.state.calls.count()
    }

    /// Folds everything, returns every allowance and ends the process in the store.
    pub async fn close(&self) -> Result<(), StoreError> {
        let mut keeper = self.keeper.lock().await;
        keeper.flush().await?;
        let open = self.state.calls.count();
        if open > 0 {
            // Their charges may still come. The next process of this machine ends the others.
            return Err(StoreError::unavailable(format!("{open} requests have not ended")));
        }
        let closed = self.journal.append_end(EntryKind::Closed, &encode_closed(), 0).map_err(journal_failed)?;
        self.journal.wait_synced(closed).await.map_err(journal_failed)?;
        keeper.flush().await?;
        tracing::debug!(folded = keeper.folded(), "journal closed");
        self.store.end(self.journal.process(), RemainingAllowances::Return).await
    }

    /// Holds the amount of a request: [`Ledger::reserve`], whose future is boxed.
    async fn hold(&self, request: HoldRequest) -> Result<Result<Hold, LimitExceeded>, StoreError> {
        check_amount(request.amount)?;
        if let Some(open) = self.state.calls.get(&request.id) {
            return Ok(Ok(open.hold));
        }
        let at = self.time.now();
        let HoldRequest { id, payer, amount, request_id, requested_model, client_address, attempts, begun, .. } =
            request;
        let limits = if request.is_limited { self.limits(&payer).await? } else { Arc::default() };
        let counters: Vec<CounterId> = limits.iter().flat_map(|account| account.counters(at)).collect();
        let workspace = payer.workspace_id;
        if !self.take(workspace, &id, &amounts(&counters, amount), false)? {
            if let Some(exceeded) = self.state.known_rejection(&payer, amount, (self.time.monotonic(), at)) {
                return Ok(Err(exceeded));
            }
            let ask = Ask::new(id.clone(), payer.clone(), at, (amount, counters.clone()), false);
            if let Err(exceeded) = self.draw(ask).await? {
                self.state.keep_rejection(&payer, exceeded, self.time.monotonic());
                return Ok(Err(exceeded));
            }
        }
        let reserved_bytes = charge_bytes(attempts.len(), counters.len(), payer.guardrails.len());
        let attempts = attempts.get(..begun).map_or_else(|| Arc::clone(&attempts), Arc::from);
        let entry =
            SentEntry { id, payer, at, request_id, requested_model, client_address, amount, counters, attempts };
        let appended = self.journal.append_sent(EntryKind::Sent, &entry.encode(), reserved_bytes);
        let SentEntry { id, payer, counters, .. } = entry;
        let hold = Hold { id, at, payer, amount };
        let (sequence, sendable) = match appended {
            Ok(sequence) => (sequence, Ok(())),
            Err(error @ UsageJournalError::Retained { sequence, .. }) => (sequence, Err(error)),
            Err(error) => {
                self.state.cancel(workspace, &hold.id);
                return Err(journal_failed(error));
            }
        };
        self.state.calls.insert(OpenCall { hold: hold.clone(), counters, sequence, reserved_bytes });
        let mut unsent = UnsentCall { ledger: self, id: Some(&hold.id) };
        sendable.map_err(journal_failed)?;
        self.journal.wait_sendable(sequence).await.map_err(journal_failed)?;
        unsent.id = None;
        drop(unsent);
        Ok(Ok(hold))
    }
}

#[async_trait]
impl Ledger for JournaledLedger {
    async fn reserve(&self, request: HoldRequest) -> Result<Result<Hold, LimitExceeded>, StoreError> {
        self.hold(request).await
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
        let is_covered =
            more == Usd::ZERO || self.take(open.hold.payer.workspace_id, id, &amounts(&open.counters, more), true)?;
        if !is_covered {
            let ask = Ask::new(id.clone(), open.hold.payer, open.hold.at, (more, open.counters), true);
            if let Err(exceeded) = self.draw(ask).await? {
                return Ok(Err(exceeded));
            }
        }
        let entry = IncreasedEntry { id: id.clone(), amount: more, attempts: attempts.to_vec() };
        let sequence = self.journal.append_sent(EntryKind::Increased, &entry.encode(), 0).map_err(journal_failed)?;
        self.state.calls.increase(id, more);
        self.journal.wait_sendable(sequence).await.map_err(journal_failed)?;
        Ok(Ok(()))
    }

    async fn settle(&self, charge: &UsageCharge) -> Result<(), StoreError> {
        let sequence = self.append_charge(charge).map_err(ChargeError::into_store_error)?;
        self.journal.wait_durable(sequence).await.map_err(journal_failed)
    }

    async fn release(&self, id: &DecisionId) -> Result<(), StoreError> {
        self.end_without_charge(id);
        Ok(())
    }
}

#[async_trait]
impl LedgerReader for JournaledLedger {
    /// Returns the amounts of the store with the charges of this process. Free allowances of this process count as
    /// room.
    async fn limit_statuses(&self, payer: &Payer) -> Result<Vec<LimitStatus>, StoreError> {
        self.flush().await?;
        let statuses = self.limits.limit_statuses(payer).await?;
        Ok(self.without_free(payer.workspace_id, &payer.accounts().collect::<Vec<_>>(), statuses))
    }

    async fn workspace_limit_statuses(&self, id: WorkspaceId) -> Result<Vec<LimitStatus>, StoreError> {
        self.store_pending().await?;
        let statuses = self.limits.workspace_limit_statuses(id).await?;
        Ok(self.without_free(id, &[Account::Workspace(id)], statuses))
    }

    async fn key_spend(&self, keys: &[(WorkspaceId, ApiKeyId)]) -> Result<Vec<KeySpend>, StoreError> {
        self.store_pending().await?;
        let at = self.time.now();
        let mut spends = self.limits.key_spend(keys).await?;
        for (spend, (workspace, key)) in spends.iter_mut().zip(keys) {
            let periods = iter::once(None).chain(ResetInterval::ALL.map(Some));
            let free = periods.map(|reset| {
                let counter = CounterId { account: Account::Key(*key), period: CounterPeriod::containing(reset, at) };
                self.free(*workspace, counter).pico()
            });
            let free = free.max().unwrap_or_default();
            spend.reserved = Usd::from_pico(spend.reserved.pico().saturating_sub(free).max(0));
        }
        Ok(spends)
    }

    async fn store_pending(&self) -> Result<(), StoreError> {
        if self.has_unfolded() { self.flush().await } else { Ok(()) }
    }
}

/// A request that may not be sent yet. Dropping it ends its hold while it has an id.
struct UnsentCall<'a> {
    ledger: &'a JournaledLedger,
    id: Option<&'a DecisionId>,
}

impl Drop for UnsentCall<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.ledger.end_without_charge(id);
        }
    }
}

/// A request in the queue whose caller may leave.
struct QueuedAsk<'a> {
    ask: &'a Ask,
    state: &'a SharedState,
}

impl Drop for QueuedAsk<'_> {
    fn drop(&mut self) {
        // An increase ends with its hold.
        if self.ask.leave() && !self.ask.is_increase {
            self.state.cancel(self.ask.payer.workspace_id, &self.ask.id);
        }
    }
}

/// Returns the same amount for each counter.
fn amounts(counters: &[CounterId], amount: Usd) -> Vec<(CounterId, Usd)> {
    counters.iter().map(|counter| (*counter, amount)).collect()
}

fn check_amount(amount: Usd) -> Result<(), StoreError> {
    if amount < Usd::ZERO { Err(StoreError::Corrupt(format!("{amount} USD cannot be charged"))) } else { Ok(()) }
}
