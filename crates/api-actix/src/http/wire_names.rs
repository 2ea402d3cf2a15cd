//! The literal names that existing clients expect, chosen by configuration.

use actix_web::http::header::HeaderName;

static METADATA_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-tollgate-metadata"), HeaderName::from_static("x-openrouter-metadata")];

/// Which literal names answers carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WireNames {
    /// Those of the interface: `native`, `vendor_a`, `vendor_b`, `service_metadata`.
    #[default]
    Interface,
    /// Those that existing client packages decode: `openrouter`, `anthropic`, `openai`, `openrouter_metadata`.
    OpenRouter,
}

/// In which shape a stored file is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileShape {
    /// The service's own.
    Native,
    /// The files API of one vendor.
    VendorA,
    /// The files API of another.
    VendorB,
}

impl WireNames {
    /// The envelope's member for what is told on request.
    pub(crate) fn service_metadata(self) -> &'static str {
        match self {
            Self::Interface => "service_metadata",
            Self::OpenRouter => "openrouter_metadata",
        }
    }

    /// The value of `_shape`.
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

    /// The request headers that, set to `enabled`, ask for [`WireNames::service_metadata`].
    pub(crate) fn metadata_headers(self) -> &'static [HeaderName] {
        match self {
            Self::Interface => &METADATA_HEADERS[..1],
            Self::OpenRouter => &METADATA_HEADERS,
        }
    }
}
