//! Applies the retention policy to all kinds of rows, and deletes workspaces.

mod delete_workspace;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::FutureExt;
use futures_util::future::{Either, Fuse, FusedFuture, ready, select};

use crate::audit::AuditLog;
use crate::budget::{LedgerMaintenance, PruneReport};
use crate::error::StoreError;
use crate::evidence::EvidenceRepository;
use crate::observability::Outbox;
use crate::repetition::{IdempotentRequests, REPETITION_KEPT};
use crate::system::TimeSource;
use crate::usage::RejectionStore;

pub use delete_workspace::*;

/// The highest number of rows per step, which bounds the time that other writers wait.
const STEP_ROWS: u64 = 500;
/// The pause between two steps, in which other writers get the database lock.
const PAUSE: Duration = Duration::from_millis(50);

/// The ports of [`ApplyRetention`].
pub struct ApplyRetentionPorts {
    /// Usage records, and their sums.
    pub usage: Arc<dyn LedgerMaintenance>,
    /// Counts of rejected requests.
    pub rejections: Arc<dyn RejectionStore>,
    /// Evidence with its labels.
    pub evidence: Arc<dyn EvidenceRepository>,
    /// The audit log.
    pub audit: Arc<dyn AuditLog>,
    /// Dead letters.
    pub outbox: Arc<dyn Outbox>,
    /// Requests with an idempotency key.
    pub repetitions: Arc<dyn IdempotentRequests>,
    /// The clock for the age of rows, and the timer of the pauses.
    pub time: TimeSource,
}

/// Removes rows older than their retention, a bounded number at a time. Several processes may run it on one database.
pub struct ApplyRetention {
    ports: ApplyRetentionPorts,
    policy: RetentionPolicy,
    /// The number of old usage records that the last complete round could not read.
    unreadable: AtomicU64,
}

/// The removed rows of one kind, and the error that ended the round for it.
struct Progress {
    report: PruneReport,
    error: Option<StoreError>,
}

impl ApplyRetention {
    /// Wires the ports.
    pub fn new(ports: ApplyRetentionPorts, policy: RetentionPolicy) -> Self {
        Self { ports, policy, unreadable: AtomicU64::new(0) }
    }

    /// Returns the number of old usage records that the last round could not read.
    pub fn unreadable_records(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// Removes all rows that are old now, kind by kind, until none is left or `stopped` resolves. A step that has begun
    /// is always finished. A kind whose store fails is logged and left to the next round; the other kinds continue.
    pub async fn execute(&self, stopped: impl Future<Output = ()>) -> RetentionReport {
        let mut stopped = pin!(stopped.fuse());
        let mut report = RetentionReport::default();
        for rows in RetainedRows::ALL {
            let Some(kept) = self.policy.retention_of(rows) else { continue };
            let Progress { report: pruned, error } = self.remove(rows, kept, stopped.as_mut()).await;
            log(rows, &pruned);
            if let Some(error) = error {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(rows = rows.as_str(), error, "old rows not removed, retrying later");
                report.failed.push(rows);
            } else if rows == RetainedRows::UsageRecords {
                self.unreadable.store(pruned.unreadable, Ordering::Relaxed);
            }
            match rows {
                RetainedRows::UsageRecords => report.usage_records = pruned,
                RetainedRows::UsageSums => report.usage_sums = pruned.removed,
                RetainedRows::RejectionCounts => report.rejection_counts = pruned.removed,
                RetainedRows::Evidence => report.evidence = pruned.removed,
                RetainedRows::AuditEntries => report.audit_entries = pruned.removed,
                RetainedRows::DeadLetters => report.dead_letters = pruned.removed,
                RetainedRows::IdempotentRequests => report.idempotent_requests = pruned.removed,
            }
        }
        report
    }

    async fn remove(
        &self,
        rows: RetainedRows,
        kept: Duration,
        mut stopped: Pin<&mut Fuse<impl Future<Output = ()>>>,
    ) -> Progress {
        let mut report = PruneReport::default();
        // Also checked before the first step, because the steps of another kind may have taken long.
        let mut pause = ready(()).boxed();
        loop {
            let is_stopped = stopped.is_terminated() || matches!(select(&mut stopped, pause).await, Either::Left(_));
            if is_stopped {
                return Progress { report, error: None };
            }
            match self.step(rows, kept).await {
                // Each step counts all unreadable rows again, so that the last step has the total.
                Ok(step) => {
                    let removed = report.removed.saturating_add(step.removed);
                    let is_last = step.removed < STEP_ROWS;
                    report = PruneReport { removed, ..step };
                    if is_last {
                        return Progress { report, error: None };
                    }
                }
                Err(error) => return Progress { report, error: Some(error) },
            }
            pause = self.ports.time.sleep(PAUSE);
        }
    }

    async fn step(&self, rows: RetainedRows, kept: Duration) -> Result<PruneReport, StoreError> {
        let Some(before) = self.cutoff(kept) else { return Ok(PruneReport::default()) };
        let removed = match rows {
            RetainedRows::UsageRecords => return self.ports.usage.prune(kept, STEP_ROWS).await,
            RetainedRows::UsageSums => self.ports.usage.prune_sums(before, STEP_ROWS).await?,
            RetainedRows::RejectionCounts => self.ports.rejections.prune(before, STEP_ROWS).await?,
            RetainedRows::Evidence => self.ports.evidence.prune(before, STEP_ROWS).await?,
            RetainedRows::AuditEntries => self.ports.audit.prune(before, STEP_ROWS).await?,
            RetainedRows::DeadLetters => self.ports.outbox.prune(before, STEP_ROWS).await?,
            RetainedRows::IdempotentRequests => self.ports.repetitions.prune(before, STEP_ROWS).await?,
        };
        Ok(PruneReport { removed, ..PruneReport::default() })
    }

    /// Returns the time before which rows are old; `None` if no row can be that old.
    fn cutoff(&self, kept: Duration) -> Option<DateTime<Utc>> {
        TimeDelta::from_std(kept).ok().and_then(|kept| self.ports.time.now().checked_sub_signed(kept))
    }
}

fn log(rows: RetainedRows, PruneReport { removed, unreadable, named }: &PruneReport) {
    let rows = rows.as_str();
    if *removed > 0 {
        tracing::info!(rows, removed, "old rows removed");
    }
    if *unreadable > 0 {
        let ids = named.join(" ");
        tracing::error!(rows, unreadable, ids, "old rows not readable and kept; run doctor --audit");
    }
}

named_enum! {
    /// A kind of rows with a retention time.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RetainedRows {
        /// Usage records.
        UsageRecords = "usage records",
        /// Sums of usage a day.
        UsageSums = "usage sums",
        /// Counts of rejected requests, which are kept as long as usage records.
        RejectionCounts = "rejection counts",
        /// Evidence with its labels.
        Evidence = "evidence",
        /// Entries of the audit log.
        AuditEntries = "audit entries",
        /// Messages to trace destinations that failed permanently.
        DeadLetters = "dead letters",
        /// Requests with an idempotency key, which are kept for 24 hours.
        IdempotentRequests = "idempotent requests",
    }
}

/// The retention times by kind; `None` keeps rows for ever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Usage records and counts of rejected requests; at least [`RetentionPolicy::MIN_USAGE_DAYS`].
    pub usage_records: Option<Duration>,
    /// Sums of usage a day; at least as long as usage records.
    pub usage_sums: Option<Duration>,
    /// Evidence with its labels.
    pub evidence: Option<Duration>,
    /// Entries of the audit log.
    pub audit_entries: Option<Duration>,
    /// Messages to trace destinations that failed permanently.
    pub dead_letters: Option<Duration>,
}

impl RetentionPolicy {
    /// The shortest retention of usage records in days: monthly limits count all records of a month.
    pub const MIN_USAGE_DAYS: u64 = 32;
    /// The default retention of sums of usage in days: three years.
    pub const DEFAULT_SUMS_DAYS: u64 = 1_096;
    /// The default retention of evidence in days.
    pub const DEFAULT_EVIDENCE_DAYS: u64 = 90;
    /// The longest retention in days: a hundred years.
    pub const MAX_DAYS: u64 = 36_525;

    /// Returns the retention time of a kind.
    pub fn retention_of(&self, rows: RetainedRows) -> Option<Duration> {
        match rows {
            RetainedRows::UsageRecords | RetainedRows::RejectionCounts => self.usage_records,
            RetainedRows::UsageSums => self.usage_sums,
            RetainedRows::Evidence => self.evidence,
            RetainedRows::AuditEntries => self.audit_entries,
            RetainedRows::DeadLetters => self.dead_letters,
            RetainedRows::IdempotentRequests => REPETITION_KEPT.to_std().ok(),
        }
    }
}

/// The result of one round of retention.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetentionReport {
    /// Usage records.
    pub usage_records: PruneReport,
    /// Removed sums of usage.
    pub usage_sums: u64,
    /// Removed counts of rejected requests.
    pub rejection_counts: u64,
    /// Removed rows of evidence.
    pub evidence: u64,
    /// Removed entries of the audit log.
    pub audit_entries: u64,
    /// Removed dead letters.
    pub dead_letters: u64,
    /// Removed requests with an idempotency key.
    pub idempotent_requests: u64,
    /// The kinds whose store failed; the next round tries them again.
    pub failed: Vec<RetainedRows>,
}

#[cfg(test)]
mod tests;
