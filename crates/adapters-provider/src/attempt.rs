//! Deadline and cancellation of an attempt.

use domain::decision::ClientConnection;
use domain::routing::{AttemptFailure, AttemptFailureKind};
use http_client::run_until;
use tokio::time::Instant;

/// Runs `work` until it ends, the client disconnects or the deadline passes. In the last two cases the work is dropped
/// together with its connection or stream, so that the provider notices.
pub(crate) async fn run_with_deadline<T>(
    deadline: Option<Instant>,
    caller: &dyn ClientConnection,
    work: impl Future<Output = Result<T, AttemptFailure>> + Send,
) -> Result<T, AttemptFailure> {
    tokio::select! {
        biased;
        () = caller.disconnected() => Err(AttemptFailure::new(AttemptFailureKind::ClientDisconnected, "the client disconnected")),
        done = run_until(deadline, work) => done.unwrap_or_else(|| {
            Err(AttemptFailure::new(AttemptFailureKind::TimedOut, "the provider did not answer in time"))
        }),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tasks of a test end with its runtime")]
mod tests;
