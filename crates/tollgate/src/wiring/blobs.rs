//! The blob store: a folder or a bucket.

use std::sync::Arc;
use std::time::Duration;

use adapters_blob::LocalBlobStore;
use adapters_s3::{BucketCheck, S3BlobStore, create_missing_bucket};
use anyhow::{Context as _, bail};
use domain::container::BlobStore;
use domain::error::StoreError;
use domain::system::HealthProbe;

use crate::config::{BlobsConfig, BucketConfig, FolderConfig};

/// The longest time that a start waits for the bucket.
const START_CHECK: Duration = Duration::from_secs(5);

/// A blob store with its readiness probe.
pub trait Blobs: BlobStore + HealthProbe {}

impl<T: BlobStore + HealthProbe> Blobs for T {}

/// Opens the store; creates a missing folder. No request is sent to a bucket.
///
/// # Errors
/// The folder cannot be created or opened, or the settings of the bucket cannot be used.
pub fn open_blobs(config: &BlobsConfig) -> anyhow::Result<Arc<dyn Blobs>> {
    match config {
        BlobsConfig::Folder(folder) => Ok(Arc::new(open_folder(folder)?)),
        BlobsConfig::Bucket(bucket) => Ok(Arc::new(open_bucket(bucket)?)),
    }
}

fn open_folder(folder: &FolderConfig) -> anyhow::Result<LocalBlobStore> {
    let root = &folder.root;
    let store = LocalBlobStore::open(root);
    let store = store.with_context(|| format!("the blob store {} cannot be opened", root.display()))?;
    Ok(store.with_quiet_period(folder.quiet_period))
}

fn open_bucket(bucket: &BucketConfig) -> anyhow::Result<S3BlobStore> {
    let store = bucket.settings().and_then(|settings| Ok(S3BlobStore::new(&settings)?));
    store.with_context(|| format!("the blob store {} cannot be opened", bucket.name()))
}

/// Creates the bucket of `blobs.url` if it does not exist. Returns true if this call created it.
///
/// # Errors
/// The files are not in a bucket, or the bucket can be neither used nor created.
pub async fn create_bucket(config: &BlobsConfig) -> anyhow::Result<bool> {
    let BlobsConfig::Bucket(bucket) = config else {
        bail!("no bucket to create: blobs.url is a folder, not s3://bucket/prefix")
    };
    create_missing_bucket(&bucket.settings()?).await.with_context(|| format!("blobs.url {}", bucket.name()))
}

/// Checks the bucket at the start of a server. An outage is logged only: decisions need no files, and the store
/// recovers without a restart.
///
/// # Errors
/// The service rejects the configuration, for example the credentials or the name of the bucket.
pub async fn require_bucket(config: &BlobsConfig) -> anyhow::Result<()> {
    let BlobsConfig::Bucket(bucket) = config else { return Ok(()) };
    let store = open_bucket(bucket)?;
    let checked = tokio::time::timeout(START_CHECK, store.check_bucket()).await;
    let outage = match checked {
        Ok(BucketCheck::Accessible) => return Ok(()),
        Ok(BucketCheck::Missing(reason) | BucketCheck::Rejected(reason)) => {
            bail!("the blob store {} cannot be used: {reason}", bucket.name())
        }
        Ok(BucketCheck::Unavailable(error)) => error,
        Err(_) => StoreError::unavailable(format!("no answer within {} ms", START_CHECK.as_millis())),
    };
    let error = anyhow::Error::from(outage);
    tracing::warn!(store = "blobs", error = format!("{error:#}"), "object store unavailable at start");
    Ok(())
}
