//! The port's side.

use std::time::Duration;

use async_trait::async_trait;
use domain::error::StoreError;
use domain::ids::{DecisionId, WorkspaceId};
use domain::usage::{UsageRecord, UsageRepository};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use super::row::{to_record, to_row};
use super::writer::{self, Job};
use crate::database::Database;
use crate::entities::usage_records::{Column, Entity};
use crate::errors::store_error;

/// Keeps usage records in the database. Records that arrive while others are being written wait, and are then
/// written together in one transaction, so that the price of a commit is shared.
pub struct SeaOrmUsageRepository {
    database: Database,
    queue: mpsc::Sender<Job>,
}

/// Records that may wait; with a record of about 1 kB this is a few megabytes.
const QUEUE: usize = 4096;

impl SeaOrmUsageRepository {
    /// Starts the task that writes. It ends when the repository has been dropped and what waits has been written.
    pub fn start(database: Database, tasks: &TaskTracker) -> Self {
        let (queue, jobs) = mpsc::channel(QUEUE);
        tasks.spawn(writer::run(database.clone(), jobs));
        Self { database, queue }
    }

    /// Puts a record into the queue; where it is full, waits for as long as writes have patience.
    async fn enqueue(&self, job: Job) -> Result<(), StoreError> {
        let patience: Duration = self.database.patience();
        self.queue.send_timeout(job, patience).await.map_err(|error| StoreError::unavailable(error.to_string()))
    }
}

#[async_trait]
impl UsageRepository for SeaOrmUsageRepository {
    /// A record that was queued is written even where the caller stops waiting.
    async fn record(&self, record: UsageRecord) -> Result<(), StoreError> {
        let row = to_row(&record)?;
        let (answer, written) = oneshot::channel();
        self.enqueue(Job { row, answer }).await?;
        written.await.map_err(StoreError::unavailable)?
    }

    async fn find(&self, id: &DecisionId) -> Result<Option<UsageRecord>, StoreError> {
        let query = Entity::find_by_id(id.as_str());
        let found = query.one(self.database.readers()).await.map_err(store_error)?;
        found.map(to_record).transpose()
    }

    async fn list(&self, workspace_id: WorkspaceId, limit: u64) -> Result<Vec<UsageRecord>, StoreError> {
        let rows = Entity::find()
            .filter(Column::WorkspaceId.eq(workspace_id.to_string()))
            .order_by_desc(Column::CreatedAt)
            .order_by_desc(Column::Id)
            // Stays within what a database can count.
            .limit(limit.min(u64::from(u32::MAX)))
            .all(self.database.readers())
            .await
            .map_err(store_error)?;
        rows.into_iter().map(to_record).collect()
    }
}
