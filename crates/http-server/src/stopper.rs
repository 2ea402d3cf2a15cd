//! Graceful shutdown: no client loses a response to a request that it could still send.

use std::time::Duration;

use actix_web::dev::ServerHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::gate::Gate;
use super::registry::Connections;

/// A server without connections for this long has no clients and no health checks that could lose a request.
const UNUSED_PERIOD: Duration = Duration::from_mins(1);
/// The longest wait for handshakes in progress when the gate is shut, and for their connections to be accepted.
const ACCEPT_TIMEOUT: Duration = Duration::from_millis(250);

/// How to stop a server.
#[derive(Debug, Clone)]
pub struct StopSettings {
    /// The time during which responses carry `Connection: close` before the listener is closed.
    pub drain_period: Duration,
    /// The longest wait for requests in flight after that.
    pub timeout: Duration,
    /// Cancelled when the listener is closed: ends requests that wait for others.
    pub stopping: CancellationToken,
}

/// Stops a server in two steps: [`Self::drain`], then [`Self::close`]. Dropping it before `close` has completed ends the
/// server at once.
pub struct Stopper {
    connections: Connections,
    gate: Gate,
    server: ServerHandle,
    settings: StopSettings,
    /// Ends the server on drop.
    ended: DropGuard,
}

impl Stopper {
    /// Returns the stopper, with the signal that the server must end.
    pub(super) fn new(
        settings: StopSettings,
        connections: Connections,
        gate: Gate,
        server: ServerHandle,
    ) -> (Self, CancellationToken) {
        let ended = CancellationToken::new();
        (Self { connections, gate, server, settings, ended: ended.clone().drop_guard() }, ended)
    }

    /// Begins the drain: `/health/ready` returns 503 and every response carries `Connection: close`; new connections
    /// are still served. Resolves after the drain period, or earlier if no client has connected for a minute.
    /// Cancel-safe: a drain that has begun continues.
    pub async fn drain(&self) {
        self.connections.begin_drain();
        let counts = self.connections.counts();
        tracing::info!(
            drain_ms = millis(self.settings.drain_period),
            connections.open = counts.open(),
            connections.in_request = counts.in_request,
            "draining: not ready, connections close after their next response"
        );
        tokio::select! {
            () = sleep(self.settings.drain_period) => {}
            () = self.connections.unused_for(UNUSED_PERIOD) => {}
        }
    }

    /// Closes the listener after it has accepted all pending connections, closes idle connections, ends requests that
    /// wait for others, waits for the rest up to the shutdown timeout, and ends the server.
    pub async fn close(self) {
        let Self { connections, gate, server, settings, ended } = self;
        let StopSettings { drain_period, timeout, stopping } = settings;
        connections.begin_drain();
        stopping.cancel();
        let until = Instant::now() + timeout;
        gate.shut();
        let accepted = accept_pending(&connections, drain_period.min(ACCEPT_TIMEOUT));
        if timeout_at(until, accepted).await.is_err() {
            tracing::warn!("shutdown timeout passed, closing connections that wait to be accepted");
        }
        drop(gate);
        // The stop command is sent at once; the end of the server is awaited elsewhere.
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
                "shutdown timeout passed, closing connections"
            );
        }
        drop((stopped, ended));
    }
}

/// Waits until the connections in the accept queue are accepted. At the connection limit the queue may hold more
/// connections than counted here, and closing the listener would reset them.
async fn accept_pending(connections: &Connections, pause: Duration) {
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
