//! How one process learns that another changed something that it keeps in memory.

use async_trait::async_trait;

use crate::error::StoreError;

/// How often each kind of cached thing has changed since the database was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangeVersions {
    /// Keys, guardrails and their assignments, and their workspaces' state.
    pub keys: u64,
    /// The catalogue.
    pub catalogue: u64,
    /// Destinations of traces.
    pub observability: u64,
}

/// Reads the counters.
///
/// # Contract
/// - A counter is raised in the transaction of the change itself, so that whoever reads the new counter reads the
///   change as well.
/// - Counters MUST never fall.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ChangeFeed: Send + Sync {
    /// The counters now.
    async fn versions(&self) -> Result<ChangeVersions, StoreError>;
}
