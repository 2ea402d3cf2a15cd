//! The time that a request waits for other requests' holds.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use crate::decision::ClientConnection;
use crate::system::TimeSource;

/// The first wait; each further one is twice as long.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(10);

/// The total time that a request or an attempt may wait, from its first rejection on.
pub(super) struct WaitBudget {
    whole: Duration,
    since: Option<Duration>,
    next: Duration,
}

impl WaitBudget {
    pub(super) fn new(whole: Duration) -> Self {
        Self { whole, since: None, next: FIRST_WAIT }
    }

    /// Waits before the next try. Returns false if the budget is used up or the client disconnects.
    pub(super) async fn wait(&mut self, time: &TimeSource, client: &Arc<dyn ClientConnection>) -> bool {
        let now = time.monotonic();
        let waited = now.saturating_sub(*self.since.get_or_insert(now));
        let left = self.whole.saturating_sub(waited);
        if left.is_zero() {
            return false;
        }
        let sleep = time.sleep(self.next.min(left));
        self.next = self.next.saturating_mul(2);
        matches!(select(sleep, client.disconnected()).await, Either::Left(_))
    }
}
