//! The task's side: group commit.

use std::sync::Arc;

use domain::error::StoreError;
use tokio::sync::mpsc;

use super::batch::{Batches, Outcomes};
use super::charges::RECORDS;
use super::job::{Job, Work};
use crate::database::Database;
use crate::errors::BatchFailed;

/// Most jobs of one transaction.
const BATCH: usize = RECORDS;

/// Does what waits in one transaction, then looks again. Ends when nobody can send any more.
pub(super) async fn run(database: Database, mut jobs: mpsc::Receiver<Job>) {
    let mut waiting = Vec::with_capacity(BATCH);
    let mut batches = Batches::new(database);
    while next(&mut batches, &mut jobs, &mut waiting).await {
        waiting.retain(|job| !job.is_pointless());
        waiting.sort_by_key(|job| !job.work.makes_room());
        let (works, mut answers): (Vec<Work>, Vec<_>) = waiting.drain(..).map(|job| (job.work, job.answer)).unzip();
        let (mut outcomes, failure) = perform(&mut batches, &works).await;
        if let Some(error) = failure {
            // Whoever came meanwhile is not made to wait for the same failure once more for each batch before theirs.
            for _ in 0..jobs.len() {
                answers.extend(jobs.try_recv().ok().map(|job| job.answer));
            }
            let untried = answers.len().saturating_sub(outcomes.len());
            let source = &*error as &dyn std::error::Error;
            tracing::error!(jobs = untried, error = source, "the ledger was not written");
            outcomes.extend((0..untried).map(|_| Err(StoreError::unavailable(BatchFailed(Arc::clone(&error))))));
        }
        for (answer, outcome) in answers.into_iter().zip(outcomes) {
            // Whoever left does not need to know.
            drop(answer.send(outcome));
        }
        batches.session.give_way();
    }
}

/// Waits for jobs, and gives the connection back where somebody else wants it. False when nobody can send any more.
async fn next(batches: &mut Batches, jobs: &mut mpsc::Receiver<Job>, waiting: &mut Vec<Job>) -> bool {
    loop {
        tokio::select! {
            biased;
            count = jobs.recv_many(waiting, BATCH) => return count > 0,
            () = batches.session.wanted() => batches.session.give_way(),
        }
    }
}

/// Does a batch; where its data are at fault, its halves, and so on, so that only what is at fault fails. Returns what
/// became of those that were tried, and why the database did not do the rest.
async fn perform(batches: &mut Batches, works: &[Work]) -> (Outcomes, Option<Arc<StoreError>>) {
    let mut outcomes = Outcomes::with_capacity(works.len());
    let mut pieces = vec![works];
    while let Some(piece) = pieces.pop() {
        if piece.is_empty() {
            continue;
        }
        match batches.write(piece).await {
            Ok(done) => outcomes.extend(done),
            Err(StoreError::Corrupt(_)) if piece.len() > 1 => {
                let (first, second) = piece.split_at(piece.len() / 2);
                pieces.extend([second, first]);
            }
            Err(error @ StoreError::Corrupt(_)) => {
                tracing::error!(error = &error as &dyn std::error::Error, "an entry of the ledger was not written");
                outcomes.push(Err(error));
            }
            Err(error) => return (outcomes, Some(Arc::new(error))),
        }
    }
    (outcomes, None)
}
