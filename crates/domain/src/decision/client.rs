//! The client: its connection, and the request that it sent.

use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;

use crate::ids::RequestId;

/// The origin of a Decisions request, for its usage record and its deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestOrigin {
    /// The id of the HTTP request.
    pub request_id: RequestId,
    /// The client's address; `None` if it is unknown or not recorded.
    pub client_address: Option<IpAddr>,
    /// The begin of the request's deadline, on the monotonic clock; `None` means now.
    pub began: Option<Duration>,
}

impl From<RequestId> for RequestOrigin {
    fn from(request_id: RequestId) -> Self {
        Self { request_id, client_address: None, began: None }
    }
}

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
