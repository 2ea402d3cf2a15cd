//! The composition root: the only place that selects adapters for ports.

mod background;
pub mod broadcast;
pub mod configuration_checks;
mod instance;
mod ledger;
mod metrics;
mod operator;
mod private;
mod probes;
mod process;
mod providers;
mod rate_limits;
mod routed;
mod sockets;
mod stages;
mod stores;

pub use background::Background;
pub use instance::{Instance, ServerSockets};
pub use ledger::{FOLD_WITHIN, SEGMENT_BYTES, fold_journals, forget_processes};
pub use metrics::ProcessMetrics;
pub use operator::SocketFile;
pub use private::PrivateApplication;
pub use probes::{StoreDisks, database_room};
pub use process::{ServerLock, Signals, handle_file_size_signal, prepare_descriptors};
pub use providers::{
    Upstreams, check_provider_connection, check_provider_credential, configured_endpoints, directory, minimal_rows,
    sandbox_models, single_provider,
};
pub use rate_limits::{RateLimits, check_rate_store, check_rate_store_files};
pub use routed::{Reloader, RoutedParts};
pub use sockets::SocketFolder;
pub use stores::{
    Blobs, STARTER_CATALOGUE, Schema, Stores, create_bucket, open_blobs, require_bucket, starter_rows, storage_settings,
};
