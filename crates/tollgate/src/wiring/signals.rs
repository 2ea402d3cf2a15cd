//! The signals of the operating system.

use std::convert::Infallible;
use std::future::poll_fn;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The number of `SIGXFSZ` on all supported Unix systems.
const SIGXFSZ: i32 = 25;

/// The numbers of `SIGVTALRM` and `SIGPROF` on all supported Unix systems.
const SIGVTALRM: i32 = 26;
const SIGPROF: i32 = 27;

/// Handles the signal for exceeding the file size limit: its default kills the process, while a failed write can be
/// reported. The handler stays for the life of the process.
///
/// # Errors
/// The handler cannot be installed.
pub fn handle_file_size_signal() -> std::io::Result<()> {
    // The handler stays installed after its listener is dropped.
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}

/// Signals that kill a process by default and have no meaning for a server.
pub struct IgnoredSignals(Vec<(&'static str, Signal)>);

impl IgnoredSignals {
    /// Handles the signals for the life of the process.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn listen() -> std::io::Result<Self> {
        let signals = [
            ("SIGUSR1", SignalKind::user_defined1()),
            ("SIGUSR2", SignalKind::user_defined2()),
            ("SIGALRM", SignalKind::alarm()),
            ("SIGIO", SignalKind::io()),
            ("SIGVTALRM", SignalKind::from_raw(SIGVTALRM)),
            ("SIGPROF", SignalKind::from_raw(SIGPROF)),
        ];
        let listened = signals.into_iter().map(|(name, kind)| Ok((name, signal(kind)?)));
        Ok(Self(listened.collect::<std::io::Result<_>>()?))
    }

    /// Logs each signal. Cancel-safe.
    pub async fn log_each(&mut self) -> Infallible {
        loop {
            let signal = next_of(&mut self.0).await;
            tracing::info!(signal, "signal ignored: SIGTERM stops the server, SIGHUP reloads the configuration");
        }
    }
}

/// The signal that asks for a reload of the configuration.
pub struct Hangup(Signal);

impl Hangup {
    /// Handles `SIGHUP` for the life of the process.
    ///
    /// # Errors
    /// The handler cannot be installed.
    pub fn listen() -> std::io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }

    /// Waits for the next `SIGHUP`; several at once count as one. Cancel-safe.
    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}

/// The signals that stop the process.
pub struct Shutdown(Vec<(&'static str, Signal)>);

impl Shutdown {
    /// Handles `SIGTERM`, `SIGINT` and `SIGQUIT`.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn listen() -> std::io::Result<Self> {
        let signals = [
            ("SIGTERM", SignalKind::terminate()),
            ("SIGINT", SignalKind::interrupt()),
            ("SIGQUIT", SignalKind::quit()),
        ];
        let listened = signals.into_iter().map(|(name, kind)| Ok((name, signal(kind)?)));
        Ok(Self(listened.collect::<std::io::Result<_>>()?))
    }

    /// Returns the name of the next signal. Cancel-safe.
    pub async fn next_signal(&mut self) -> &'static str {
        next_of(&mut self.0).await
    }
}

/// Returns the name of the next of several signals. Cancel-safe.
async fn next_of(signals: &mut [(&'static str, Signal)]) -> &'static str {
    poll_fn(|cx| {
        let received = signals.iter_mut().find_map(|(name, signal)| signal.poll_recv(cx).is_ready().then_some(*name));
        received.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}
