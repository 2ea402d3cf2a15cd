//! The control socket: commands ask the running servers of a database.
//!
//! Every server listens on a Unix socket in a folder beside the database that only its user may enter. A client sends
//! one line with a request in JSON, and the server answers with one JSON document. The socket carries no secret.

mod client;
mod handler;
mod listener;
mod status;

pub use client::{ControlClient, RunningServer};
pub use handler::{ServerIdentity, StatusHandler, StatusParts, test_endpoint};
pub use listener::{ControlHandler, ControlListener, ControlRequest, ProviderTestReport};
pub use status::{EndpointHealth, JournalStatus, LastError, ServerState, ServerStatus, StoreStatus};
