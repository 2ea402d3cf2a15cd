//! What the operating system tells the process.

use std::convert::Infallible;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The number of `SIGXFSZ` on every Unix that this service knows.
const SIGXFSZ: i32 = 25;

/// Takes over the signal of a file that outgrows the process's limit: its default is death, but a write that fails is
/// an error that can be told. Lasts as long as the process.
///
/// # Errors
/// The signal cannot be taken over.
pub fn outlive_file_size_limit() -> std::io::Result<()> {
    // The handler stays when its listener is dropped.
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}

/// The signals whose default is the end of the process and which mean nothing to a server.
pub struct IgnoredSignals {
    hangup: Signal,
    user1: Signal,
    user2: Signal,
}

impl IgnoredSignals {
    /// Takes over `SIGHUP`, `SIGUSR1` and `SIGUSR2`, for as long as the process lives.
    ///
    /// # Errors
    /// A signal cannot be taken over.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
        })
    }

    /// Logs a line for each of them. Cancel-safe.
    pub async fn log_each(&mut self) -> Infallible {
        loop {
            let signal = tokio::select! {
                _ = self.hangup.recv() => "SIGHUP",
                _ = self.user1.recv() => "SIGUSR1",
                _ = self.user2.recv() => "SIGUSR2",
            };
            tracing::info!(signal, "signal ignored: the configuration is read at the start only");
        }
    }
}

/// Waits for somebody who wants the process to end.
pub struct Shutdown {
    terminate: Signal,
    interrupt: Signal,
}

impl Shutdown {
    /// Takes over `SIGTERM` and `SIGINT`.
    ///
    /// # Errors
    /// A signal cannot be taken over.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Returns the name of the next signal. Cancel-safe.
    pub async fn asked(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
