//! The client's connection.

use async_trait::async_trait;

/// Tells when the caller is gone, so that work for nobody is given up.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ClientConnection: Send + Sync {
    /// Returns once the caller has left; never where the caller stays. Cancel-safe.
    async fn disconnected(&self);
}

/// A caller that stays to the end: for embedding and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NeverDisconnects;

#[async_trait]
impl ClientConnection for NeverDisconnects {
    async fn disconnected(&self) {
        std::future::pending::<()>().await;
    }
}
