//! Settings of the sender, and errors in them.

use std::path::PathBuf;
use std::time::Duration;

use http_client::HttpClientError;
use http_client::body::BoxError;

/// The settings of deliveries.
#[derive(Debug, Clone)]
pub struct BroadcastSettings {
    /// Longest time for one delivery, from name resolution to the end of the response.
    pub timeout: Duration,
    /// True if loopback, private and other internal addresses are allowed.
    pub allow_private_addresses: bool,
    /// A PEM file of authorities that are trusted beside the platform's, for the operator's collector only.
    pub operator_ca_file: Option<PathBuf>,
    /// The PEM files of a client certificate with its chain and of its key, for the operator's collector only: a
    /// destination of a workspace must not receive the operator's identity.
    pub operator_client_identity: Option<(PathBuf, PathBuf)>,
}

impl Default for BroadcastSettings {
    /// Ten seconds, public addresses only.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            allow_private_addresses: false,
            operator_ca_file: None,
            operator_client_identity: None,
        }
    }
}

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
    ClientIdentity(#[source] BoxError),
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
            HttpClientError::ClientIdentity(source) => Self::ClientIdentity(source.into()),
            other => Self::Client(other),
        }
    }
}
