//! The HTTP API: routing, authentication, request parsing and error responses. Business rules live in `domain`.
//!
//! `http/edge.rs` assigns the request id, finds the route, authenticates the caller and calls one file of `endpoints/`.
//! That file parses the request, runs the use case and writes the response.

mod application;
mod endpoints;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gateway;
mod http;
mod live_services;
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
pub use live_services::{LiveServices, RoutedServices, WeakLiveServices};
pub use metrics_server::{Exposition, MetricsServer, MetricsSettings};
pub use openapi::openapi_document;
pub use stopper::Stopper;
