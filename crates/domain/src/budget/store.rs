//! The store of allowances: processes draw parts of limits, and fold charges back.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::allowances::{CounterId, CounterPeriod};
use super::{Account, LimitExceeded, Payer, SpendLimit, UsageCharge};
use crate::audit::AuditDraft;
use crate::error::StoreError;
use crate::ids::ProcessId;
use crate::money::Usd;

/// A limit of one counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterLimit {
    /// The most that may be spent in a period.
    pub limit: SpendLimit,
    /// For credit only: the total spend of the account when the credit began.
    pub base: Usd,
    /// True for the prepaid credit of a workspace.
    pub is_credit: bool,
}

/// The limits of one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterLimits {
    /// The account.
    pub account: Account,
    /// Its limits, each with its own period.
    pub limits: Vec<CounterLimit>,
}

impl CounterLimits {
    /// Returns the counters of the account that have limits at a time, each once.
    pub fn counters(&self, at: DateTime<Utc>) -> Vec<CounterId> {
        let mut counters = Vec::with_capacity(self.limits.len());
        for CounterLimit { limit, .. } in &self.limits {
            let period = CounterPeriod::containing(limit.reset, at);
            let counter = CounterId { account: self.account, period };
            if !counters.contains(&counter) {
                counters.push(counter);
            }
        }
        counters
    }
}

/// A request that lacks allowance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawAsk {
    /// The payer.
    pub payer: Payer,
    /// The time whose day, week and month the hold counts in.
    pub at: DateTime<Utc>,
    /// The amount of the whole hold.
    pub amount: Usd,
    /// The counters that hold it.
    pub counters: Vec<CounterId>,
}

/// A counter to fill ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrawAhead {
    /// The counter.
    pub counter: CounterId,
    /// The most to grant.
    pub amount: Usd,
}

/// A draw of allowances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawRequest {
    /// The process.
    pub process: ProcessId,
    /// The number of this call among the draws and returns of the process, from 1. A draw that grants nothing does not
    /// use its number: the next call has the same number.
    pub number: u64,
    /// The requests that wait, in order of arrival.
    pub asks: Vec<DrawAsk>,
    /// The free amounts that the process has for them, by counter.
    pub free: BTreeMap<CounterId, Usd>,
    /// The counters to fill ahead with the rest.
    pub ahead: Vec<DrawAhead>,
}

/// The answer to a draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawReply {
    /// The number of the newest change of limits that the decision includes.
    pub feed: u64,
    /// The granted amounts, each counter once.
    pub grants: Vec<(CounterId, Usd)>,
    /// The answer to each ask, in order: granted, or the exceeded limit.
    pub answers: Vec<Result<(), LimitExceeded>>,
}

/// The return of allowances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReturnRequest {
    /// The process.
    pub process: ProcessId,
    /// The number of this call among the draws and returns of the process, from 1.
    pub number: u64,
    /// The returned amounts, each counter once.
    pub amounts: Vec<(CounterId, Usd)>,
    /// The time of the answered signals: free amounts that were recalled until then are returned by this call or an
    /// earlier one. `None` if it answers none.
    pub answered: Option<DateTime<Utc>>,
}

/// A charge of the journal to fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldEntry {
    /// The record and its messages.
    pub charge: UsageCharge,
    /// The parts of the cost that allowances of the process bear, each counter once.
    pub allowances: Vec<(CounterId, Usd)>,
}

/// Charges of a journal to fold in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldRequest {
    /// The process whose journal it is.
    pub process: ProcessId,
    /// The number of the last entry of the previous fold.
    pub after: u64,
    /// The number of the last entry of this batch.
    pub up_to: u64,
    /// The charges among the entries, in order.
    pub entries: Vec<FoldEntry>,
}

named_enum! {
    /// The state of a process.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ProcessState {
        /// The process may draw, return and fold.
        Live = "live",
        /// Another process recovers the journal of the process, which was silent for too long.
        Adopted = "adopted",
        /// The process has ended, or was recovered. Its journal may be folded again after a restore of the store.
        Ended = "ended",
        /// The process was lost with its disk.
        Lost = "lost",
    }
}

/// The row of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStatus {
    /// Its state.
    pub state: ProcessState,
    /// The number of its last draw or return.
    pub number: u64,
    /// The number of its last folded journal entry.
    pub folded_sequence: u64,
}

/// A process that is live in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveProcess {
    /// The process.
    pub process: ProcessId,
    /// The time of its registration or last answer, by the clock of the store.
    pub seen_at: DateTime<Utc>,
    /// The time since `seen_at`, by the same clock.
    pub silent_for: Duration,
}

/// The treatment of the allowances of an ended process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemainingAllowances {
    /// They return to their limits: the journal is complete.
    Return,
    /// They count as spent: charges may be missing from the journal.
    Adjust,
}

/// The changes that a process polls for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BudgetSignals {
    /// The number of the newest change of keys, workspaces and guardrails.
    pub feed: u64,
    /// The time of these signals, by the clock of the store.
    pub at: DateTime<Utc>,
    /// The time of the last [`BudgetStore::declare_older`].
    pub declared_older_at: Option<DateTime<Utc>>,
    /// Counters that a process lacks allowance of.
    pub recalled: Vec<Recall>,
}

/// A counter whose free allowances are recalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recall {
    /// The counter.
    pub counter: CounterId,
    /// The time of the first recall, by the clock of the store; a recall within five seconds continues it.
    pub began_at: DateTime<Utc>,
}

/// The time after [`BudgetStore::declare_older`] in which draws grant nothing: processes fold again what the store lacks.
pub const FOLD_AGAIN_FOR: Duration = Duration::from_secs(5);

/// An error of the store of allowances.
#[derive(Debug, thiserror::Error)]
pub enum BudgetStoreError {
    /// The store failed. The call may have taken effect; the caller repeats it with the same number.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Draws grant nothing until all processes have folded again what this older store lacks.
    #[error("the store was replaced by an older one: limits are granted again within {} s", FOLD_AGAIN_FOR.as_secs())]
    FoldsAgain,
    /// The process is not live in the store.
    #[error("the store lists the process as {}", .0.map_or("unknown", ProcessState::as_str))]
    NotLive(Option<ProcessState>),
    /// The number of the call is neither the next nor the last: the store is older than the process, or the caller is
    /// wrong.
    #[error("the store expects the number {expected} of the process, not {found}")]
    Number {
        /// The number that the store expects.
        expected: u64,
        /// The number of the call.
        found: u64,
    },
}

/// Grants parts of limits to processes, and folds their charges.
///
/// # Contract
/// - Every method is one transaction with every other, over all processes. A call that fails changes nothing.
/// - For every counter, `spent` is the sum of its records, archived records and adjustments, and `allotted` the sum of
///   the allowances of all processes.
/// - `draw`, `return_allowances` and `fold` change nothing unless the process is live and the number is the next. A call with
///   the last number again changes nothing and returns what the first one returned. A draw whose reply grants nothing
///   does not use its number, so that it needs no write.
/// - `draw` decides by [`super::decide_draw`] over the rows of the transaction, the limits included, so that
///   `spent + allotted` never exceeds a limit by a grant. Its commit survives a loss of power. A payer whose key or
///   workspace never existed is [`StoreError::Corrupt`].
/// - `fold` inserts each record with a new id, adds its cost to `spent` in every account of [`Payer::accounts`], in
///   total and in the day, week and month of `charged_at`, and its messages to the outbox; a record that replaces one
///   of the outcome `abandoned` replaces its cost as well; any other known id adds nothing. Then it takes the
///   allowances of every entry from the process and sets `folded_sequence`.
/// - `fold` of a process that is not live is allowed. One that is adopted still has its allowances. For the others it
///   takes no allowances but adjustments: where the allowances of the process became adjustments, the part that an entry
///   bears is no longer counted twice.
/// - For [`FOLD_AGAIN_FOR`] after `declare_older` a draw fails with [`BudgetStoreError::FoldsAgain`], unless its number is
///   that of the last call. A second declaration within this time changes nothing.
/// - `end` leaves the process [`ProcessState::Ended`] with [`RemainingAllowances::Return`] and [`ProcessState::Lost`]
///   with [`RemainingAllowances::Adjust`]. A lost process that is ended with [`RemainingAllowances::Return`], because
///   its whole journal was folded after all, gives up its adjustments.
/// - `forget` ends a process as `end` does, and appends the audit entry in the same transaction. One that has ended gets
///   no entry.
/// - A rejection of `draw` is uncertain if another process has an allowance of an exceeded counter and has not answered
///   its recall, by [`super::has_answered`].
/// - A record that was charged before the credit of its workspace began raises the base of the credit by its cost.
/// - `fold` and `end` add a [`super::BudgetAlert`] for each threshold of the current limits that the spend of a counter
///   crosses upwards ([`super::crossed_thresholds`]), unless the same alert exists. A limit that cannot be read has no
///   alerts and does not fail the call.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait BudgetStore: Send + Sync {
    /// Registers a process as live. A known process stays as it is.
    async fn register(&self, process: ProcessId) -> Result<(), StoreError>;

    /// Returns the row of a process; `None` if it was never registered.
    async fn process(&self, process: ProcessId) -> Result<Option<ProcessStatus>, StoreError>;

    /// Draws allowances.
    async fn draw(&self, request: &DrawRequest) -> Result<DrawReply, BudgetStoreError>;

    /// Returns allowances.
    async fn return_allowances(&self, request: &ReturnRequest) -> Result<(), BudgetStoreError>;

    /// Folds charges of a journal.
    async fn fold(&self, request: &FoldRequest) -> Result<(), BudgetStoreError>;

    /// Records that the store lacks calls of a process that took effect: it was restored from a backup, or is a standby
    /// that had not received them.
    async fn declare_older(&self) -> Result<(), StoreError>;

    /// Ends a process and its allowances. Ending one that has ended changes nothing.
    async fn end(&self, process: ProcessId, remaining: RemainingAllowances) -> Result<(), StoreError>;

    /// Ends a process whose journal is lost, with an audit entry.
    async fn forget(
        &self,
        process: ProcessId,
        remaining: RemainingAllowances,
        audit: &AuditDraft,
    ) -> Result<(), StoreError>;

    /// Returns the live processes, in the order of their ids.
    async fn live_processes(&self) -> Result<Vec<LiveProcess>, StoreError>;

    /// Returns the limits of a payer by account, and the number of the newest change that they include.
    async fn limits(&self, payer: &Payer) -> Result<(Vec<CounterLimits>, u64), StoreError>;

    /// Returns the changes that a process polls for. Reads only.
    async fn signals(&self) -> Result<BudgetSignals, StoreError>;
}
