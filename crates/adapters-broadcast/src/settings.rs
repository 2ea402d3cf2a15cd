//! Settings of the sender.

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
