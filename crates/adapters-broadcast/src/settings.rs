//! What the sender is told.

use std::time::Duration;

/// How deliveries go out.
#[derive(Debug, Clone)]
pub struct BroadcastSettings {
    /// Longest time for one delivery, from the name's look-up to the end of the answer.
    pub timeout: Duration,
    /// True where loopback, private and other addresses of the operator's own network may be delivered to.
    pub allow_private_addresses: bool,
    /// The `user-agent` header.
    pub user_agent: String,
    /// How long an idle connection is kept.
    pub pool_idle_timeout: Duration,
}

impl Default for BroadcastSettings {
    /// Ten seconds, public addresses only.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            allow_private_addresses: false,
            user_agent: concat!("tollgate/", env!("CARGO_PKG_VERSION")).to_owned(),
            pool_idle_timeout: Duration::from_secs(30),
        }
    }
}
