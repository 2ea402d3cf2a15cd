//! The settings of the store, and errors in them.

use std::path::PathBuf;
use std::time::Duration;

use domain::error::StoreError;
use domain::secret::SecretString;
use http_client::HttpClientError;

/// The location of the bucket, and the terms of its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Settings {
    /// The name of the bucket.
    pub bucket: String,
    /// The prefix of all names, without slashes at its ends; empty for the whole bucket.
    pub prefix: String,
    /// The address of the service, `http://` or `https://`, without the bucket.
    pub endpoint: String,
    /// The region in signatures.
    pub region: String,
    /// True if requests name the bucket in the path, false if they name it in the host.
    pub path_style: bool,
    /// The credentials.
    pub credentials: S3Credentials,
    /// Additional certificate authorities, as PEM.
    pub ca_file: Option<PathBuf>,
    /// The limit on opening a connection.
    pub connect_timeout: Duration,
    /// The limit on the head of each answer, and on each pause within its body.
    pub request_timeout: Duration,
}

/// The source of the credentials. Temporary credentials are renewed before they expire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum S3Credentials {
    /// An access key.
    AccessKey {
        /// Its id.
        id: SecretString,
        /// Its secret.
        secret: SecretString,
        /// The session token of temporary credentials.
        session_token: Option<SecretString>,
    },
    /// A token in a file, exchanged for credentials at the token service.
    WebIdentity {
        /// The file of the token; read at each exchange.
        token_file: PathBuf,
        /// The role that is assumed.
        role_arn: String,
        /// The name of the session in the provider's logs.
        session_name: String,
        /// The address of the token service.
        endpoint: String,
    },
    /// A local address that returns credentials to a container.
    Container {
        /// The path at the fixed address of the container service.
        relative_uri: String,
    },
    /// A local address that returns credentials to a pod with a token.
    Pod {
        /// The address.
        uri: String,
        /// The file of the token.
        token_file: PathBuf,
    },
    /// The metadata service of a virtual machine.
    Instance {
        /// The address of the service; `None` for the usual one.
        endpoint: Option<String>,
    },
}

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
