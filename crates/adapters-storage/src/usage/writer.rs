//! The task's side: group commit.

use std::sync::Arc;

use domain::error::StoreError;
use sea_orm::sea_query::OnConflict;
use sea_orm::{EntityTrait, IntoActiveModel};
use tokio::sync::{mpsc, oneshot};

use crate::chunks::chunks_of;
use crate::database::Database;
use crate::entities::usage_records::{ActiveModel, Column, Entity, Model};
use crate::errors::{BatchFailed, store_error};

/// A row to write, and whoever waits for it.
pub(super) struct Job {
    pub(super) row: Model,
    pub(super) answer: oneshot::Sender<Result<(), StoreError>>,
}

/// Most records of one transaction.
const BATCH: usize = 256;
/// Rows that one statement writes; a power of two.
const ROWS: usize = 64;

/// Writes all that waits in one transaction, then looks again. Ends when nobody can send any more.
pub(super) async fn run(database: Database, mut jobs: mpsc::Receiver<Job>) {
    let mut batch = Vec::with_capacity(BATCH);
    while jobs.recv_many(&mut batch, BATCH).await > 0 {
        let (rows, mut waiting): (Vec<ActiveModel>, Vec<_>) =
            batch.drain(..).map(|job| (job.row.into_active_model(), job.answer)).unzip();
        let written = write(&database, &rows).await.map_err(Arc::new);
        if let Err(error) = &written {
            // Whoever came meanwhile is not made to wait for the same failure once more for each batch before theirs.
            for _ in 0..jobs.len() {
                waiting.extend(jobs.try_recv().ok().map(|job| job.answer));
            }
            let source = &**error as &dyn std::error::Error;
            tracing::error!(records = waiting.len(), error = source, "usage was not written");
        }
        for answer in waiting {
            let result = written.clone().map_err(|error| StoreError::unavailable(BatchFailed(error)));
            // Whoever left does not need to know.
            drop(answer.send(result));
        }
    }
}

async fn write(database: &Database, rows: &[ActiveModel]) -> Result<(), StoreError> {
    let transaction = database.begin().await?;
    for piece in chunks_of(rows, ROWS) {
        // A record that is there stays as it is: recording again changes nothing.
        Entity::insert_many(piece.iter().cloned())
            .on_conflict(OnConflict::column(Column::Id).do_nothing().to_owned())
            .exec_without_returning(&transaction)
            .await
            .map_err(store_error)?;
    }
    transaction.commit().await.map_err(store_error)
}
