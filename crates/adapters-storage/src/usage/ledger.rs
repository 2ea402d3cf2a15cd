//! The port's side.

use std::time::Duration;

use async_trait::async_trait;
use domain::budget::{
    Claim, ExpiryReport, Ledger, LedgerAudit, Overspent, Payer, PruneReport, Reservation, ResetInterval, Settlement,
    StandingLimit,
};
use domain::decision::UnknownUsage;
use domain::error::StoreError;
use domain::ids::{DecisionId, WorkspaceId};
use domain::money::Usd;
use domain::usage::AttemptRecord;
use sea_orm::{EntityTrait, TransactionTrait};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use super::audit::Audit;
use super::books::Books;
use super::job::{Ask, Charge, Extension, Job, Outcome, Work};
use super::script::{Run, Script};
use super::statements::Texts;
use super::{expiry, pruning, writer};
use crate::convert::millis;
use crate::database::Database;
use crate::entities::record_bytes;
use crate::errors::store_error;

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

    /// How many jobs wait to be written, to be asked at any time. It does not keep the ledger alive.
    pub fn waiting(&self) -> impl Fn() -> u64 + Send + Sync + 'static {
        // Not a sender: the task ends when there is none.
        let queue = self.queue.downgrade();
        move || {
            let waiting = queue.upgrade().map_or(0, |queue| queue.max_capacity() - queue.capacity());
            u64::try_from(waiting).unwrap_or(u64::MAX)
        }
    }

    /// Puts work into the queue and waits until it is done; where the queue is full, waits for as long as writes have
    /// patience.
    async fn ask(&self, work: Work) -> Result<Outcome, StoreError> {
        let patience: Duration = self.database.patience();
        let (answer, done) = oneshot::channel();
        let queued = self.queue.send_timeout(Job { work, answer }, patience).await;
        queued.map_err(|error| StoreError::unavailable(error.to_string()))?;
        done.await.map_err(StoreError::unavailable)?
    }
}

#[async_trait]
impl Ledger for SeaOrmLedger {
    async fn reserve(&self, claim: Claim) -> Result<Result<Reservation, Overspent>, StoreError> {
        match self.ask(Work::Reserve(Box::new(Ask::of(claim)?))).await? {
            Outcome::Reserved(reservation) => Ok(Ok(reservation)),
            Outcome::Refused(overspent) => Ok(Err(overspent)),
            Outcome::Done => Err(StoreError::Corrupt("a reservation ended as something else".to_owned())),
        }
    }

    async fn extend(
        &self,
        id: &DecisionId,
        more: Usd,
        attempts: &[AttemptRecord],
    ) -> Result<Result<(), Overspent>, StoreError> {
        let extension = Extension::of(id, more, attempts)?;
        match self.ask(Work::Extend(Box::new(extension))).await? {
            Outcome::Refused(overspent) => Ok(Err(overspent)),
            Outcome::Done | Outcome::Reserved(_) => Ok(Ok(())),
        }
    }

    /// A record that was queued is written even where the caller stops waiting.
    async fn settle(&self, settlement: Settlement) -> Result<(), StoreError> {
        self.ask(Work::Settle(Box::new(Charge::of(settlement)?))).await.map(drop)
    }

    /// Likewise.
    async fn release(&self, id: &DecisionId) -> Result<(), StoreError> {
        self.ask(Work::Release(id.clone())).await.map(drop)
    }

    async fn expire(&self, unknown: UnknownUsage, limit: u64) -> Result<ExpiryReport, StoreError> {
        expiry::expire(&self.database, unknown, limit).await
    }

    async fn standing(&self, payer: &Payer) -> Result<Vec<StandingLimit>, StoreError> {
        let snapshot = self.database.readers()?.begin().await.map_err(store_error)?;
        let mut texts = Texts::new(self.database.backend());
        let now = self.database.now();
        let (mut books, mut script) = (Books::default(), Script::default());
        books.ask(&mut script, [(payer, now)]);
        books.take(&mut (&snapshot).run(&mut texts, script).await?)?;
        let limits = books.limits(payer, now)?;
        limits.iter().map(|limit| limit.standing(books.counter(&limit.counter))).collect()
    }

    async fn recorded_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError> {
        let found = record_bytes::Entity::find_by_id(workspace_id.to_string()).one(self.database.readers()?).await;
        let today = millis(ResetInterval::Daily.start_of(self.database.now()));
        let of_today = found.map_err(store_error)?.filter(|row| row.day >= today);
        Ok(of_today.map_or(0, |row| u64::try_from(row.bytes).unwrap_or_default()))
    }

    async fn audit(&self) -> Result<LedgerAudit, StoreError> {
        let snapshot = self.database.readers()?.begin().await.map_err(store_error)?;
        Audit::new(&snapshot).run().await
    }

    async fn prune(&self, older_than: Duration, limit: u64) -> Result<PruneReport, StoreError> {
        pruning::prune(&self.database, older_than, limit).await
    }
}
