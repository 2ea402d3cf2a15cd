//! The outbound wires with one request and one answer, dialects included.

use domain::routing::Wire;
use wires::formats::{Calls, Shape};
pub use wires::formats::{GEMINI, OPENAI, SGLANG};
use wires::provider::{ModelLocation, WireCodec};
use wires::system_one::{ResponseWrapper, SystemOne};

/// Returns the codec of every wire, dialects included.
pub fn all() -> impl Iterator<Item = Box<dyn WireCodec>> {
    let wires =
        Wire::ALL.into_iter().filter_map(|wire| match Calls::of(wire, ModelLocation::Body, ResponseWrapper::None) {
            Calls::Single(codec) => Some(codec),
            Calls::Chat | Calls::Local => None,
        });
    wires.chain([WORKERS_AI, DATABRICKS].map(|dialect| Box::new(dialect) as Box<dyn WireCodec>))
}

pub const SYSTEM_ONE: SystemOne =
    SystemOne { model_location: ModelLocation::Body, response_wrapper: ResponseWrapper::None };
pub const WORKERS_AI: SystemOne =
    SystemOne { model_location: ModelLocation::Both, response_wrapper: ResponseWrapper::WorkersAi };
pub const DATABRICKS: SystemOne =
    SystemOne { model_location: ModelLocation::Path, response_wrapper: ResponseWrapper::Databricks };

/// Returns the outbound wire with the format of an inbound one.
pub fn of_shape(shape: Shape) -> &'static dyn WireCodec {
    match shape {
        Shape::SystemOne => &SYSTEM_ONE,
        Shape::OpenAi => &OPENAI,
        Shape::Gemini => &GEMINI,
        Shape::Sglang => &SGLANG,
    }
}
