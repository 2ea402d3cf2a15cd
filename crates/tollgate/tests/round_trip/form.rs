//! The formats of requests and responses that both sides support.

use api_actix::wires::dispatch::{Entry, ResponseFormat};
use api_actix::wires::openai::request::GeneratedNames;
use wires::gemini::GeminiDecisions;
use wires::openai::OpenAiDecisions;
use wires::provider::{ModelLocation, WireCodec};
use wires::sglang::SglangDecisions;
use wires::system_one::{ResponseWrapper, SystemOne};

/// The formats that exist on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    SystemOne,
    OpenAi,
    Gemini,
    Sglang,
}

impl Form {
    pub fn codec(self) -> &'static dyn WireCodec {
        const OPENAI: OpenAiDecisions = OpenAiDecisions { model_location: ModelLocation::Body };
        const GEMINI: GeminiDecisions = GeminiDecisions { model_location: ModelLocation::Body };
        const SGLANG: SglangDecisions = SglangDecisions { model_location: ModelLocation::Body };
        const SYSTEM_ONE: SystemOne =
            SystemOne { model_location: ModelLocation::Body, response_wrapper: ResponseWrapper::None };
        match self {
            Self::SystemOne => &SYSTEM_ONE,
            Self::OpenAi => &OPENAI,
            Self::Gemini => &GEMINI,
            Self::Sglang => &SGLANG,
        }
    }

    pub fn entry(self) -> Entry {
        match self {
            Self::SystemOne => Entry::Contract,
            Self::Gemini => Entry::Gemini,
            Self::OpenAi | Self::Sglang => Entry::AnyShape,
        }
    }

    pub fn response_format(self) -> ResponseFormat {
        match self {
            Self::SystemOne => ResponseFormat::Contract,
            Self::OpenAi => ResponseFormat::OpenAi(GeneratedNames::default()),
            Self::Gemini => ResponseFormat::Gemini,
            Self::Sglang => ResponseFormat::Sglang,
        }
    }
}
