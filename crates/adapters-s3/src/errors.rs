//! Errors in the settings.

use std::path::PathBuf;

use domain::error::StoreError;
use http_client::HttpClientError;

/// A store that cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum S3Error {
    /// The certificate authorities cannot be read.
    #[error("the certificate authorities in {path} cannot be read")]
    CaFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file of certificate authorities has none.
    #[error("{0} contains no certificate authority")]
    EmptyCaFile(PathBuf),
    /// No certificate authority is known.
    #[error(
        "no certificate authority is known on this machine; set blobs.ca_file, or install the system's authorities"
    )]
    NoAuthorities,
    /// The client cannot be built.
    #[error(transparent)]
    Client(HttpClientError),
    /// The prefix is not a valid beginning of names.
    #[error("the prefix of the bucket is invalid: it must have no empty, . or .. segment and no control character")]
    Prefix,
    /// The bucket cannot be used.
    #[error("the bucket cannot be used: {0}")]
    Bucket(String),
    /// The bucket cannot be looked up.
    #[error("the bucket cannot be looked up")]
    LookUp(#[source] StoreError),
    /// The bucket cannot be created.
    #[error("the bucket cannot be created: {0}")]
    Create(String),
    /// The client rejects the settings.
    #[error("the settings of the object store are invalid: {0}")]
    Settings(String),
}

impl From<HttpClientError> for S3Error {
    fn from(error: HttpClientError) -> Self {
        match error {
            HttpClientError::CaFile { path, source } => Self::CaFile { path, source },
            HttpClientError::EmptyCaFile(path) => Self::EmptyCaFile(path),
            other => Self::Client(other),
        }
    }
}
