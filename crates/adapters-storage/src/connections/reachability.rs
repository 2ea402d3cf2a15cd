//! Reconnects with back-off while a server does not respond.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The pause after the first failure. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Whether a server responds. All pools of a database share it.
#[derive(Debug, Default)]
pub(crate) struct Reachability(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Failures since the last success.
    failures: u32,
    /// The time before which no connection is attempted after a failure.
    retry_at: Option<Instant>,
    /// True while a connection is attempted after a failure. All others fail meanwhile.
    is_probing: bool,
    /// The number of failures that ended open connections.
    losses: u64,
}

impl Reachability {
    /// Begins an attempt to connect. Returns `None` after a failure, if it is too early or another attempt is under way.
    pub(super) fn begin(self: &Arc<Self>) -> Option<ConnectAttempt> {
        let mut state = self.lock();
        let is_probe = state.failures > 0;
        if is_probe {
            let is_early = state.retry_at.is_some_and(|at| Instant::now() < at);
            if state.is_probing || is_early {
                return None;
            }
            state.is_probing = true;
        }
        drop(state);
        Some(ConnectAttempt { reachability: Arc::clone(self), is_probe, is_over: false })
    }

    /// Records that an open connection got no response: other connections that were open then are probably lost, too.
    pub(super) fn lost(&self) {
        let mut state = self.lock();
        state.losses += 1;
        state.failed();
    }

    /// Records that an attempt to connect takes long. It goes on, and until it succeeds others follow one at a time.
    pub(super) fn delayed(&self) {
        self.lock().failed();
    }

    /// Returns the number of losses. A connection that was idle before the last one is not used again.
    pub(super) fn losses(&self) -> u64 {
        self.lock().losses
    }

    /// Records a response.
    pub(super) fn responded(&self) {
        let mut state = self.lock();
        (state.failures, state.retry_at) = (0, None);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn failed(&mut self) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.retry_at = Some(Instant::now() + pause);
    }
}

/// An attempt to connect. One that is dropped without a result counts as failed if it followed a failure.
#[derive(Debug)]
pub(super) struct ConnectAttempt {
    reachability: Arc<Reachability>,
    is_probe: bool,
    is_over: bool,
}

impl ConnectAttempt {
    /// Returns true if an earlier failure was not followed by a success.
    pub(super) fn is_probe(&self) -> bool {
        self.is_probe
    }

    pub(super) fn succeeded(mut self) {
        self.is_over = true;
        self.reachability.responded();
    }

    pub(super) fn failed(mut self) {
        self.is_over = true;
        self.reachability.lock().failed();
    }
}

impl Drop for ConnectAttempt {
    fn drop(&mut self) {
        if self.is_probe {
            let mut state = self.reachability.lock();
            state.is_probing = false;
            if !self.is_over {
                state.failed();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_follow_failures_one_at_a_time_with_growing_pauses() {
        let server = Arc::new(Reachability::default());
        let (one, two) = (server.begin().unwrap(), server.begin().unwrap());
        assert!(!one.is_probe() && !two.is_probe(), "connections are opened at once while the server responds");
        one.failed();
        drop(two);
        let mut pause = FIRST_PAUSE;
        for _ in 0..8 {
            advance(pause.saturating_sub(Duration::from_millis(1))).await;
            assert!(server.begin().is_none(), "too early");
            advance(Duration::from_millis(1)).await;
            let probe = server.begin().unwrap();
            assert!(probe.is_probe() && server.begin().is_none(), "one probe at a time");
            probe.failed();
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        advance(LONGEST_PAUSE).await;
        drop(server.begin().unwrap());
        assert!(server.begin().is_none(), "a dropped probe counts as failed");
        advance(LONGEST_PAUSE).await;
        server.begin().unwrap().succeeded();
        assert!(!server.begin().unwrap().is_probe());
    }
}
