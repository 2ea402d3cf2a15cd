//! Errors of the server, without credentials, the status of the shared counts, and log lines about outages.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use thiserror::Error;

/// The longest text of a server in a message, in characters.
const MAX_TEXT: usize = 200;

/// The advice for a server that presents a certificate as `openssl req -x509` makes it without options.
const AUTHORITY_AS_SERVER: &str =
    "the server's certificate is an authority (CA:TRUE): create one with basicConstraints=critical,CA:FALSE";

/// A server that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValkeyError {
    /// The file of certificate authorities cannot be read.
    #[error("the file {} of rate_limits.ca_file cannot be read: {reason}", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The client certificate or its key cannot be used.
    #[error("rate_limits.client_cert_file and rate_limits.client_key_file cannot be used: {0}")]
    ClientIdentity(String),
    /// The TLS client cannot be built.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// The server rejects the credentials.
    #[error(
        "{server} rejects the user or the password ({reason}): check rate_limits.username and the password that \
         rate_limits.password names"
    )]
    Credentials {
        /// The server.
        server: String,
        /// The reason.
        reason: String,
    },
    /// The user may not run the commands.
    #[error(
        "{server} does not permit a command ({reason}): the user needs the commands EVALSHA, EVAL, GET, SET and TIME \
         on keys that begin with tollgate:rates:"
    )]
    Permission {
        /// The server.
        server: String,
        /// The reason.
        reason: String,
    },
    /// The server does not answer as it must.
    #[error("{server} cannot be used: {reason}")]
    Unusable {
        /// The server.
        server: String,
        /// The reason.
        reason: String,
    },
}

impl ValkeyError {
    pub(crate) fn new(server: &str, error: &RedisError) -> Self {
        let (server, reason) = (server.to_owned(), bounded(&error.to_string()));
        match (error.kind(), error.code()) {
            (ErrorKind::AuthenticationFailed, _) | (_, Some("NOAUTH" | "WRONGPASS")) => {
                Self::Credentials { server, reason }
            }
            (ErrorKind::Server(ServerErrorKind::NoPerm), _) => Self::Permission { server, reason },
            // A command within a script has the general error code.
            _ if reason.contains("The user executing the script") => Self::Permission { server, reason },
            _ if reason.contains("CaUsedAsEndEntity") => Self::unusable(&server, AUTHORITY_AS_SERVER),
            _ => Self::Unusable { server, reason },
        }
    }

    pub(crate) fn unusable(server: &str, reason: impl Into<String>) -> Self {
        Self::Unusable { server: server.to_owned(), reason: reason.into() }
    }

    /// Returns true if the server may answer better without a change of the configuration.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(self, Self::Unusable { .. })
    }
}

/// Returns a text of the server on one line, cut to a bounded length.
fn bounded(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).take(MAX_TEXT).collect()
}

/// The status of the shared counts, for metrics and readiness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateStoreStatus {
    /// The last error while the server is not used; `None` while it is.
    pub outage: Option<String>,
    /// Outages since the start.
    pub outages: u64,
    /// Requests that this process decided by its share of the limits.
    pub decided_locally: u64,
    /// Requests that were rejected because the server was not used.
    pub rejected: u64,
    /// Corrections of tokens that the server did not confirm.
    pub lost_corrections: u64,
}

/// Counts events since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) outages: Counter,
    pub(crate) decided_locally: Counter,
    pub(crate) rejected: Counter,
    pub(crate) lost_corrections: Counter,
}

/// A counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The shortest interval between two warnings.
const EVERY: Duration = Duration::from_mins(1);

/// Limits the warnings about outages to one a minute, and announces the end of an outage that was logged.
#[derive(Debug, Default)]
pub(crate) struct OutageLog {
    warned_at: Option<Duration>,
    is_announced: bool,
}

impl OutageLog {
    /// Logs an outage, unless a warning was logged in the last minute.
    pub(crate) fn warn(&mut self, server: &str, error: &str, on_failure: &'static str, now: Duration) {
        if !self.is_due(now) {
            return;
        }
        tracing::warn!(server, error, on_failure, "shared rate limits unavailable");
    }

    /// Logs the end of an outage that was logged.
    pub(crate) fn recover(&mut self, server: &str) {
        if std::mem::take(&mut self.is_announced) {
            tracing::info!(server, "shared rate limits available");
        }
    }

    fn is_due(&mut self, now: Duration) -> bool {
        if self.warned_at.is_some_and(|at| now.saturating_sub(at) < EVERY) {
            return false;
        }
        self.warned_at = Some(now);
        self.is_announced = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warning_is_due_once_a_minute() {
        let mut log = OutageLog::default();
        let seconds = [0, 1, 59, 60, 61, 119, 120, 500];
        let due: Vec<u64> = seconds.into_iter().filter(|at| log.is_due(Duration::from_secs(*at))).collect();
        assert_eq!(due, [0, 60, 120, 500]);
    }
}
