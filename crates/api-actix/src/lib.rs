//! HTTP and the error envelope, mapped onto the use cases of `domain`. Nothing is decided here.
//!
//! A request's way: `http/edge.rs` names it, finds its route, authenticates the caller and hands it to one file of
//! `endpoints/`, which extracts, converts, executes and views.

mod application;
mod endpoints;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gateway;
mod http;
mod metrics_server;
mod openapi;
mod stopper;
pub mod wires;

pub use application::{Application, HttpSettings};
pub use endpoints::destinations::{DestinationUseCases, DestinationView};
pub use endpoints::guardrails::{GuardrailUseCases, GuardrailVersionView, GuardrailView};
pub use gateway::Services;
pub use http::admission::InFlightCounts;
pub use http::admission_bound::{AdmissionBound, AdmissionSettings};
pub use http::connection::{ConnectionCounts, ConnectionSettings, Connections};
pub use http::recorder::{Answer, NoRecorder, Recorder};
pub use http::wire_names::WireNames;
pub use metrics_server::{Exposition, MetricsServer, MetricsSettings};
pub use openapi::openapi_document;
pub use stopper::Stopper;
