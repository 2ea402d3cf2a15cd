//! Stops a server so that no client loses a request that it was entitled to send.

use std::time::Duration;

use actix_web::dev::ServerHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::DropGuard;

use crate::http::connection::{Connections, Gate};

/// A server without a connection for so long has no clients and no health checks whose next request matters.
const UNUSED: Duration = Duration::from_mins(1);
/// How long handshakes that had begun when the gate was shut may take, and connections to be accepted.
const LAST_ACCEPTS: Duration = Duration::from_millis(250);

/// Stops an [`Application`](crate::Application) in two steps: [`Self::drain`], then [`Self::close`]. Dropped before the
/// end of the second, it ends the server at once.
pub struct Stopper {
    pub(crate) connections: Connections,
    pub(crate) gate: Gate,
    pub(crate) server: ServerHandle,
    pub(crate) drain_period: Duration,
    pub(crate) timeout: Duration,
    /// Ends the server where it is dropped.
    pub(crate) ended: DropGuard,
}

impl Stopper {
    /// From now on `/health/ready` answers 503 and every answer carries `Connection: close`, while new connections are
    /// accepted and served. Resolves after the drain period; sooner only where nobody has connected for a minute.
    /// Cancel-safe: what has begun goes on.
    pub async fn drain(&self) {
        self.connections.begin_drain();
        let counts = self.connections.counts();
        tracing::info!(
            drain_ms = millis(self.drain_period),
            connections.open = counts.open(),
            connections.in_request = counts.in_request,
            "draining: not ready, connections close after their next answer"
        );
        tokio::select! {
            () = sleep(self.drain_period) => {}
            () = self.connections.unused_for(UNUSED) => {}
        }
    }

    /// Closes the listener once the connections that reached it are accepted, closes idle connections, waits for the
    /// others within the shutdown timeout, and ends the server.
    pub async fn close(self) {
        let Self { connections, gate, server, drain_period, timeout, ended } = self;
        connections.begin_drain();
        let until = Instant::now() + timeout;
        gate.shut();
        let accepted = accept_the_last(&connections, drain_period.min(LAST_ACCEPTS));
        if timeout_at(until, accepted).await.is_err() {
            tracing::warn!("shutdown timeout passed, connections that wait to be accepted are cut off");
        }
        drop(gate);
        // Sent at once; the server's end is awaited elsewhere.
        let stopped = server.stop(true);
        let counts = connections.counts();
        tracing::info!(
            connections.idle = counts.idle,
            connections.in_request = counts.in_request + counts.reading_head + counts.waiting,
            timeout_ms = millis(timeout),
            "listener closed, waiting for requests in flight"
        );
        connections.close_idle();
        if timeout_at(until, connections.closed()).await.is_err() {
            let counts = connections.counts();
            tracing::warn!(
                connections.open = counts.open(),
                connections.in_request = counts.in_request,
                "shutdown timeout passed, connections are cut off"
            );
        }
        drop((stopped, ended));
    }
}

/// Waits until the connections that the system has let in are accepted. Where all places are taken, more may wait in the
/// system's queue than are known here, and closing the listener would reset them.
async fn accept_the_last(connections: &Connections, pause: Duration) {
    loop {
        let waited = connections.waiting() > 0;
        sleep(pause).await;
        if !waited && connections.waiting() == 0 {
            return;
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
