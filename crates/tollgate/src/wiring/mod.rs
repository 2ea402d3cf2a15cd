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
pub use ledger::{fold_journals, forget_processes};
pub use metrics::ProcessMetrics;
pub use price_check::price_warnings;
pub use providers::Upstreams;
pub use router::idle_options;
pub use server_lock::ServerLock;
pub use signals::{IgnoredSignals, Shutdown, handle_file_size_signal};
pub use starter::{STARTER_CATALOGUE, starter_rows};
pub use stores::{Schema, Stores, storage_settings};
