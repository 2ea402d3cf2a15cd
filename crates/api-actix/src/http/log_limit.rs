//! A rate limit for log lines that unauthenticated clients can cause.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The maximum number of lines in each [`WINDOW`].
const MAX_LINES: u32 = 10;
const WINDOW: Duration = Duration::from_secs(1);

/// Permits at most ten lines per second.
#[derive(Debug, Default)]
pub(super) struct LogLimit(Mutex<Option<Window>>);

#[derive(Debug)]
struct Window {
    began: Instant,
    lines: u32,
    suppressed: u64,
}

impl LogLimit {
    /// Returns the number of lines suppressed since the last permitted one; `None` if this line must be suppressed.
    pub(super) fn permit(&self) -> Option<u64> {
        let now = Instant::now();
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = window.get_or_insert(Window { began: now, lines: 0, suppressed: 0 });
        if now.duration_since(window.began) >= WINDOW {
            window.began = now;
            window.lines = 0;
        }
        if window.lines == MAX_LINES {
            window.suppressed += 1;
            return None;
        }
        window.lines += 1;
        Some(std::mem::take(&mut window.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn permit_grants_ten_lines_a_second_and_counts_the_others() {
        let limit = LogLimit::default();
        let granted = (0..300).filter_map(|_| limit.permit()).collect::<Vec<_>>();
        assert_eq!(granted, [0; 10]);
        tokio::time::advance(WINDOW).await;
        assert_eq!((limit.permit(), limit.permit()), (Some(290), Some(0)));
    }
}
