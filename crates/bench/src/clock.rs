//! The machine's own clock: a benchmark measures real time.

use std::time::Instant;

/// Returns the current time.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time, not that of a port")]
pub fn now() -> Instant {
    Instant::now()
}
