//! The control socket: commands ask the running servers of a database.
//!
//! Every server listens on a Unix socket in a folder beside the database that only its user may enter. A client sends
//! one line with a request in JSON, and the server answers with one JSON document. The socket carries no secret.

mod client;
mod handler;
mod listener;

pub use api_actix::{
    EndpointHealth, LastError, ProviderHealth, ProviderTestReport, ServerState, ServerStatus, StoreStatus,
};
pub use client::{ControlClient, RunningServer};
pub use listener::{ControlHandler, ControlListener, ControlRequest};
