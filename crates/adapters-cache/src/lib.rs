//! Decorators over ports: what is read on every request is kept in memory, and given up when the change feed says so.

mod key_grants;
mod live_catalogue;
mod watcher;

pub use key_grants::CachedKeyGrants;
pub use live_catalogue::LiveCatalogue;
pub use watcher::ChangeWatcher;
