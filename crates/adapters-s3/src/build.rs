//! The construction of the client from the settings.

use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey as Key};
use object_store::{BackoffConfig, RetryConfig};

use crate::transport::Transport;
use crate::{S3Credentials, S3Error, S3Settings};

/// Retries of one request.
const MAX_RETRIES: usize = 3;
/// The time after which a request is not retried any more.
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Builds the client; no request is sent.
pub(crate) fn client(settings: &S3Settings) -> Result<AmazonS3, S3Error> {
    let builder = AmazonS3Builder::new()
        .with_bucket_name(&settings.bucket)
        .with_region(&settings.region)
        .with_endpoint(endpoint(settings)?)
        .with_virtual_hosted_style_request(!settings.path_style)
        .with_allow_http(true)
        // Some compatible services lack the bulk request.
        .with_disable_bulk_delete(true)
        .with_retry(retries())
        .with_http_connector(Transport::new(settings)?);
    let built = with_credentials(builder, &settings.credentials).build();
    built.map_err(|error| S3Error::Settings(error.to_string()))
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig { init_backoff: FIRST_PAUSE, max_backoff: LONGEST_PAUSE, base: 2.0 },
        max_retries: MAX_RETRIES,
        retry_timeout: RETRY_TIMEOUT,
    }
}

/// Returns the address that requests go to: with the bucket in its host, unless the path names it.
fn endpoint(settings: &S3Settings) -> Result<String, S3Error> {
    let endpoint = settings.endpoint.trim_end_matches('/');
    if settings.path_style {
        return Ok(endpoint.to_owned());
    }
    let parts = endpoint.split_once("://");
    let (scheme, host) = parts.ok_or_else(|| S3Error::Settings("the endpoint has no scheme".to_owned()))?;
    Ok(format!("{scheme}://{}.{host}", settings.bucket))
}

fn with_credentials(builder: AmazonS3Builder, credentials: &S3Credentials) -> AmazonS3Builder {
    match credentials {
        S3Credentials::AccessKey { id, secret, session_token } => {
            let builder = builder.with_access_key_id(id.expose()).with_secret_access_key(secret.expose());
            match session_token {
                Some(token) => builder.with_token(token.expose()),
                None => builder,
            }
        }
        S3Credentials::WebIdentity { token_file, role_arn, session_name, endpoint } => builder
            .with_config(Key::WebIdentityTokenFile, token_file.to_string_lossy())
            .with_config(Key::RoleArn, role_arn)
            .with_config(Key::RoleSessionName, session_name)
            .with_config(Key::StsEndpoint, endpoint),
        S3Credentials::Container { relative_uri } => {
            builder.with_config(Key::ContainerCredentialsRelativeUri, relative_uri)
        }
        S3Credentials::Pod { uri, token_file } => builder
            .with_config(Key::ContainerCredentialsFullUri, uri)
            .with_config(Key::ContainerAuthorizationTokenFile, token_file.to_string_lossy()),
        S3Credentials::Instance { endpoint: Some(endpoint) } => builder.with_metadata_endpoint(endpoint),
        S3Credentials::Instance { endpoint: None } => builder,
    }
}
