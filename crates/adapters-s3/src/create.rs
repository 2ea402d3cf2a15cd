//! The creation of a missing bucket.

use std::time::Duration;

use http::{Method, Request};
use object_store::client::{HttpClient, HttpRequestBody};
use object_store::path::Path;
use object_store::signer::Signer as _;

use crate::failure::{BucketCheck, describe, describe_answer};
use crate::transport::Transport;
use crate::{S3BlobStore, S3Error, S3Settings, build};

/// The validity of the signature of the request.
const SIGNATURE: Duration = Duration::from_mins(5);
/// The region whose buckets are created without naming it.
const UNNAMED_REGION: &str = "us-east-1";

/// Creates the bucket if it does not exist. Returns true if this call created it.
///
/// # Errors
/// The bucket can be neither used nor created.
pub async fn create_missing_bucket(settings: &S3Settings) -> Result<bool, S3Error> {
    let store = S3BlobStore::new(settings)?;
    match store.check_bucket().await {
        BucketCheck::Accessible => return Ok(false),
        BucketCheck::Missing(_) => {}
        BucketCheck::Rejected(reason) => return Err(S3Error::Bucket(reason)),
        BucketCheck::Unavailable(error) => return Err(S3Error::LookUp(error)),
    }
    let failure = create(settings).await?;
    // Another process may have created it at the same time: services differ in the error.
    match store.check_bucket().await {
        BucketCheck::Accessible => Ok(failure.is_none()),
        BucketCheck::Missing(reason) | BucketCheck::Rejected(reason) => Err(S3Error::Create(failure.unwrap_or(reason))),
        BucketCheck::Unavailable(error) => Err(failure.map_or(S3Error::LookUp(error), S3Error::Create)),
    }
}

/// Sends the request. Returns the service's error.
async fn create(settings: &S3Settings) -> Result<Option<String>, S3Error> {
    let failed = |reason: String| S3Error::Create(reason);
    let signed = build::client(settings)?.signed_url(Method::PUT, &Path::default(), SIGNATURE).await;
    let url = signed.map_err(|error| failed(describe(&error)))?;
    let request = Request::put(url.as_str()).body(HttpRequestBody::from(body(&settings.region)));
    let request = request.map_err(|_| failed("the address is invalid".to_owned()))?;
    let sent = HttpClient::new(Transport::new(settings)?).execute(request).await;
    let answer = sent.map_err(|error| failed(error.to_string()))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(None);
    }
    let text = answer.into_body().bytes().await.unwrap_or_default();
    Ok(Some(describe_answer(status, &String::from_utf8_lossy(&text))))
}

/// Returns the body, which names the region where the service wants it named.
fn body(region: &str) -> String {
    if region == UNNAMED_REGION {
        return String::new();
    }
    format!(
        "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
         <LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
    )
}
