//! Releases the reservations of abandoned promotions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{DocumentRepository, PendingDocument, RunningPromotions};
use crate::budget::{BudgetStore, LiveProcess, ProcessState};
use crate::container::{BlobKey, BlobStore};
use crate::error::StoreError;
use crate::ids::ProcessId;
use crate::system::Clock;

/// The longest time between two looks at the processes. After a longer gap this process was paused or the store was
/// unavailable, so the watch restarts.
const LONGEST_GAP: Duration = Duration::from_secs(15);

/// The ports of [`ReleaseAbandonedPromotions`].
pub struct ReleaseAbandonedPromotionsPorts {
    /// Stores documents.
    pub documents: Arc<dyn DocumentRepository>,
    /// Stores their content.
    pub blobs: Arc<dyn BlobStore>,
    /// Knows the processes and their last signs of life.
    pub processes: Arc<dyn BudgetStore>,
    /// The promotions of this process.
    pub running: Arc<RunningPromotions>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// The times after which a process counts as gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessSilence {
    /// The longest time between two signs of life of a process that can write.
    pub heartbeat: Duration,
    /// The silence after which a process of another machine counts as gone.
    pub gone_after: Duration,
}

/// Releases the quota and the idempotency keys of abandoned promotions. Their documents are pending, and they are
///
/// - of this process, which is not promoting them: the call was dropped, or the store did not answer it;
/// - of a process that the store no longer lists as live;
/// - of a process without a sign of life for [`ProcessSilence::gone_after`] while this process could write.
///
/// A process that was only slow finds its document gone when it completes the promotion, and promotes again.
pub struct ReleaseAbandonedPromotions {
    ports: ReleaseAbandonedPromotionsPorts,
    silence: ProcessSilence,
    watch: Mutex<Watch>,
}

/// The period in which this process could write to the store without interruption.
#[derive(Debug, Default)]
struct Watch {
    since: Option<Duration>,
    looked_at: Duration,
}

impl ReleaseAbandonedPromotions {
    /// Wires the ports.
    pub fn new(ports: ReleaseAbandonedPromotionsPorts, silence: ProcessSilence) -> Self {
        Self { ports, silence, watch: Mutex::default() }
    }

    /// Releases the promotions that are abandoned now, and returns their number. The caller repeats a failed call.
    ///
    /// # Errors
    /// The database failed. Bytes that cannot be deleted are left to the sweeper.
    pub async fn execute(&self) -> Result<usize, StoreError> {
        let mut pending = self.ports.documents.list_pending().await?;
        // After the rows were read: a promotion that is in them and not in the list has ended.
        pending.retain(|document| !self.ports.running.contains(&document.id));
        let own = self.ports.running.process();
        let gone = self.gone_processes(own, &pending).await?;
        let mut released = 0;
        for document in pending {
            let Some(owner) = document.process else { continue };
            if Some(owner) != own && !gone.get(&owner).is_some_and(|gone| *gone) {
                continue;
            }
            let PendingDocument { workspace_id, id, .. } = &document;
            if !self.ports.documents.abandon(*workspace_id, id).await? {
                continue;
            }
            released += 1;
            tracing::warn!(document.id = %id, process.id = %owner, "abandoned promotion released");
            if let Err(error) = self.ports.blobs.delete(&BlobKey::document(*workspace_id, id)).await {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(document.id = %id, error, "abandoned copy not removed; left to the sweeper");
            }
        }
        Ok(released)
    }

    /// Returns for each other process with pending documents whether it is gone.
    async fn gone_processes(
        &self,
        own: Option<ProcessId>,
        pending: &[PendingDocument],
    ) -> Result<HashMap<ProcessId, bool>, StoreError> {
        let others = pending.iter().filter_map(|document| document.process).filter(|owner| Some(*owner) != own);
        let mut gone: HashMap<ProcessId, bool> = others.map(|owner| (owner, false)).collect();
        if gone.is_empty() {
            *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = Watch::default();
            return Ok(gone);
        }
        let live = self.ports.processes.live_processes().await?;
        let can_judge = self.watch(own, &live);
        for (process, is_gone) in &mut gone {
            *is_gone = if let Some(found) = live.iter().find(|found| found.process == *process) {
                can_judge && found.silent_for >= self.silence.gone_after
            } else {
                // A process that the store does not know yet has just started.
                let row = self.ports.processes.process(*process).await?;
                row.is_some_and(|row| row.state != ProcessState::Live)
            };
        }
        Ok(gone)
    }

    /// Returns true once this process could write for as long as another one must be silent: after an outage of the
    /// store all processes were silent.
    fn watch(&self, own: Option<ProcessId>, live: &[LiveProcess]) -> bool {
        let now = self.ports.clock.monotonic();
        let fresh = self.silence.heartbeat.saturating_mul(2);
        let writes = live.iter().any(|found| Some(found.process) == own && found.silent_for <= fresh);
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let is_continued = now.saturating_sub(watch.looked_at) <= LONGEST_GAP;
        watch.since = writes.then_some(watch.since.filter(|_| is_continued).unwrap_or(now));
        watch.looked_at = now;
        watch.since.is_some_and(|since| now.saturating_sub(since) >= self.silence.gone_after)
    }
}

#[cfg(test)]
mod tests;
