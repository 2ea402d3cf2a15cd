//! The formats of requests, answers, errors and catalogue rows: pure functions from values to JSON and back. No HTTP, no
//! runtime and no clock.
//!
//! | module | content |
//! |---|---|
//! | [`system_one`], [`openai`], [`gemini`], [`sglang`], [`chat`] | one folder a vendor: both halves of its format |
//! | [`provider`] | building blocks of the halves for providers |
//! | [`canonical`] | conversion between the canonical form and formats with fewer features |
//! | [`catalogue`] | the JSON of catalogue rows |
#![deny(missing_docs)]

pub mod canonical;
pub mod catalogue;
pub mod chat;
pub mod gemini;
pub mod openai;
pub mod provider;
pub mod sglang;
pub mod system_one;

use domain::routing::Wire;

use gemini::GeminiDecisions;
use openai::OpenAiDecisions;
use provider::{Defaults, ModelLocation, WireCodec};
use sglang::SglangDecisions;
use system_one::{ResponseWrapper, SystemOne};

/// Returns the codec of a wire. `None` if it takes several calls for one answer, or none.
pub fn codec(
    wire: Wire,
    model_location: ModelLocation,
    response_wrapper: ResponseWrapper,
) -> Option<Box<dyn WireCodec>> {
    Some(match wire {
        Wire::SystemOne => Box::new(SystemOne { model_location, response_wrapper }),
        Wire::OpenAiDecisions => Box::new(OpenAiDecisions { model_location }),
        Wire::GeminiDecisions => Box::new(GeminiDecisions { model_location }),
        Wire::SglangDecisions => Box::new(SglangDecisions { model_location }),
        Wire::ChatCompletions | Wire::Sandbox => return None,
    })
}

/// Returns the default path and header of a wire.
pub fn defaults(wire: Wire) -> Defaults {
    let decisions = Defaults { path: "decisions", auth_header: "authorization", auth_scheme: "Bearer" };
    match wire {
        Wire::SystemOne | Wire::Sandbox => Defaults { path: "systemone", ..decisions },
        Wire::OpenAiDecisions | Wire::SglangDecisions => decisions,
        Wire::GeminiDecisions => Defaults { auth_header: "x-goog-api-key", auth_scheme: "", ..decisions },
        Wire::ChatCompletions => Defaults { path: "chat/completions", ..decisions },
    }
}
