//! The requests of the control socket.

use serde::{Deserialize, Serialize};

/// A request to a running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum ControlRequest {
    /// Returns a [`ServerStatus`](super::ServerStatus).
    Status,
}
