//! The task that writes the entries of a journal.

use std::sync::Arc;
use std::time::Duration;

use domain::budget::{JournalEntry, ProcessState};
use domain::error::StoreError;
use domain::ids::ProcessId;
use domain::system::LineLimit;

use super::entries;
use super::shared::Shared;
use crate::budget::processes;
use crate::errors::store_error;

/// The most entries and bytes of one transaction.
const MAX_ENTRIES: usize = 1024;
const MAX_BYTES: usize = 1 << 20;
/// The pauses after failed transactions: the first, doubled up to the last.
const FIRST_RETRY: Duration = Duration::from_millis(20);
const LAST_RETRY: Duration = Duration::from_secs(1);

/// Writes entries until the journal is sealed.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut retry = FIRST_RETRY;
    let lines = LineLimit::default();
    loop {
        let (batch, removable) = {
            let tail = shared.tail();
            if tail.is_sealed {
                return;
            }
            (tail.unstored(MAX_ENTRIES, MAX_BYTES), tail.removable_below())
        };
        if batch.is_empty() && removable.is_none() {
            shared.work.notified().await;
            continue;
        }
        match write(&shared, &batch, removable).await {
            Ok(()) => {
                retry = FIRST_RETRY;
                shared.finish(&batch, removable);
            }
            Err(error) => {
                if lines.admits("write", shared.database.monotonic()) {
                    let error: &dyn std::error::Error = &error;
                    tracing::error!(process.id = %shared.process, error, "journal entries not stored, retrying");
                }
                shared.fail();
                tokio::time::sleep(retry).await;
                retry = (retry * 2).min(LAST_RETRY);
            }
        }
    }
}

/// Stores entries and removes others in one transaction.
///
/// # Errors
/// The store failed, or does not list the process as live.
async fn write(shared: &Shared, batch: &[JournalEntry], removable_below: Option<u64>) -> Result<(), StoreError> {
    let transaction = shared.database.begin().await?;
    let row = processes::find(&transaction, shared.process).await?.ok_or_else(|| not_live(shared.process))?;
    if processes::status(&row)?.state != ProcessState::Live {
        return Err(not_live(shared.process));
    }
    entries::insert(&transaction, shared.process, batch).await?;
    if let Some(below) = removable_below {
        entries::remove(&transaction, shared.process, Some(below)).await?;
    }
    transaction.commit().await.map_err(store_error)
}

fn not_live(process: ProcessId) -> StoreError {
    StoreError::unavailable(format!("the store does not list the process {process} as live"))
}
