//! The signals of the operating system.

use std::convert::Infallible;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The number of `SIGXFSZ` on all supported Unix systems.
const SIGXFSZ: i32 = 25;

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
pub struct IgnoredSignals {
    hangup: Signal,
    user1: Signal,
    user2: Signal,
}

impl IgnoredSignals {
    /// Handles `SIGHUP`, `SIGUSR1` and `SIGUSR2` for the life of the process.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
        })
    }

    /// Logs each signal. Cancel-safe.
    pub async fn log_each(&mut self) -> Infallible {
        loop {
            let signal = tokio::select! {
                _ = self.hangup.recv() => "SIGHUP",
                _ = self.user1.recv() => "SIGUSR1",
                _ = self.user2.recv() => "SIGUSR2",
            };
            tracing::info!(signal, "signal ignored: the configuration is read only at start");
        }
    }
}

/// The signals that stop the process.
pub struct Shutdown {
    terminate: Signal,
    interrupt: Signal,
}

impl Shutdown {
    /// Handles `SIGTERM` and `SIGINT`.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Returns the name of the next signal. Cancel-safe.
    pub async fn next_signal(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
