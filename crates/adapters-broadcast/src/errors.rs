//! Errors of settings and connections.

use std::path::PathBuf;

/// Invalid settings.
#[derive(Debug, thiserror::Error)]
pub enum BroadcastError {
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// A file of certificates cannot be used.
    #[error("the certificate file {} holds no usable certificate in PEM, or cannot be read", .0.display())]
    Certificates(PathBuf),
    /// The file of the client certificate's key cannot be used.
    #[error("the file of telemetry.otlp_client_key_file holds no unencrypted private key in PEM, or cannot be read")]
    ClientKey,
    /// The client certificate and the key do not belong together, or their kind is not supported.
    #[error("telemetry.otlp_client_cert_file and telemetry.otlp_client_key_file cannot be used together")]
    ClientIdentity(#[source] rustls::Error),
    /// The user agent is no valid header value.
    #[error("the user agent is not a valid header value")]
    UserAgent,
}

/// An address that must not be dialled.
#[derive(Debug, thiserror::Error)]
#[error("the destination address is not public")]
pub(crate) struct ForbiddenAddress;

/// A name without any address.
#[derive(Debug, thiserror::Error)]
#[error("the destination host cannot be resolved")]
pub(crate) struct UnresolvedName;
