//! The HTTP API: routing, authentication, request parsing and error responses. Business rules live in `domain`.
//!
//! `app.rs` lists all endpoints. `http/edge.rs` assigns the request id, finds the route, authenticates the caller and
//! calls the handler of the route: one file of `endpoints/`, which parses the request, runs the use case and writes the
//! response.

mod app;
mod application;
pub mod detection;
mod endpoints;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gateway;
mod http;
mod metrics_server;
mod openapi;
mod operator;
mod rendered_catalogue;
mod rendered_openapi;
mod services;

pub use app::openapi_document;
pub use application::{Application, serve_operator};
pub use endpoints::status::{
    ConfiguredEndpoint, EndpointHealth, EndpointLimits, EndpointPrices, JournalStatus, LastError, ProcessStatus,
    ProviderHealth, ProviderState, ServerState, ServerStatus, Status, StoreStatus,
};
pub use endpoints::test_provider::ProviderTestReport;
pub use gateway::HttpSettings;
pub use http::access_log::{ACCESS_LOG_TARGET, AccessField, AccessLog, AccessValue, current_request_id};
pub use http::admission::AdmissionSettings;
pub use http::admission::InFlightCounts;
pub use http::admission::PROCESSING_COPIES;
pub use http::client::WireNames;
pub use http::recorder::{AdmissionBound, Answer, NoRecorder, Recorder};
pub use metrics_server::{Exposition, MetricsServer, MetricsSettings};
pub use operator::{OperatorActor, OperatorSocket};
pub use services::{EvidenceServices, LiveServices, RoutedServices, Services, WorkspaceServices};
