//! What use cases need from the machine they run on.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::CancelFlag;
use crate::error::{ErrorKind, StoreError};
use crate::ids::{
    ApiKeyId, DecisionId, DestinationId, DocumentId, GuardrailId, OutboxId, ProcessId, RequestId, WorkspaceId,
};
use crate::secret::ApiKeySecret;

/// Tells the time.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Clock: Send + Sync {
    /// The wall clock, in UTC.
    fn now(&self) -> DateTime<Utc>;

    /// Time since some fixed moment of this process. MUST never go backwards; for durations and deadlines.
    fn monotonic(&self) -> Duration;
}

/// Waits.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Timer: Send + Sync {
    /// Returns after `duration`, not before.
    async fn sleep(&self, duration: Duration);
}

/// Work that takes no word from outside and gives none back but by what it holds.
pub type Work = Box<dyn FnOnce() + Send>;

/// The party that work is done for. Parties take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkOwner {
    /// A workspace whose request it is.
    Workspace(WorkspaceId),
    /// The operator: management calls.
    System,
}

/// Does work that would keep a thread from the other requests that it serves: a filter over a large text holds a
/// processor for longer than all the rest of a request.
///
/// # Contract
/// - Work MUST NOT be done on the thread that waits for it, unless that thread serves nobody else.
/// - It returns when the work has ended. Work that was not done, or only in part, MUST be an error, or a panic of the
///   caller's; never `Ok`.
/// - Only as much work runs at a time as the machine can do beside its other work. The rest waits; owners take turns,
///   and the work of one owner is done in the order in which it came. One owner has at most half of the threads where
///   there are several.
/// - Waiting work of one owner is bounded; more is rejected by [`WorkLost::QueueFull`].
/// - When the returned future is dropped, waiting work is not done and frees its room. Work that has begun goes on until
///   it ends or sees its [`CancelFlag`].
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Workers: Send + Sync {
    /// Has the work done.
    ///
    /// # Errors
    /// It was not done, or not to its end.
    async fn run(&self, owner: WorkOwner, work: Work) -> Result<(), WorkLost>;
}

impl dyn Workers {
    /// Has work done that returns something. The flag is cancelled when the returned future is dropped.
    ///
    /// # Errors
    /// It was not done, or not to its end.
    pub async fn get<T: Send + 'static>(
        &self,
        owner: WorkOwner,
        work: impl FnOnce(&CancelFlag) -> T + Send + 'static,
    ) -> Result<T, WorkLost> {
        let end: Arc<Mutex<Option<T>>> = Arc::default();
        let told = Arc::clone(&end);
        let flag = CancelFlag::default();
        let _cancels = flag.cancel_on_drop();
        let work = move || {
            let done = work(&flag);
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        };
        self.run(owner, Box::new(work)).await?;
        // A worker that reports an end without having done the work is not believed.
        end.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(WorkLost::Stopped)
    }
}

/// Why work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkLost {
    /// It panicked.
    #[error("the work panicked")]
    Panicked,
    /// No work is done any more: the process is about to end.
    #[error("no work is done any more")]
    Stopped,
    /// Too much work of the same owner waits.
    #[error("too much work of this workspace waits for a processor")]
    QueueFull,
}

impl WorkLost {
    /// Its meaning: a panic is a defect.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Panicked => ErrorKind::Internal,
            Self::Stopped => ErrorKind::Unavailable,
            Self::QueueFull => ErrorKind::RateLimited,
        }
    }
}

/// Makes ids. Ids MUST be unique over all processes and SHOULD sort by creation time (UUIDv7).
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait IdGenerator: Send + Sync {
    /// A fresh workspace id.
    fn workspace_id(&self) -> WorkspaceId;
    /// A fresh key id.
    fn api_key_id(&self) -> ApiKeyId;
    /// A fresh guardrail id.
    fn guardrail_id(&self) -> GuardrailId;
    /// A fresh document id.
    fn document_id(&self) -> DocumentId;
    /// A fresh decision id.
    fn decision_id(&self) -> DecisionId;
    /// A fresh request id.
    fn request_id(&self) -> RequestId;
    /// A fresh id of a destination.
    fn destination_id(&self) -> DestinationId;
    /// A fresh id of a message.
    fn outbox_id(&self) -> OutboxId;
    /// A fresh id of a process.
    fn process_id(&self) -> ProcessId;
}

/// Draws random numbers, for spreading load; never for secrets. A seeded one makes routing repeatable.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Randomness: Send + Sync {
    /// Uniform over all 64 bits.
    fn next_u64(&self) -> u64;
}

/// Makes secrets from the operating system's cryptographic random source.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait SecretGenerator: Send + Sync {
    /// A fresh API key with 256 random bits.
    ///
    /// # Errors
    /// The random source failed; no key may be made then.
    fn api_key_secret(&self) -> Result<ApiKeySecret, StoreError>;
}

/// Tells whether a store answers now: for readiness probes and for `doctor`.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait HealthProbe: Send + Sync {
    /// What is probed, in a word: `database`, `blobs`.
    fn name(&self) -> &'static str;

    /// Ends well where the store answers. MUST end within two seconds.
    async fn probe(&self) -> Result<(), StoreError>;

    /// True while requests are served although the store does not answer: the server is then degraded and ready.
    fn is_bridged(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
