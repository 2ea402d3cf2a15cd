//! Stops a server: first it takes no new connections, then it drains those that it has.

use std::io;
#[cfg(unix)]
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use socket2::Socket;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::registry::Connections;
use super::socket::ListenSocket;

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

/// A second handle of a listening socket.
///
/// Closing a socket resets the connections in its accept queue, including their requests. Therefore new connections are
/// blocked first, pending ones are accepted, and then the socket is closed.
#[derive(Debug)]
pub(super) struct Gate {
    socket: Socket,
    /// The path of a Unix socket.
    path: Option<PathBuf>,
}

impl Gate {
    pub(super) fn new(listener: &ListenSocket) -> io::Result<Self> {
        match listener {
            ListenSocket::Tcp(listener) => Ok(Self { socket: listener.try_clone()?.into(), path: None }),
            #[cfg(unix)]
            ListenSocket::Unix(listener) => {
                let path = listener.local_addr()?.as_pathname().map(Path::to_owned);
                Ok(Self { socket: listener.try_clone()?.into(), path })
            }
        }
    }

    /// Makes the system ignore connection attempts. Clients retry after a second and find a closed port; handshakes in
    /// progress complete. Does nothing if the system does not support it. A Unix socket loses its path.
    pub(super) fn shut(&self) {
        let shut = match &self.path {
            Some(path) => std::fs::remove_file(path),
            None => ignore_new_connections(&self.socket),
        };
        if let Err(error) = shut {
            tracing::debug!(%error, "listen queue not closed before the listener");
        }
    }
}

/// Drops only the first segment of a handshake: SYN without ACK in byte 13 of the TCP header.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn ignore_new_connections(socket: &Socket) -> io::Result<()> {
    use socket2::SockFilter;
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    socket.attach_filter(&[
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS),
        SockFilter::new(AND, 0, 0, SYN | ACK),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ])
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn ignore_new_connections(_: &Socket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
