//! Settings of the sender.

use std::path::PathBuf;
use std::time::Duration;

/// The settings of deliveries.
#[derive(Debug, Clone)]
pub struct BroadcastSettings {
    /// Longest time for one delivery, from name resolution to the end of the response.
    pub timeout: Duration,
    /// True if loopback, private and other internal addresses are allowed.
    pub allow_private_addresses: bool,
    /// The `user-agent` header.
    pub user_agent: String,
    /// The time after which an idle connection closes.
    pub pool_idle_timeout: Duration,
    /// A PEM file of authorities that are trusted beside the platform's, for the operator's collector only.
    pub operator_ca_file: Option<PathBuf>,
    /// The PEM files of a client certificate with its chain and of its key, for the operator's collector only: a
    /// destination of a workspace must not receive the operator's identity.
    pub operator_client_identity: Option<(PathBuf, PathBuf)>,
}

impl Default for BroadcastSettings {
    /// Ten seconds, public addresses only.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            allow_private_addresses: false,
            user_agent: concat!("tollgate/", env!("CARGO_PKG_VERSION")).to_owned(),
            pool_idle_timeout: Duration::from_secs(30),
            operator_ca_file: None,
            operator_client_identity: None,
        }
    }
}
