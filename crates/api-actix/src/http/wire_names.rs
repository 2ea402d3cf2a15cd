//! The literal names that existing clients expect, selected by configuration.

use actix_web::http::header::HeaderName;

static METADATA_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-tollgate-metadata"), HeaderName::from_static("x-openrouter-metadata")];

/// The literal names in responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WireNames {
    /// The names of the API contract: `native`, `vendor_a`, `vendor_b`, `service_metadata`.
    #[default]
    Interface,
    /// The names that existing client packages decode: `openrouter`, `anthropic`, `openai`, `openrouter_metadata`.
    OpenRouter,
}

/// The JSON shape of a stored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileShape {
    /// The service's own shape.
    Native,
    /// The shape of one vendor's files API.
    VendorA,
    /// The shape of another vendor's files API.
    VendorB,
}

impl WireNames {
    /// Returns the name of the service metadata member.
    pub(crate) fn service_metadata(self) -> &'static str {
        match self {
            Self::Interface => "service_metadata",
            Self::OpenRouter => "openrouter_metadata",
        }
    }

    /// Returns the value of `_shape`.
    pub(crate) fn shape(self, shape: FileShape) -> &'static str {
        match (self, shape) {
            (Self::Interface, FileShape::Native) => "native",
            (Self::Interface, FileShape::VendorA) => "vendor_a",
            (Self::Interface, FileShape::VendorB) => "vendor_b",
            (Self::OpenRouter, FileShape::Native) => "openrouter",
            (Self::OpenRouter, FileShape::VendorA) => "anthropic",
            (Self::OpenRouter, FileShape::VendorB) => "openai",
        }
    }

    /// Returns the request headers that ask for [`WireNames::service_metadata`] with the value `enabled`.
    pub(crate) fn metadata_headers(self) -> &'static [HeaderName] {
        match self {
            Self::Interface => &METADATA_HEADERS[..1],
            Self::OpenRouter => &METADATA_HEADERS,
        }
    }
}
