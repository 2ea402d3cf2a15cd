//! The task's side: group commit.

use std::sync::Arc;

use domain::error::StoreError;
use sea_orm::sea_query::{Expr, OnConflict, Query};
use sea_orm::{ConnectionTrait, DbBackend, Iterable, Statement, Value};
use tokio::sync::{mpsc, oneshot};

use crate::database::Database;
use crate::entities::usage_records::{Column, Entity, Model};
use crate::errors::{BatchFailed, store_error};

/// A row to write, and whoever waits for it.
pub(super) struct Job {
    pub(super) row: Model,
    pub(super) answer: oneshot::Sender<Result<(), StoreError>>,
}

/// Most records of one statement: 25 parameters each, far below what SQLite and PostgreSQL take.
const BATCH: usize = 64;

/// Writes what waits in one statement, then looks again. Ends when nobody can send any more.
pub(super) async fn run(database: Database, mut jobs: mpsc::Receiver<Job>) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut statements = Statements::new(database.writer().get_database_backend());
    while jobs.recv_many(&mut batch, BATCH).await > 0 {
        let (rows, mut waiting): (Vec<Model>, Vec<_>) = batch.drain(..).map(|job| (job.row, job.answer)).unzip();
        let written = write(&database, &mut statements, rows).await.map_err(Arc::new);
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

/// One statement is one transaction of itself: all of its rows or none, and a single trip to the database.
async fn write(database: &Database, statements: &mut Statements, rows: Vec<Model>) -> Result<(), StoreError> {
    let statement = statements.insert(rows);
    database.writer().execute_raw(statement).await.map_err(store_error).map(drop)
}

/// The texts of the statements, by number of rows. A connection keeps prepared statements by their text, so each is
/// built and prepared once.
struct Statements {
    backend: DbBackend,
    texts: Vec<Option<String>>,
}

impl Statements {
    fn new(backend: DbBackend) -> Self {
        Self { backend, texts: vec![None; BATCH + 1] }
    }

    /// A record that is there stays as it is: recording again changes nothing.
    fn insert(&mut self, rows: Vec<Model>) -> Statement {
        let (backend, count) = (self.backend, rows.len());
        let text = self.texts[count].get_or_insert_with(|| {
            let mut insert = Query::insert();
            insert.into_table(Entity).columns(Column::iter());
            for _ in 0..count {
                // The values are only places here.
                insert.values_panic(Column::iter().map(|_| Expr::val(0)));
            }
            insert.on_conflict(OnConflict::column(Column::Id).do_nothing().to_owned());
            backend.build(&insert).sql
        });
        Statement::from_sql_and_values(backend, text.as_str(), rows.into_iter().flat_map(values))
    }
}

/// In the order of the columns.
fn values(row: Model) -> [Value; 25] {
    [
        row.id.into(),
        row.workspace_id.into(),
        row.api_key.into(),
        row.request_id.into(),
        row.requested_model.into(),
        row.model.into(),
        row.provider.into(),
        row.outcome.into(),
        row.input_tokens.into(),
        row.output_tokens.into(),
        row.token_source.into(),
        row.cost_pico.into(),
        row.prompt_price.into(),
        row.completion_price.into(),
        row.attempts.into(),
        row.session_id.into(),
        row.trace.into(),
        row.user.into(),
        row.created_at.into(),
        row.latency_us.into(),
        row.share_index.into(),
        row.share_of.into(),
        row.guardrails.into(),
        row.charged_at.into(),
        row.findings.into(),
    ]
}
