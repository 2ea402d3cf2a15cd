//! The port's side of writing.

use std::time::Duration;

use async_trait::async_trait;
use domain::budget::{
    Claim, ExpiryReport, Ledger, LedgerAudit, Overspent, Payer, Reservation, Settlement, StandingLimit,
};
use domain::decision::UnknownUsage;
use domain::error::StoreError;
use domain::ids::DecisionId;
use domain::money::Usd;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use super::row::to_row;
use super::writer::{self, Job};
use crate::database::Database;

/// Writes the ledger. What arrives while something is being written waits, and is then written together in one
/// transaction, so that the price of a commit is shared.
#[derive(Clone)]
pub struct SeaOrmLedger {
    database: Database,
    queue: mpsc::Sender<Job>,
}

/// Jobs that may wait; with a record of about 1 kB this is a few megabytes.
const QUEUE: usize = 4096;

impl SeaOrmLedger {
    /// Starts the task that writes. It ends when the ledger has been dropped and what waits has been written.
    pub fn start(database: Database, tasks: &TaskTracker) -> Self {
        let (queue, jobs) = mpsc::channel(QUEUE);
        tasks.spawn(writer::run(database.clone(), jobs));
        Self { database, queue }
    }

    /// Puts a job into the queue; where it is full, waits for as long as writes have patience.
    async fn enqueue(&self, job: Job) -> Result<(), StoreError> {
        let patience: Duration = self.database.patience();
        self.queue.send_timeout(job, patience).await.map_err(|error| StoreError::unavailable(error.to_string()))
    }
}

fn not_yet() -> StoreError {
    StoreError::unavailable("the ledger keeps no reservations yet")
}

#[async_trait]
impl Ledger for SeaOrmLedger {
    async fn reserve(&self, _claim: Claim) -> Result<Result<Reservation, Overspent>, StoreError> {
        Err(not_yet())
    }

    async fn extend(&self, _id: &DecisionId, _more: Usd) -> Result<Result<(), Overspent>, StoreError> {
        Err(not_yet())
    }

    /// A record that was queued is written even where the caller stops waiting.
    async fn settle(&self, settlement: Settlement) -> Result<(), StoreError> {
        let row = to_row(&settlement.record)?;
        let (answer, written) = oneshot::channel();
        self.enqueue(Job { row, answer }).await?;
        written.await.map_err(StoreError::unavailable)?
    }

    async fn release(&self, _id: &DecisionId) -> Result<(), StoreError> {
        Err(not_yet())
    }

    async fn expire(&self, _unknown: UnknownUsage, _limit: u64) -> Result<ExpiryReport, StoreError> {
        Ok(ExpiryReport::default())
    }

    async fn standing(&self, _payer: &Payer) -> Result<Vec<StandingLimit>, StoreError> {
        Err(not_yet())
    }

    async fn audit(&self) -> Result<LedgerAudit, StoreError> {
        Err(not_yet())
    }

    async fn prune(&self, _older_than: Duration, _limit: u64) -> Result<u64, StoreError> {
        Ok(0)
    }
}
