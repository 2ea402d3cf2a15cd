//! A connection that a call uses.

use std::sync::Arc;

use super::http1::Http1Connection;
use super::http2::Http2Call;
use super::meter::Meter;
use super::pool::Pool;

/// A connection in use. Dropped without [`Self::release`], one of HTTP/1.1 closes.
pub(super) enum ConnectionInUse {
    Http1 { connection: Box<Http1Connection>, pool: Arc<Pool> },
    Http2(Http2Call),
}

impl ConnectionInUse {
    pub(super) fn meter(&self) -> &Meter {
        match self {
            Self::Http1 { connection, .. } => &connection.meter,
            Self::Http2(call) => call.meter(),
        }
    }

    pub(super) fn is_reused(&self) -> bool {
        match self {
            Self::Http1 { connection, .. } => connection.is_reused,
            Self::Http2(call) => call.is_reused,
        }
    }

    /// Closes the connection to later calls.
    pub(super) fn retire(&self) {
        if let Self::Http2(call) = self {
            call.retire();
        }
    }

    /// Keeps the connection for the next call.
    pub(super) fn release(self) {
        if let Self::Http1 { connection, pool } = self {
            pool.put(connection);
        }
    }
}
