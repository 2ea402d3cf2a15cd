//! Decisions: questions about a state, answered by a model.

mod broadcast;
mod client;
#[expect(clippy::module_inception, reason = "the module defines the type Decision")]
mod decision;
mod draft;
mod errors;
mod explain_guardrail;
mod get_generation;
mod meter_tokens;
mod metrics;
mod preview;
mod provider;
mod request;
mod settings;
mod submit;
mod test_provider;

pub use broadcast::*;
pub use client::*;
pub use decision::*;
pub use draft::*;
pub use errors::*;
pub use explain_guardrail::*;
pub use get_generation::*;
pub use meter_tokens::*;
pub use metrics::*;
pub(crate) use preview::RequestPreview;
pub use provider::*;
pub use request::*;
pub use settings::*;
pub use submit::*;
pub use test_provider::*;

pub use crate::pricing::ReportedUsage;
pub use crate::question::*;
pub use crate::routing::RoutingFunnel;
pub use crate::usage::{RequestLabels, UnknownUsage};
