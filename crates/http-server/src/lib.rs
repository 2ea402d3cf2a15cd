//! HTTP/1.1 connections over TCP and Unix sockets: one request is read and answered at a time, with a limit for every
//! state. The crate knows neither routes nor what is served.
//!
//! [`bind_tcp`] binds a socket, [`Listener::bind`] accepts from it, [`BoundServer::run`] serves it and returns the
//! [`Stopper`] that drains it.

mod body;
mod head_error;
mod listener;
mod registry;
mod response;
mod serve;
mod settings;
mod slots;
mod socket;
mod stopper;
mod transport;

pub use head_error::{HeadError, RejectHead};
pub use listener::{BoundServer, BoundSocket, Listener, bind_tcp, workers};
pub use registry::{ConnectionCounts, Connections};
pub use response::{COPIED_BODY, UntilWritten};
pub use settings::{ConnectionSettings, Preemption};
pub use socket::{ListenSocket, PeerCredentials};
pub use stopper::{StopSettings, Stopper};
