//! The timeouts and limits of a connection.

use std::time::Duration;

/// The timeouts and limits of a client connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// The longest time from the first byte of a request head to its end, and from accept to the first byte of the
    /// first request.
    pub header_timeout: Duration,
    /// The longest time between a response and the first byte of the next request.
    pub keep_alive: Duration,
    /// The longest time in which the client may accept no byte of a response.
    pub write_timeout: Duration,
    /// The longest time in which input is discarded before a connection with unread input is closed.
    pub linger_timeout: Duration,
    /// The maximum number of bytes discarded in that time. It exceeds the maximum body size, so that a client that
    /// sends a too long body before it reads still gets its 413.
    pub linger_bytes: u64,
    /// The send buffer size of the socket, in bytes; Linux doubles it. The rest of a response stays in process memory.
    pub send_buffer_bytes: usize,
}

/// The connections that may be closed for a new one at the connection limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preemption {
    /// Idle connections.
    Idle,
    /// Idle connections first, then the connection without progress for the longest time. For listeners with fast
    /// handlers.
    Any,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            linger_timeout: Duration::from_secs(2),
            linger_bytes: 32 * 1024 * 1024,
            send_buffer_bytes: 512 * 1024,
        }
    }
}
