//! What use cases need from the machine they run on.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::api_key::ApiKeySecret;
use crate::error::{ErrorKind, StoreError};
use crate::ids::{DecisionId, DestinationId, DocumentId, GuardrailId, OutboxId, RequestId, WorkspaceId};

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

/// Does work that would keep a thread from whoever else is served by it: a large text that is looked through holds a
/// processor for longer than all the rest of a request, and a thread that serves many would let them all wait.
///
/// # Contract
/// - Work MUST NOT be done on the thread that waits for it, unless nobody else is served by that thread.
/// - It returns when the work has ended. Work that was not done, or only in part, MUST be an error, or a panic of the
///   caller's; never `Ok`.
/// - So much at a time as the machine can do beside its other work; the rest waits in the order in which it came.
/// - Work that waits and is no longer waited for is not done. What has begun goes on to its end.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Workers: Send + Sync {
    /// Has the work done.
    ///
    /// # Errors
    /// It was not done, or not to its end.
    async fn run(&self, work: Work) -> Result<(), WorkLost>;
}

impl dyn Workers {
    /// Has work done that gives something back.
    ///
    /// # Errors
    /// It was not done, or not to its end.
    pub async fn get<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, WorkLost> {
        let end: Arc<Mutex<Option<T>>> = Arc::default();
        let told = Arc::clone(&end);
        let work = move || {
            let done = work();
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        };
        self.run(Box::new(work)).await?;
        // Whoever says that it is done and has not done it is not believed.
        end.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(WorkLost::Stopped)
    }
}

/// Why work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkLost {
    /// It panicked.
    #[error("the work panicked")]
    Panicked,
    /// Nobody does work any more: the process is about to end.
    #[error("no work is done any more")]
    Stopped,
}

impl WorkLost {
    /// Its meaning: a panic is a defect.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Panicked => ErrorKind::Internal,
            Self::Stopped => ErrorKind::Unavailable,
        }
    }
}

/// Makes ids. Ids MUST be unique over all processes and SHOULD sort by creation time (UUIDv7).
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait IdGenerator: Send + Sync {
    /// A fresh workspace id.
    fn workspace_id(&self) -> WorkspaceId;
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
}
