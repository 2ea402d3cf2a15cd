//! The composition root: the only place that knows which adapter stands behind which port.

mod background;
pub mod broadcast;
mod descriptors;
mod endpoints;
mod instance;
mod ledger;
mod metrics;
mod presence;
mod price_check;
mod probes;
mod providers;
mod refusals;
mod retention;
mod router;
mod services;
mod signals;
mod starter;
mod stores;
mod throttling;

pub use background::Background;
pub use descriptors::prepare_descriptors;
pub use endpoints::{configured as configured_endpoints, directory, minimal_rows};
pub use instance::{Instance, wire_names};
pub use ledger::{forget_processes, settle_journals};
pub use metrics::Measures;
pub use presence::Presence;
pub use price_check::price_warnings;
pub use providers::Upstreams;
pub use router::idle_options;
pub use signals::{IgnoredSignals, Shutdown, outlive_file_size_limit};
pub use starter::{STARTER_CATALOGUE, starter_rows};
pub use stores::{Schema, Stores};
