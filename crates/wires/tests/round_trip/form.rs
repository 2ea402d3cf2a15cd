//! The two halves of each format.

use wires::formats::{GEMINI, OPENAI, ResponseFormat, SGLANG, Shape};
use wires::openai::client_request::GeneratedNames;
use wires::provider::{ModelLocation, WireCodec};
use wires::system_one::{ResponseWrapper, SystemOne};

pub fn codec(shape: Shape) -> &'static dyn WireCodec {
    const SYSTEM_ONE: SystemOne =
        SystemOne { model_location: ModelLocation::Body, response_wrapper: ResponseWrapper::None };
    match shape {
        Shape::SystemOne => &SYSTEM_ONE,
        Shape::OpenAi => &OPENAI,
        Shape::Gemini => &GEMINI,
        Shape::Sglang => &SGLANG,
    }
}

pub fn response_format(shape: Shape) -> ResponseFormat {
    match shape {
        Shape::SystemOne => ResponseFormat::Contract,
        Shape::OpenAi => ResponseFormat::OpenAi(GeneratedNames::default()),
        Shape::Gemini => ResponseFormat::Gemini,
        Shape::Sglang => ResponseFormat::Sglang,
    }
}
