//! `[blobs]` with a bucket of an S3-compatible object store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use adapters_s3::{S3Credentials, S3Settings};
use anyhow::{Context as _, bail, ensure};
use domain::secret::SecretString;
use serde::Deserialize;

use super::files::read_regular_text;
use super::secret::{is_quoted, variable_name, variable_suffix};
use super::section::Section;
use super::values::Millis;
use super::{ConfigError, Environment, urls};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The limit on an answer's head, and on each pause within its body.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// The region that compatible services expect if they have none.
const DEFAULT_REGION: &str = "us-east-1";
const SESSION_NAME: &str = "tollgate";
const NO_CREDENTIALS: &str = "no credentials for blobs.url: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name \
                              other variables or files by blobs.access_key_id_env, blobs.access_key_id_file, \
                              blobs.secret_access_key_env and blobs.secret_access_key_file; or set \
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
    pub access_key_id_env: Option<String>,
    pub access_key_id_file: Option<String>,
    pub secret_access_key_env: Option<String>,
    pub secret_access_key_file: Option<String>,
    pub session_token_env: Option<String>,
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
        id: SecretPart,
        /// Its secret.
        secret: SecretPart,
        /// The session token of temporary credentials.
        session_token: Option<SecretPart>,
    },
    /// Temporary credentials that are fetched.
    Fetched(S3Credentials),
    /// No credentials are configured.
    Missing,
}

/// The location of a part of an access key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPart {
    /// The value of an environment variable.
    Value(SecretString),
    /// A file, with the key of the configuration that names it.
    File(&'static str, PathBuf),
    /// A variable that is not set or empty, with the key of the configuration that names it, and its name as far as
    /// messages show it.
    Unset(&'static str, String),
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
                session_token: session_token.as_ref().map(SecretPart::read).transpose()?,
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

    /// Returns true if a readable part of the access key is in quotation marks.
    pub fn has_quoted_secret(&self) -> bool {
        let is_quoted = |part: &SecretPart| part.read().is_ok_and(|secret| is_quoted(secret.expose()));
        match &self.credentials {
            CredentialSource::AccessKey { id, secret, session_token } => {
                [Some(id), Some(secret), session_token.as_ref()].into_iter().flatten().any(is_quoted)
            }
            _ => false,
        }
    }

    /// Returns the files with secrets, with the keys that name them.
    pub fn secret_files(&self) -> Vec<(&'static str, &Path)> {
        match &self.credentials {
            CredentialSource::AccessKey { id, secret, .. } => {
                [id, secret].into_iter().filter_map(SecretPart::file).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl SecretPart {
    fn read(&self) -> anyhow::Result<SecretString> {
        let (key, path) = match self {
            Self::Value(secret) => return Ok(secret.clone()),
            Self::Unset(key, name) => {
                bail!("blobs.{key} names an environment variable that is not set, or empty{name}")
            }
            Self::File(key, path) => (key, path),
        };
        let text = read_regular_text(path).with_context(|| format!("the file of blobs.{key} cannot be read"))?;
        let text = text.trim();
        let is_usable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        ensure!(is_usable, "the file of blobs.{key} holds no key: visible ASCII characters are wanted");
        Ok(SecretString::new(text))
    }

    fn file(&self) -> Option<(&'static str, &Path)> {
        match self {
            Self::File(key, path) => Some((key, path)),
            _ => None,
        }
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
    let id = id_part(section, environment)?;
    let secret = secret_part(section, environment)?;
    if section.credentials == Some(RawCredentials::Instance) {
        if let Some(key) = ACCESS_KEY_KEYS.iter().find(|key| section.has(key)) {
            return Err(section.fault(key, "has no effect with credentials = \"instance\": remove one of them"));
        }
        let endpoint = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT").map(str::to_owned);
        return Ok(CredentialSource::Fetched(S3Credentials::Instance { endpoint }));
    }
    match (id, secret) {
        (Some(id), Some(secret)) => {
            let session_token = session_token(section, environment)?;
            Ok(CredentialSource::AccessKey { id, secret, session_token })
        }
        (Some(_), None) => Err(section.fault("secret_access_key_env", ONE_HALF)),
        (None, Some(_)) => Err(section.fault("access_key_id_env", ONE_HALF)),
        (None, None) if section.has("session_token_env") => {
            Err(section
                .fault("session_token_env", "has no effect without an access key: set its id and its secret too"))
        }
        (None, None) => fetched(section, region, environment),
    }
}

const ACCESS_KEY_KEYS: [&str; 5] =
    ["access_key_id_env", "access_key_id_file", "secret_access_key_env", "secret_access_key_file", "session_token_env"];
const ONE_HALF: &str = "or the variable of its default is required: an access key has an id and a secret";

fn id_part(section: &Section<RawBlobs>, environment: &Environment) -> Result<Option<SecretPart>, ConfigError> {
    let keys = ("access_key_id_env", "access_key_id_file");
    let values = (section.access_key_id_env.as_deref(), section.access_key_id_file.as_deref());
    part(section, environment, keys, values, "AWS_ACCESS_KEY_ID")
}

fn secret_part(section: &Section<RawBlobs>, environment: &Environment) -> Result<Option<SecretPart>, ConfigError> {
    let keys = ("secret_access_key_env", "secret_access_key_file");
    let values = (section.secret_access_key_env.as_deref(), section.secret_access_key_file.as_deref());
    part(section, environment, keys, values, "AWS_SECRET_ACCESS_KEY")
}

/// Returns the session token. The usual variable belongs to the usual access key only.
fn session_token(section: &Section<RawBlobs>, environment: &Environment) -> Result<Option<SecretPart>, ConfigError> {
    let named = section.session_token_env.as_deref();
    let is_usual = !ACCESS_KEY_KEYS.iter().any(|key| section.has(key));
    let usual = if is_usual { "AWS_SESSION_TOKEN" } else { "" };
    part(section, environment, ("session_token_env", ""), (named, None), usual)
}

/// Returns the location of a part of an access key: a named variable, a file, or the usual variable if that is set.
fn part(
    section: &Section<RawBlobs>,
    environment: &Environment,
    (variable_key, file_key): (&'static str, &'static str),
    (variable, file): (Option<&str>, Option<&str>),
    usual: &str,
) -> Result<Option<SecretPart>, ConfigError> {
    let value = |name: &str| environment.get(name).map(|text| SecretPart::Value(SecretString::new(text.trim())));
    match (variable, file) {
        (Some(_), Some(_)) => Err(section.fault(variable_key, format_args!("cannot be set together with {file_key}"))),
        (Some(name), None) => {
            let name = variable_name(name).map_err(|fault| section.fault(variable_key, fault))?;
            // Its absence is an error of the commands that open the store.
            Ok(Some(value(name).unwrap_or_else(|| SecretPart::Unset(variable_key, variable_suffix(name)))))
        }
        (None, Some(path)) => Ok(Some(SecretPart::File(file_key, section.resolve(file_key, Path::new(path))))),
        (None, None) => Ok(value(usual)),
    }
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
