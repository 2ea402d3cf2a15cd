//! The ports to the machine that use cases run on.

use std::future::Ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::{BoxFuture, Either};

use crate::error::{ErrorKind, StoreError};
use crate::ids::{
    ApiKeyId, DecisionId, DestinationId, DocumentId, GuardrailId, OutboxId, PresetId, ProcessId, RequestId, WorkspaceId,
};
use crate::secret::ApiKeySecret;

/// Reads the clock.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Clock: Send + Sync {
    /// Returns the wall clock time, in UTC.
    fn now(&self) -> DateTime<Utc>;

    /// Returns the time since a fixed time of this process, for durations and deadlines. MUST never go backwards.
    fn monotonic(&self) -> Duration;
}

/// Waits.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Timer: Send + Sync {
    /// Returns after `duration`, not before.
    async fn sleep(&self, duration: Duration);
}

/// A result that is nearly always there at once, and otherwise a future.
pub type Soon<'a, T> = Either<Ready<T>, BoxFuture<'a, T>>;

/// A unit of work without arguments or result.
pub type Work = Box<dyn FnOnce() + Send>;

/// The owner of work. Owners are scheduled in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkOwner {
    /// The workspace of the request.
    Workspace(WorkspaceId),
    /// The operator, for management calls.
    System,
}

/// Runs work that would block a thread for too long: a filter over a large text takes more processor time than the rest
/// of a request.
///
/// # Contract
/// - Work MUST NOT run on the thread that waits for it, unless that thread serves no other requests.
/// - It returns when the work has ended. Work that did not run, or only in part, MUST be an error or a panic of the
///   caller, never `Ok`.
/// - Only as much work runs at a time as the machine has capacity for. The rest is queued. Owners are scheduled in
///   turn, and the work of one owner starts in order. One owner has at most half of the threads if there are several.
/// - The queue of one owner is bounded; more work is rejected with [`TaskError::QueueFull`].
/// - If the returned future is dropped, queued work is removed. Running work continues until it ends or sees its
///   [`CancelFlag`].
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Workers: Send + Sync {
    /// Runs work to its end.
    ///
    /// # Errors
    /// Fails if the work did not run or did not end.
    async fn run(&self, owner: WorkOwner, work: Work) -> Result<(), TaskError>;
}

impl dyn Workers {
    /// Runs work that returns a value. The flag is cancelled when the returned future is dropped.
    ///
    /// # Errors
    /// Fails if the work did not run or did not end.
    pub async fn get<T: Send + 'static>(
        &self,
        owner: WorkOwner,
        work: impl FnOnce(&CancelFlag) -> T + Send + 'static,
    ) -> Result<T, TaskError> {
        let end: Arc<Mutex<Option<T>>> = Arc::default();
        let result = Arc::clone(&end);
        let flag = CancelFlag::default();
        let _cancels = flag.cancel_on_drop();
        let work = move || {
            let done = work(&flag);
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        };
        self.run(owner, Box::new(work)).await?;
        // A missing result means that the work did not run, even if the worker reported success.
        end.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(TaskError::Stopped)
    }
}

/// The error of work that did not run to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// The work panicked.
    #[error("the work panicked")]
    Panicked,
    /// The process is shutting down.
    #[error("the workers have stopped")]
    Stopped,
    /// The queue of this owner is full.
    #[error("the scan queue of this workspace is full")]
    QueueFull,
}

impl TaskError {
    /// Returns the error kind; a panic is an internal error.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Panicked => ErrorKind::Internal,
            Self::Stopped => ErrorKind::Unavailable,
            Self::QueueFull => ErrorKind::RateLimited,
        }
    }
}

/// Generates ids. Ids MUST be unique over all processes and SHOULD sort by creation time (UUIDv7).
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait IdGenerator: Send + Sync {
    /// Returns a new workspace id.
    fn workspace_id(&self) -> WorkspaceId;
    /// Returns a new key id.
    fn api_key_id(&self) -> ApiKeyId;
    /// Returns a new guardrail id.
    fn guardrail_id(&self) -> GuardrailId;
    /// Returns a new document id.
    fn document_id(&self) -> DocumentId;
    /// Returns a new decision id of this time.
    fn decision_id(&self, at: DateTime<Utc>) -> DecisionId;
    /// Returns a new request id of this time.
    fn request_id(&self, at: DateTime<Utc>) -> RequestId;
    /// Returns a new preset id.
    fn preset_id(&self) -> PresetId;
    /// Returns a new destination id.
    fn destination_id(&self) -> DestinationId;
    /// Returns a new message id.
    fn outbox_id(&self) -> OutboxId;
    /// Returns a new process id.
    fn process_id(&self) -> ProcessId;
}

/// Draws random numbers for load distribution, never for secrets. A seeded implementation makes routing repeatable.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Randomness: Send + Sync {
    /// Returns a number that is uniform over all 64 bits.
    fn next_u64(&self) -> u64;
}

/// Generates secrets from the operating system's cryptographic random source.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait SecretGenerator: Send + Sync {
    /// Returns a new API key with 256 random bits.
    ///
    /// # Errors
    /// Fails if the random source fails; no key may be created then.
    fn api_key_secret(&self) -> Result<ApiKeySecret, StoreError>;
}

/// Checks whether a store responds, for readiness probes and for `doctor`.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait HealthProbe: Send + Sync {
    /// Returns the name of the store in one word: `database`, `blobs`.
    fn name(&self) -> &'static str;

    /// Succeeds if the store responds. MUST end within two seconds.
    async fn probe(&self) -> Result<(), StoreError>;

    /// Returns true while requests are served without the store: the server is then degraded but ready.
    fn serves_during_outage(&self) -> bool {
        false
    }
}

/// Runs work on the calling thread, where its panics surface as well. For tests, and for processes that serve no other
/// requests.
#[derive(Debug, Clone, Copy, Default)]
pub struct InlineExecutor;

#[async_trait]
impl Workers for InlineExecutor {
    async fn run(&self, _: WorkOwner, work: Work) -> Result<(), TaskError> {
        work();
        Ok(())
    }
}

/// A flag that cancels work. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag {
    cancelled: Arc<AtomicBool>,
    #[cfg(any(test, feature = "testing"))]
    checks: Option<Arc<Checks>>,
}

impl CancelFlag {
    /// Returns true once the work should end. It is cheap enough to be called often.
    pub fn is_cancelled(&self) -> bool {
        #[cfg(any(test, feature = "testing"))]
        if let Some(checks) = &self.checks
            && checks.made.fetch_add(1, Ordering::SeqCst) >= checks.passed
        {
            return true;
        }
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Cancels the work.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns a guard that cancels the work when it is dropped.
    pub fn cancel_on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

/// See [`CancelFlag::cancel_on_drop`].
#[derive(Debug)]
pub struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Work that ended early because it was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the work was cancelled")]
pub struct Cancelled;

#[cfg(any(test, feature = "testing"))]
#[derive(Debug)]
struct Checks {
    passed: usize,
    made: std::sync::atomic::AtomicUsize,
}

#[cfg(any(test, feature = "testing"))]
impl CancelFlag {
    /// Creates a flag that is cancelled after `passed` checks and counts them, as a measure of the work done.
    pub fn after_checks(passed: usize) -> Self {
        let checks = Checks { passed, made: std::sync::atomic::AtomicUsize::new(0) };
        Self { checks: Some(Arc::new(checks)), ..Self::default() }
    }

    /// Returns the number of checks so far; zero for a flag that does not count.
    pub fn checks(&self) -> usize {
        self.checks.as_ref().map_or(0, |checks| checks.made.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests;
