//! Caching decorators over ports: data of every request is kept in memory and dropped when a change in the feed names
//! it.

mod changed;
mod destinations;
mod key_grants;
mod live_catalogue;
mod policies;
mod shared_fills;
mod status;
mod watcher;

pub use destinations::LiveDestinations;
pub use key_grants::CachedKeyGrants;
pub use live_catalogue::LiveCatalogue;
pub use policies::CachedPolicies;
pub use status::CacheStatus;
pub use watcher::{ChangeWatcher, Freshness, StalenessBounds};
