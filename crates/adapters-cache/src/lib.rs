//! Caching decorators over ports: data of every request is kept in memory and dropped when a change in the feed names
//! it.

mod destinations;
mod key_grants;
mod live_catalogue;
mod live_pauses;
mod presets;
mod shared_fills;
mod watcher;

pub use destinations::LiveDestinations;
pub use key_grants::{CachedKeyGrants, CachedPolicies};
pub use live_catalogue::LiveCatalogue;
pub use live_pauses::LivePauses;
pub use presets::CachedPresets;
pub use shared_fills::CacheStatus;
pub use watcher::{ChangeWatcher, Freshness, StalenessBounds};
