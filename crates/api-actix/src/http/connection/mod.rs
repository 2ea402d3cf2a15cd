//! HTTP/1.1 connections: one request is read and answered at a time.

mod body;
mod deadline;
mod gate;
mod head_error;
mod listener;
mod log_limit;
mod registry;
mod response;
mod serve;
mod settings;
mod slots;
mod socket;
mod transport;

pub(crate) use gate::Gate;
pub(crate) use head_error::{HeadError, RejectHead};
pub(crate) use listener::Listener;
pub(crate) use log_limit::LogLimit;
pub use registry::{ConnectionCounts, Connections};
pub(crate) use response::COPIED_BODY;
pub use settings::ConnectionSettings;
pub(crate) use settings::Preemption;
