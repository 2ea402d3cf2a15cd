//! The composition root: the only place that selects adapters for ports.

mod background;
pub mod broadcast;
mod denied_changes;
mod descriptors;
mod endpoints;
mod instance;
mod ledger;
mod metrics;
mod price_check;
mod probes;
mod providers;
mod retention;
mod router;
mod server_lock;
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
pub use metrics::ProcessMetrics;
pub use price_check::price_warnings;
pub use providers::Upstreams;
pub use router::idle_options;
pub use server_lock::ServerLock;
pub use signals::{IgnoredSignals, Shutdown, outlive_file_size_limit};
pub use starter::{STARTER_CATALOGUE, starter_rows};
pub use stores::{Schema, Stores, storage_settings};
