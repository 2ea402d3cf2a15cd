//! Errors of the server, without credentials.

use std::path::PathBuf;

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
