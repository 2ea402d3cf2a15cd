//! The blob store: a folder or a bucket.

use std::sync::Arc;
use std::time::Duration;

use adapters_blob::LocalBlobStore;
use adapters_s3::{BucketCheck, S3BlobStore};
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
        Ok(BucketCheck::Rejected(reason)) => bail!("the blob store {} cannot be used: {reason}", bucket.name()),
        Ok(BucketCheck::Unavailable(error)) => error,
        Err(_) => StoreError::unavailable(format!("no answer within {} ms", START_CHECK.as_millis())),
    };
    let error = anyhow::Error::from(outage);
    tracing::warn!(store = "blobs", error = format!("{error:#}"), "object store unavailable at start");
    Ok(())
}
