//! The deadlines and bounds of a connection.

use std::time::Duration;

/// The deadlines and bounds of a client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// The longest time from the first byte of a request's head to its end, and from accepting a connection to the
    /// first byte of its first request.
    pub header_timeout: Duration,
    /// The longest time between an answer and the first byte of the next request.
    pub keep_alive: Duration,
    /// The longest time in which the client takes no byte of an answer.
    pub write_timeout: Duration,
    /// The longest time in which input is discarded before a connection with unread input is closed.
    pub linger_timeout: Duration,
    /// The most bytes that are discarded in that time.
    pub linger_bytes: u64,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            linger_timeout: Duration::from_secs(2),
            linger_bytes: 64 * 1024,
        }
    }
}
