//! The settings of the store.

use std::path::PathBuf;
use std::time::Duration;

use domain::secret::SecretString;

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
