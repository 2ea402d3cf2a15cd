//! The address of the server, and the rules of its use.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A user and a password; `Debug` hides both.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The user; `None` is the server's default user.
    pub username: Option<String>,
    /// The password.
    pub password: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

/// The address of a server, and the rules of its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValkeySettings {
    /// A host name or an IP address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The number of the database.
    pub database: i64,
    /// True if the connection is encrypted.
    pub is_tls: bool,
    /// A PEM file of certificate authorities that are trusted besides the platform's.
    pub ca_file: Option<PathBuf>,
    /// The PEM files of a client certificate with its chain and of its key.
    pub client_identity: Option<(PathBuf, PathBuf)>,
    /// The credentials.
    pub credentials: Credentials,
    /// The beginning of every key.
    pub key_prefix: String,
    /// The longest time that a request waits for a reply.
    pub timeout: Duration,
}

impl ValkeySettings {
    /// Returns the host, port and database for messages.
    pub fn name(&self) -> String {
        let scheme = if self.is_tls { "rediss" } else { "redis" };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{scheme}://{host}:{}/{}", self.port, self.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_and_name_hide_credentials() {
        let text = |secret: &str| Some(secret.to_owned());
        let settings = ValkeySettings {
            host: "::1".to_owned(),
            port: 6379,
            database: 3,
            is_tls: true,
            ca_file: None,
            client_identity: None,
            credentials: Credentials { username: text("very-secret"), password: text("very-secret") },
            key_prefix: "t:".to_owned(),
            timeout: Duration::from_millis(50),
        };
        assert_eq!(settings.name(), "rediss://[::1]:6379/3");
        assert!(!format!("{settings:?}").contains("very-secret"));
    }
}
