//! `[blobs]` with a bucket of an S3-compatible object store.

use std::path::PathBuf;
use std::time::Duration;

use adapters_s3::{S3Credentials, S3Settings};
use anyhow::bail;
use serde::Deserialize;

use super::section::Section;
use super::values::Millis;
use super::{ConfigError, Environment, NamedSecret, SecretSource, urls};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The limit on an answer's head, and on each pause within its body.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// The region that compatible services expect if they have none.
const DEFAULT_REGION: &str = "us-east-1";
const SESSION_NAME: &str = "tollgate";
const NO_CREDENTIALS: &str = "no credentials for blobs.url: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name \
                              other variables or files by blobs.access_key_id and blobs.secret_access_key; or set \
                              AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN; or set blobs.credentials = \"instance\" on \
                              a virtual machine with a role";

/// The origin of the credentials.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RawCredentials {
    Environment,
    Instance,
}

/// The keys of `[blobs]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawBlobs {
    pub url: Option<String>,
    // A period below the resolution of file times has no effect.
    pub quiet_period_ms: Option<Millis<20, 60_000>>,
    pub endpoint: Option<String>,
    pub region: Option<String>,
    pub path_style: Option<bool>,
    pub credentials: Option<RawCredentials>,
    pub access_key_id: Option<SecretSource>,
    pub secret_access_key: Option<SecretSource>,
    pub session_token: Option<SecretSource>,
    pub ca_file: Option<String>,
}

/// A bucket of an object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketConfig {
    /// The name of the bucket.
    pub bucket: String,
    /// The prefix of all names; empty for the whole bucket.
    pub prefix: String,
    /// The address of the service.
    pub endpoint: String,
    /// The region in signatures.
    pub region: String,
    /// True if requests name the bucket in the path.
    pub path_style: bool,
    /// Additional certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// The origin of the credentials.
    pub credentials: CredentialSource,
}

/// The origin of the credentials of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSource {
    /// An access key.
    AccessKey {
        /// Its id.
        id: NamedSecret,
        /// Its secret.
        secret: NamedSecret,
        /// The session token of temporary credentials.
        session_token: Option<NamedSecret>,
    },
    /// Temporary credentials that are fetched.
    Fetched(S3Credentials),
    /// No credentials are configured.
    Missing,
}

impl BucketConfig {
    /// Returns the address of the bucket, for messages.
    pub fn name(&self) -> String {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        format!("s3://{}{slash}{}", self.bucket, self.prefix)
    }

    /// Returns the settings of the store, with its credentials.
    ///
    /// # Errors
    /// The credentials are missing or cannot be read. The message contains no secret.
    pub fn settings(&self) -> anyhow::Result<S3Settings> {
        let credentials = match &self.credentials {
            CredentialSource::AccessKey { id, secret, session_token } => S3Credentials::AccessKey {
                id: id.read()?,
                secret: secret.read()?,
                session_token: session_token.as_ref().map(NamedSecret::read).transpose()?,
            },
            CredentialSource::Fetched(credentials) => credentials.clone(),
            CredentialSource::Missing => bail!(NO_CREDENTIALS),
        };
        Ok(S3Settings {
            bucket: self.bucket.clone(),
            prefix: self.prefix.clone(),
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            path_style: self.path_style,
            credentials,
            ca_file: self.ca_file.clone(),
            connect_timeout: CONNECT_TIMEOUT,
            request_timeout: REQUEST_TIMEOUT,
        })
    }

    /// Returns the parts of the access key.
    pub fn secrets(&self) -> impl Iterator<Item = &NamedSecret> {
        let parts = match &self.credentials {
            CredentialSource::AccessKey { id, secret, session_token } => {
                [Some(id), Some(secret), session_token.as_ref()]
            }
            _ => [None; 3],
        };
        parts.into_iter().flatten()
    }
}

/// Checks the keys of a bucket; `url` begins with `s3://`.
pub fn bucket(section: &Section<RawBlobs>, url: &str, environment: &Environment) -> Result<BucketConfig, ConfigError> {
    if section.has("quiet_period_ms") {
        let problem = "has no effect with s3://, where an object appears when it is complete: remove it";
        return Err(section.fault("quiet_period_ms", problem));
    }
    let (bucket, prefix) = urls::bucket(url).map_err(|fault| section.fault("url", fault))?;
    let region = region(section, environment)?;
    let endpoint = match &section.endpoint {
        Some(endpoint) => endpoint_of(endpoint).map_err(|fault| section.fault("endpoint", fault))?,
        None => format!("https://s3.{}", aws_domain(&region)),
    };
    // The certificate of AWS does not fit a host name with further dots.
    let default_style = section.endpoint.is_some() || bucket.contains('.');
    Ok(BucketConfig {
        credentials: credentials(section, &region, environment)?,
        bucket,
        prefix,
        endpoint,
        region,
        path_style: section.path_style.unwrap_or(default_style),
        ca_file: section.certificate_file("ca_file", section.ca_file.as_deref())?,
    })
}

fn endpoint_of(text: &str) -> Result<String, &'static str> {
    let form = "must be an http:// or https:// URL with a host and an optional port only; the bucket belongs in url";
    let base = urls::provider_base(text).map_err(|_| form)?;
    let (_, host) = base.split_once("://").ok_or(form)?;
    if host.contains('/') { Err(form) } else { Ok(base) }
}

fn region(section: &Section<RawBlobs>, environment: &Environment) -> Result<String, ConfigError> {
    let configured = section.region.clone();
    let region = configured.or_else(|| environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]));
    let Some(region) = region.or_else(|| section.endpoint.as_ref().map(|_| DEFAULT_REGION.to_owned())) else {
        let problem = "or AWS_REGION must name the region of the bucket, for example \"eu-central-1\"";
        return Err(section.fault("region", problem));
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if region.is_empty() || !region.bytes().all(fits) {
        return Err(section.fault("region", "must be the name of a region, for example \"eu-central-1\""));
    }
    Ok(region)
}

fn aws_domain(region: &str) -> String {
    let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
    format!("{region}.amazonaws.com{suffix}")
}

fn credentials(
    section: &Section<RawBlobs>,
    region: &str,
    environment: &Environment,
) -> Result<CredentialSource, ConfigError> {
    let part = |key, source: &Option<SecretSource>, usual| part(section, environment, key, source.as_ref(), usual);
    let id = part("blobs.access_key_id", &section.access_key_id, "AWS_ACCESS_KEY_ID");
    let secret = part("blobs.secret_access_key", &section.secret_access_key, "AWS_SECRET_ACCESS_KEY");
    if section.credentials == Some(RawCredentials::Instance) {
        if let Some(key) = ACCESS_KEY_KEYS.iter().find(|key| section.has(key)) {
            return Err(section.fault(key, "has no effect with credentials = \"instance\": remove one of them"));
        }
        let endpoint = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT").map(str::to_owned);
        return Ok(CredentialSource::Fetched(S3Credentials::Instance { endpoint }));
    }
    match (id, secret) {
        (Some(id), Some(secret)) => {
            // The usual variable belongs to the usual access key only.
            let is_usual = !ACCESS_KEY_KEYS.iter().any(|key| section.has(key));
            let usual = if is_usual { "AWS_SESSION_TOKEN" } else { "" };
            let session_token = part("blobs.session_token", &section.session_token, usual);
            Ok(CredentialSource::AccessKey { id, secret, session_token })
        }
        (Some(_), None) => Err(section.fault("secret_access_key", ONE_HALF)),
        (None, Some(_)) => Err(section.fault("access_key_id", ONE_HALF)),
        (None, None) if section.has("session_token") => {
            Err(section.fault("session_token", "has no effect without an access key: set its id and its secret too"))
        }
        (None, None) => fetched(section, region, environment),
    }
}

const ACCESS_KEY_KEYS: [&str; 3] = ["access_key_id", "secret_access_key", "session_token"];
const ONE_HALF: &str = "or the variable of its default is required: an access key has an id and a secret";

/// Returns a part of an access key: the named secret, or that of the usual variable if that is set.
fn part(
    section: &Section<RawBlobs>,
    environment: &Environment,
    key: &'static str,
    source: Option<&SecretSource>,
    usual: &str,
) -> Option<NamedSecret> {
    let usual = environment.get(usual).map(|_| SecretSource::Variable(usual.to_owned()));
    NamedSecret::of(section, key, source.or(usual.as_ref()), environment)
}

/// Returns the source of temporary credentials that the platform announces in the environment.
fn fetched(
    section: &Section<RawBlobs>,
    region: &str,
    environment: &Environment,
) -> Result<CredentialSource, ConfigError> {
    let get = |name: &str| environment.get(name).map(str::to_owned);
    if let (Some(token_file), Some(role_arn)) = (get("AWS_WEB_IDENTITY_TOKEN_FILE"), get("AWS_ROLE_ARN")) {
        let endpoint = match get("AWS_ENDPOINT_URL_STS") {
            Some(endpoint) if is_safe(&endpoint) => endpoint,
            Some(_) => {
                let problem = "requires that AWS_ENDPOINT_URL_STS begins with https://: a token is sent to it";
                return Err(section.fault("url", problem));
            }
            None => format!("https://sts.{}", aws_domain(region)),
        };
        let session_name = get("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| SESSION_NAME.to_owned());
        let token_file = PathBuf::from(token_file);
        let identity = S3Credentials::WebIdentity { token_file, role_arn, session_name, endpoint };
        return Ok(CredentialSource::Fetched(identity));
    }
    if let Some(relative_uri) = get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
        return Ok(CredentialSource::Fetched(S3Credentials::Container { relative_uri }));
    }
    let pod = (get("AWS_CONTAINER_CREDENTIALS_FULL_URI"), get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"));
    if let (Some(uri), Some(token_file)) = pod {
        return Ok(CredentialSource::Fetched(S3Credentials::Pod { uri, token_file: PathBuf::from(token_file) }));
    }
    Ok(CredentialSource::Missing)
}

/// Returns true for an address at which a token cannot be read on the way.
fn is_safe(endpoint: &str) -> bool {
    let uri: Option<http::Uri> = endpoint.parse().ok();
    uri.is_some_and(|uri| match uri.scheme_str() {
        Some("https") => true,
        Some("http") => matches!(uri.host(), Some("127.0.0.1" | "[::1]" | "localhost")),
        _ => false,
    })
}
