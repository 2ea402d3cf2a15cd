//! Processes whose journals are lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::super::{BudgetStore, LiveProcess, OrphanedJournals, ProcessState, RemainingAllowances};
use super::calls::{journal_failed, lock};
use super::sync::Mutex;
use crate::audit::{Actor, AuditDraft};
use crate::error::StoreError;
use crate::ids::ProcessId;
use crate::json::Json;
use crate::system::Clock;
use crate::usage::UnknownUsage;

/// The longest time that a silent process is watched before it counts as lost: two heartbeats.
const LONGEST_WATCH: Duration = Duration::from_mins(1);
/// The longest time between two checks. After a longer gap the store may have been unavailable, so the watch restarts.
const LONGEST_GAP: Duration = Duration::from_secs(15);

/// The settings of lost processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForgetSettings {
    /// The silence after which a process without a journal on this machine is lost.
    pub lost_after: Duration,
    /// The treatment of allowances whose use is unknown.
    pub unknown: UnknownUsage,
}

/// An error of forgetting a process.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// The store does not know the process.
    #[error("process {0} not found")]
    Unknown(ProcessId),
    /// The process has no allowances any more.
    #[error("process {0} is not live: it is {state}", state = .1.as_str())]
    NotLive(ProcessId, ProcessState),
    /// The journal of the process is on this machine: the process runs, or its journal is recovered.
    #[error("the journal of process {0} is on this machine: stop the process; its journal is then recovered by itself")]
    HasJournal(ProcessId),
    /// The process was seen recently.
    #[error("process {process} lives: the database saw it {} s ago; stop it, then try again {} s later",
        silent_for.as_secs(), needed.as_secs())]
    Lives {
        /// The process.
        process: ProcessId,
        /// The time since it was seen.
        silent_for: Duration,
        /// The silence after which it can be forgotten.
        needed: Duration,
    },
    /// The store or the folder of the journals failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Ends the allowances of processes whose journals are lost with their disks.
pub struct ForgetProcesses {
    store: Arc<dyn BudgetStore>,
    journals: Arc<dyn OrphanedJournals>,
    clock: Arc<dyn Clock>,
    settings: ForgetSettings,
    watched: Mutex<Watched>,
}

/// The watched processes, and the beginning of their silence.
#[derive(Debug, Default)]
struct Watched {
    processes: HashMap<ProcessId, (DateTime<Utc>, Duration)>,
    looked_at: Duration,
}

impl ForgetProcesses {
    /// Wires the ports.
    pub fn new(
        store: Arc<dyn BudgetStore>,
        journals: Arc<dyn OrphanedJournals>,
        clock: Arc<dyn Clock>,
        settings: ForgetSettings,
    ) -> Self {
        Self { store, journals, clock, settings, watched: Mutex::default() }
    }

    /// Returns the processes that are live in the store, and whether their journals are on this machine.
    pub async fn list(&self) -> Result<Vec<(LiveProcess, bool)>, StoreError> {
        let live = self.store.live_processes().await?;
        let mut listed = Vec::with_capacity(live.len());
        for found in live {
            listed.push((found, self.has_journal(found.process).await?));
        }
        Ok(listed)
    }

    /// Forgets and returns the processes that were silent for [`ForgetSettings::lost_after`] by the store's clock. Up
    /// to a minute of that must have been watched by this process, because after an outage of the store all processes
    /// were silent.
    pub async fn execute(&self) -> Result<Vec<ProcessId>, StoreError> {
        let live = self.store.live_processes().await?;
        let silent = self.watch(&live);
        let mut forgotten = Vec::new();
        for LiveProcess { process, silent_for, .. } in live {
            let is_lost = silent_for >= self.settings.lost_after && silent.contains(&process);
            if is_lost && !self.has_journal(process).await? {
                self.end(process, silent_for, &Actor::system()).await?;
                forgotten.push(process);
            }
        }
        Ok(forgotten)
    }

    /// Forgets one process that was silent for two heartbeats, for an operator.
    ///
    /// # Errors
    /// The process is not live, still runs, or has its journal on this machine.
    pub async fn forget(&self, process: ProcessId, by: &Actor) -> Result<(), ForgetError> {
        let Some(status) = self.store.process(process).await? else { return Err(ForgetError::Unknown(process)) };
        if status.state != ProcessState::Live {
            return Err(ForgetError::NotLive(process, status.state));
        }
        if self.has_journal(process).await? {
            return Err(ForgetError::HasJournal(process));
        }
        let live = self.store.live_processes().await?;
        let silent_for = live.iter().find(|found| found.process == process).map(|found| found.silent_for);
        let silent_for = silent_for.unwrap_or_default();
        if silent_for < self.longest_watch() {
            return Err(ForgetError::Lives { process, silent_for, needed: self.longest_watch() });
        }
        Ok(self.end(process, silent_for, by).await?)
    }

    /// Returns the processes that were silent while they were watched.
    fn watch(&self, live: &[LiveProcess]) -> Vec<ProcessId> {
        let now = self.clock.monotonic();
        let needed = self.longest_watch();
        let mut watched = lock(&self.watched);
        if now.saturating_sub(watched.looked_at) > LONGEST_GAP {
            watched.processes.clear();
        }
        watched.looked_at = now;
        let since = |found: &LiveProcess| match watched.processes.get(&found.process) {
            Some((seen_at, since)) if *seen_at == found.seen_at => *since,
            _ => now,
        };
        let processes: HashMap<_, _> =
            live.iter().map(|found| (found.process, (found.seen_at, since(found)))).collect();
        let is_silent = |(_, (_, since)): &(&ProcessId, &(_, Duration))| now.saturating_sub(*since) >= needed;
        let silent = processes.iter().filter(is_silent).map(|(process, _)| *process).collect();
        watched.processes = processes;
        silent
    }

    fn longest_watch(&self) -> Duration {
        LONGEST_WATCH.min(self.settings.lost_after / 2)
    }

    async fn has_journal(&self, process: ProcessId) -> Result<bool, StoreError> {
        self.journals.contains(process).await.map_err(journal_failed)
    }

    async fn end(&self, process: ProcessId, silent_for: Duration, by: &Actor) -> Result<(), StoreError> {
        let (remaining, allowances) = match self.settings.unknown {
            UnknownUsage::Bound => (RemainingAllowances::Adjust, "spent"),
            UnknownUsage::Free => (RemainingAllowances::Return, "returned"),
        };
        let (allowances, silent_seconds) = (Json::string(allowances), silent_for.as_secs().to_string());
        let details = Json::object([("allowances", allowances.text()), ("silent_seconds", silent_seconds.as_str())]);
        let audit = AuditDraft::done(by, "process.forget", format!("process {process}"), details);
        self.store.forget(process, remaining, &audit).await?;
        let adjusted = remaining == RemainingAllowances::Adjust;
        tracing::warn!(process.id = %process, silent_s = silent_for.as_secs(), adjusted, "process lost with its journal");
        Ok(())
    }
}
