//! The only writer of a process to the store of allowances: it draws, returns and folds, one call at a time.

mod draws;
mod folds;
mod progress;

use std::sync::Arc;
use std::time::Duration;

use self::progress::{PendingCall, PendingDraw, Progress};
use super::calls::journal_failed;
use super::state::SharedState;
use crate::budget::{BudgetStore, BudgetStoreError, DrawReply, ProcessState, ProcessStatus, UsageJournal};
use crate::error::StoreError;
use crate::system::Clock;

/// How long a counter stays recalled, by the rule of the store.
const RECALL: Duration = Duration::from_secs(5);
/// The time between two reads of signals while requests wait for draws.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);
/// The longest time of folding before requests are served, without its last batch.
const FOLD_FOR: Duration = Duration::from_millis(50);
/// The time between two scans of all counters, for returns and draws ahead.
const SCAN_EVERY: Duration = Duration::from_millis(200);
/// The time between two removals of old segments.
const SEGMENTS_EVERY: Duration = Duration::from_secs(1);

/// Draws, returns and folds for a process.
pub(super) struct Keeper {
    store: Arc<dyn BudgetStore>,
    journal: Arc<dyn UsageJournal>,
    clock: Arc<dyn Clock>,
    state: Arc<SharedState>,
    progress: Progress,
}

impl Keeper {
    pub(super) fn new(
        store: Arc<dyn BudgetStore>,
        journal: Arc<dyn UsageJournal>,
        clock: Arc<dyn Clock>,
        state: Arc<SharedState>,
    ) -> Self {
        Self { store, journal, clock, state, progress: Progress::default() }
    }

    /// Registers the process before its first call.
    pub(super) async fn register(&mut self) -> Result<(), StoreError> {
        if !self.progress.is_registered {
            self.store.register(self.journal.process()).await?;
            self.progress.is_registered = true;
            self.progress.answers.registered(self.clock.monotonic());
        }
        Ok(())
    }

    /// Does one round of background work. Returns true if entries are left to fold: requests that wait for a draw have
    /// priority.
    pub(super) async fn tick(&mut self) -> Result<bool, StoreError> {
        self.register().await?;
        let has_more = self.fold_for(FOLD_FOR).await?;
        let now = self.clock.monotonic();
        let is_scan = now >= self.progress.next_scan;
        if self.follow_signals(is_scan).await? {
            self.progress.next_scan = now.saturating_add(SCAN_EVERY);
            self.draw_ahead().await?;
        }
        if now >= self.progress.next_segments {
            self.progress.next_segments = now.saturating_add(SEGMENTS_EVERY);
            let folded = self.progress.folded;
            let keep_from = self.state.calls.oldest_sequence().unwrap_or(u64::MAX).min(folded.saturating_add(1));
            if let Err(error) = self.journal.remove_segments(keep_from) {
                tracing::warn!(error = &error as &dyn std::error::Error, "old journal segments not removed");
            }
        }
        Ok(has_more)
    }

    /// Folds all entries, or until the time is over or a request waits for a draw. Returns true if entries may be left.
    async fn fold_for(&mut self, time: Duration) -> Result<bool, StoreError> {
        let until = self.clock.monotonic().saturating_add(time);
        while self.fold_next().await? {
            if self.clock.monotonic() > until || self.state.asks.has_waiting() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads signals: follows changed limits, and answers recalls. Returns allowances if there is any recall or
    /// `is_scan`; the result is true then.
    async fn follow_signals(&mut self, is_scan: bool) -> Result<bool, StoreError> {
        let signals = self.store.signals().await?;
        self.state.workspaces.follow(signals.feed);
        if signals.declared_older_at != self.progress.declared_older_at {
            self.check_own_row().await?;
            self.progress.declared_older_at = signals.declared_older_at;
        }
        let now = self.clock.monotonic();
        self.progress.next_signals = now.saturating_add(SIGNALS_EVERY);
        let is_recalled = !signals.recalled.is_empty();
        let until = now.saturating_add(RECALL);
        let mut own = signals.recalled;
        own.retain(|recall| self.state.workspaces.recalled(recall.counter, until));
        let heartbeat = self.state.workspaces.settings().heartbeat;
        let answered = self.progress.answers.is_due(&own, now, heartbeat).then_some(signals.at);
        let is_due = is_recalled || answered.is_some() || is_scan;
        if is_due {
            self.return_allowances(answered).await?;
        }
        Ok(is_due)
    }

    /// Compares the row of this process with its acknowledged calls.
    async fn check_own_row(&self) -> Result<(), StoreError> {
        let Progress { number, folded, .. } = self.progress;
        let row = self.store.process(self.journal.process()).await?;
        let is_known = |row: ProcessStatus| {
            row.state == ProcessState::Live && row.number >= number && row.folded_sequence >= folded
        };
        if !row.is_some_and(is_known) {
            self.state.set_superseded();
        }
        Ok(())
    }

    /// Folds all entries that are in the journal now.
    pub(super) async fn flush(&mut self) -> Result<(), StoreError> {
        self.register().await?;
        let last = self.journal.status().last_sequence;
        if self.progress.folded >= last {
            return Ok(());
        }
        self.journal.wait_synced(last).await.map_err(journal_failed)?;
        while self.progress.folded < last {
            if !self.fold_next().await? {
                return Err(StoreError::unavailable("the journal returned no entries to fold"));
            }
        }
        Ok(())
    }

    /// Returns the number of the last folded entry.
    pub(super) fn folded(&self) -> u64 {
        self.progress.folded
    }

    /// Converts an error of the store for requests. A process that the store does not know as live, or not with these
    /// numbers, can only spend amounts that it has drawn, until it continues under another id.
    fn store_failed(&self, error: BudgetStoreError) -> StoreError {
        match error {
            BudgetStoreError::Store(error) => return error,
            BudgetStoreError::FoldsAgain => {}
            BudgetStoreError::NotLive(_) | BudgetStoreError::Number { .. } => self.state.set_superseded(),
        }
        StoreError::unavailable(error)
    }

    /// Repeats the call without an answer.
    async fn resolve_pending(&mut self) -> Result<(), StoreError> {
        match self.progress.pending.take() {
            None => Ok(()),
            Some(PendingCall::Draw(draw)) => self.send_draw(draw).await.map(drop),
            Some(PendingCall::Return(request)) => self.send_return(request).await,
        }
    }

    /// Adds granted amounts to the allowances.
    fn grant(&self, reply: &DrawReply, draw: &PendingDraw) {
        let now = self.clock.monotonic();
        for (counter, amount) in &reply.grants {
            if let Some(workspace) = draw.owners.get(counter) {
                let money = self.state.workspaces.get(*workspace);
                super::calls::lock(&money).allowances.granted(*counter, *amount, now, reply.feed, draw.folded);
            }
        }
    }
}
