//! The list of formats, in both directions.

use domain::decision::{AssetPart, DecisionDraft, InvalidDecision};
use domain::routing::Wire;

use crate::client::{Body, BodyError, DecisionResponse, text};
use crate::gemini;
use crate::openai;
use crate::provider::{Defaults, ModelLocation, VendorCodec, WireCodec};
use crate::sglang;
use crate::system_one::{self, ResponseWrapper, SystemOne};

/// The format of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `state` and a map of questions.
    SystemOne,
    /// `input` and an array of `predicate | choice | score` questions.
    OpenAi,
    /// `input` and a map of questions.
    Gemini,
    /// `input` and an array of questions with `id` and `question`.
    Sglang,
}

/// A parsed request and its response format.
#[derive(Debug, Clone)]
pub struct ParsedRequest {
    /// The request in canonical form, not validated.
    pub draft: DecisionDraft,
    /// The format of the response.
    pub response_format: ResponseFormat,
}

/// The format of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseFormat {
    /// The contract's format: System One answers unchanged.
    Contract,
    /// System One's format, with the members that its client packages require.
    SystemOne,
    /// An array in question order. The generated names belong to unnamed questions.
    OpenAi(openai::client_request::GeneratedNames),
    /// A map of answers.
    Gemini,
    /// A map of answers and flat errors.
    Sglang,
}

impl ResponseFormat {
    /// Returns the format of the request.
    pub fn shape(&self) -> Shape {
        match self {
            Self::Contract | Self::SystemOne => Shape::SystemOne,
            Self::OpenAi(_) => Shape::OpenAi,
            Self::Gemini => Shape::Gemini,
            Self::Sglang => Shape::Sglang,
        }
    }
}

/// Converts the members of a body, and its further parts, to a request.
///
/// # Errors
/// The first violation, with its path in the body.
pub fn read(shape: Shape, body: &Body<'_>, parts: Vec<AssetPart>) -> Result<ParsedRequest, InvalidDecision> {
    let (draft, response_format) = match shape {
        Shape::SystemOne => (system_one::client_request::read(body, parts), ResponseFormat::SystemOne),
        Shape::OpenAi => {
            let (draft, generated_names) = openai::client_request::read(body)?;
            (draft, ResponseFormat::OpenAi(generated_names))
        }
        Shape::Gemini => (gemini::client_request::read(body)?, ResponseFormat::Gemini),
        Shape::Sglang => (sglang::client_request::read(body)?, ResponseFormat::Sglang),
    };
    Ok(ParsedRequest { draft, response_format })
}

/// Parses a complete body without further parts.
///
/// # Errors
/// The first violation.
pub fn read_bytes(shape: Shape, bytes: &[u8]) -> Result<ParsedRequest, BodyError> {
    let text = text(bytes)?;
    let body = match shape {
        Shape::SystemOne => Body::read_system_one(text),
        Shape::OpenAi | Shape::Gemini | Shape::Sglang => Body::read_any(text),
    };
    Ok(read(shape, &body?, Vec::new())?)
}

/// Writes the response in the format of the request.
pub fn write(response_format: &ResponseFormat, response: &DecisionResponse<'_>) -> String {
    match response_format {
        ResponseFormat::Contract => system_one::client_response::write(response),
        ResponseFormat::SystemOne => system_one::client_response::write_complete(response),
        ResponseFormat::OpenAi(generated_names) => openai::client_response::write(response, generated_names),
        ResponseFormat::Gemini => gemini::client_response::write(response),
        ResponseFormat::Sglang => sglang::client_response::write(response),
    }
}

/// The codec of OpenAI's wire.
pub const OPENAI: VendorCodec = VendorCodec {
    wire: Wire::OpenAiDecisions,
    model_location: ModelLocation::Body,
    write: openai::provider_request::write,
    read: openai::provider_response::read,
    read_error: None,
};

/// The codec of Gemini's wire.
pub const GEMINI: VendorCodec = VendorCodec {
    wire: Wire::GeminiDecisions,
    write: gemini::provider_request::write,
    read: gemini::provider_response::read,
    read_error: Some(gemini::errors::read),
    ..OPENAI
};

/// The codec of SGLang's wire.
pub const SGLANG: VendorCodec = VendorCodec {
    wire: Wire::SglangDecisions,
    write: sglang::provider_request::write,
    read: sglang::provider_response::read,
    ..OPENAI
};

/// The calls by which a provider of a wire answers.
pub enum Calls {
    /// One request and one response for all questions.
    Single(Box<dyn WireCodec>),
    /// Chat completions, several for one answer if necessary.
    Chat,
    /// None: this process answers.
    Local,
}

impl Calls {
    /// Returns the calls of a wire.
    pub fn of(wire: Wire, model_location: ModelLocation, response_wrapper: ResponseWrapper) -> Self {
        let vendor = |codec: VendorCodec| Self::Single(Box::new(VendorCodec { model_location, ..codec }));
        match wire {
            Wire::SystemOne => Self::Single(Box::new(SystemOne { model_location, response_wrapper })),
            Wire::OpenAiDecisions => vendor(OPENAI),
            Wire::GeminiDecisions => vendor(GEMINI),
            Wire::SglangDecisions => vendor(SGLANG),
            Wire::ChatCompletions => Self::Chat,
            Wire::Sandbox => Self::Local,
        }
    }
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
