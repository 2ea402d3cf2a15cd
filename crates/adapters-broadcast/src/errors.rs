//! Errors of settings.

use std::path::PathBuf;

use http_client::HttpClientError;

/// Invalid settings.
#[derive(Debug, thiserror::Error)]
pub enum BroadcastError {
    /// A file of certificates cannot be used.
    #[error("the certificate file {} holds no usable certificate in PEM, or cannot be read", .0.display())]
    Certificates(PathBuf),
    /// The file of the client certificate's key cannot be used.
    #[error("the file of telemetry.otlp_client_key_file holds no unencrypted private key in PEM, or cannot be read")]
    ClientKey,
    /// The client certificate and the key do not belong together, or their kind is not supported.
    #[error("telemetry.otlp_client_cert_file and telemetry.otlp_client_key_file cannot be used together")]
    ClientIdentity(#[source] HttpClientError),
    /// The client cannot be built.
    #[error(transparent)]
    Client(HttpClientError),
}

impl From<HttpClientError> for BroadcastError {
    fn from(error: HttpClientError) -> Self {
        match error {
            HttpClientError::CaFile { path, .. }
            | HttpClientError::EmptyCaFile(path)
            | HttpClientError::ClientCertificate(path) => Self::Certificates(path),
            HttpClientError::ClientKey => Self::ClientKey,
            HttpClientError::ClientIdentity(_) => Self::ClientIdentity(error),
            other => Self::Client(other),
        }
    }
}
