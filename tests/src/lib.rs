//! The test harness: starts the binary, sends HTTP requests to it, and simulates its providers.

mod binary;
mod http_client;
mod instance;
mod openapi;
mod postgres;
mod relay;
mod reply;
mod report;
mod server;
mod sqlite;
mod time;
mod upstream;
pub mod vendors;

pub use binary::folder as binary_folder;
pub use http_client::*;
pub use instance::*;
pub use relay::*;
pub use reply::*;
pub use report::*;
pub use server::*;
pub use sqlite::*;
pub use time::*;
pub use upstream::*;

/// Returns true for root, which alone can become another user.
///
/// # Errors
/// The user of this process cannot be read.
pub fn is_root() -> anyhow::Result<bool> {
    Ok(std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self")?) == 0)
}
