//! The client's connection.

use async_trait::async_trait;

/// Reports the disconnect of a client, so that its work is cancelled.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ClientConnection: Send + Sync {
    /// Returns once the client has disconnected; never if it stays connected. Cancel-safe.
    async fn disconnected(&self);
}

/// A client that never disconnects, for embedding and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NeverDisconnects;

#[async_trait]
impl ClientConnection for NeverDisconnects {
    async fn disconnected(&self) {
        std::future::pending::<()>().await;
    }
}
