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
    /// The most bytes that are discarded in that time. More than the longest body that is taken, so that a client whose
    /// body is too long, and who reads only after writing, still gets its 413.
    pub linger_bytes: u64,
    /// The most bytes of an answer that the system is asked to hold for a client that has not acknowledged them; Linux
    /// allows itself twice as many. The rest of an answer waits where it lies.
    pub send_buffer_bytes: usize,
}

/// The connections that may be closed for a new one where all places are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preemption {
    /// Those between two requests.
    Idle,
    /// Those first, then any that have not got further for longest: for a listener whose answers are made in an instant.
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
