//! The blob store port over a bucket.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::container::{BlobKey, BlobMeta, BlobStore, ByteSource, CopyOutcome, OpenBlob, PutBlobError};
use domain::error::StoreError;
use domain::system::HealthProbe;
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore as _};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore as _, ObjectStoreExt as _};

use crate::copy::{Copy, MAX_SERVER_COPY_BYTES};
use crate::failure::{self, BucketCheck, says_absent, unavailable};
use crate::list::{list, meta};
use crate::names::Names;
use crate::reader::ObjectReader;
use crate::upload::upload;
use crate::{S3Error, S3Settings, build};

/// The longest duration of a probe; the port allows two seconds.
const PROBE: Duration = Duration::from_millis(1_800);

/// Stores objects in a bucket, below a prefix. Clones share the connections.
///
/// An object of the service is visible as a whole or not at all, is durable once it is acknowledged, and never changes:
/// a write of the same name is another version. There are no links, and a common beginning of names is no object.
#[derive(Clone)]
pub struct S3BlobStore {
    store: Arc<AmazonS3>,
    names: Names,
    max_server_copy_bytes: u64,
}

impl S3BlobStore {
    /// Builds the client; no request is sent.
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn new(settings: &S3Settings) -> Result<Self, S3Error> {
        Ok(Self {
            store: Arc::new(build::client(settings)?),
            names: Names::new(&settings.prefix)?,
            max_server_copy_bytes: MAX_SERVER_COPY_BYTES,
        })
    }

    /// Lowers the size above which a copy goes through this process, for services with a lower limit than 5 GiB.
    #[must_use]
    pub fn with_max_server_copy_bytes(self, max_server_copy_bytes: u64) -> Self {
        Self { max_server_copy_bytes, ..self }
    }

    /// Lists one object, which shows whether the bucket can be used.
    pub async fn check_bucket(&self) -> BucketCheck {
        match self.list_one(&self.names.below("")).await {
            Ok(_) => BucketCheck::Accessible,
            Err(error) => failure::of_check(&error),
        }
    }

    /// Returns the first object whose name begins so.
    async fn list_one(&self, prefix: &str) -> object_store::Result<Option<ObjectMeta>> {
        let options = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
        Ok(self.store.list_paginated(Some(prefix), options).await?.result.objects.into_iter().next())
    }

    /// Confirms that an object is missing. Some answers do not tell a missing object from a missing bucket, which is an
    /// outage: a caller must not take its documents for deleted. The bucket may have returned since, so the object must
    /// not be listed either.
    async fn confirm_absent(&self, name: &Path) -> Result<(), StoreError> {
        match self.list_one(name.as_ref()).await {
            Ok(Some(object)) if object.location == *name => {
                Err(StoreError::unavailable("the object store said that an object is missing, and then listed it"))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(unavailable("list objects", &error)),
        }
    }

    async fn head(&self, name: &Path) -> Result<Option<ObjectMeta>, StoreError> {
        match self.store.head(name).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if says_absent(&error) => self.confirm_absent(name).await.map(|()| None),
            Err(error) => Err(unavailable("look up an object", &error)),
        }
    }
}

#[async_trait]
impl BlobStore for S3BlobStore {
    async fn stat(&self, key: &BlobKey) -> Result<Option<BlobMeta>, StoreError> {
        let Some(name) = self.names.of(key) else { return Ok(None) };
        Ok(self.head(&name).await?.and_then(|object| meta(&self.names, &object)))
    }

    async fn copy(&self, from: &BlobKey, to: &BlobKey, size_bytes: u64) -> Result<CopyOutcome, StoreError> {
        let Some(from) = self.names.of(from) else { return Ok(CopyOutcome::SourceGone) };
        let to = self.names.of(to).ok_or_else(|| StoreError::unavailable("no object can have that name"))?;
        let Some(source) = self.head(&from).await? else { return Ok(CopyOutcome::SourceGone) };
        if source.size != size_bytes {
            return Ok(CopyOutcome::SourceChanged);
        }
        let copy = Copy { store: &self.store, from: &from, to: &to, size_bytes };
        let outcome = if size_bytes <= self.max_server_copy_bytes {
            copy.in_the_service().await?
        } else {
            copy.through_this_process(source.e_tag).await?
        };
        match outcome {
            Some(outcome) => Ok(outcome),
            None => self.confirm_absent(&from).await.map(|()| CopyOutcome::SourceGone),
        }
    }

    async fn put(&self, key: &BlobKey, mut source: Box<dyn ByteSource>) -> Result<u64, PutBlobError> {
        // With the prefix a name has at most 1,024 bytes; other faults of a name no key has.
        let name = self.names.of(key).ok_or(PutBlobError::NameTooLong)?;
        Ok(upload(&self.store, &name, &mut source).await?)
    }

    async fn read(&self, key: &BlobKey, range: Option<Range<u64>>) -> Result<Option<OpenBlob>, StoreError> {
        let Some(name) = self.names.of(key) else { return Ok(None) };
        let options = GetOptions { range: range.clone().map(GetRange::Bounded), ..GetOptions::default() };
        match self.store.get_opts(&name, options).await {
            Ok(object) => {
                let size_bytes = object.meta.size;
                let length = range.map_or(size_bytes, |range| range.end.saturating_sub(range.start));
                let source = Box::new(ObjectReader::new(object, length));
                Ok(Some(OpenBlob { size_bytes, links: 1, source }))
            }
            Err(error) if says_absent(&error) => self.confirm_absent(&name).await.map(|()| None),
            Err(error) => Err(unavailable("read an object", &error)),
        }
    }

    /// S3 confirms the deletion of a missing object, too.
    async fn delete(&self, key: &BlobKey) -> Result<bool, StoreError> {
        let Some(name) = self.names.of(key) else { return Ok(false) };
        match self.store.delete(&name).await {
            Ok(()) => Ok(true),
            Err(error) if says_absent(&error) => self.confirm_absent(&name).await.map(|()| false),
            Err(error) => Err(unavailable("delete an object", &error)),
        }
    }

    async fn list<'a>(
        &self,
        prefix: &str,
        after: Option<&'a BlobKey>,
        limit: usize,
    ) -> Result<Vec<BlobMeta>, StoreError> {
        list(&self.store, &self.names, prefix, after, limit).await
    }

    /// Removes nothing: the service keeps the parts of interrupted uploads out of sight, and the bucket's rule for
    /// aborted uploads removes them.
    async fn sweep_partial(&self, _older_than: Duration) -> Result<u64, StoreError> {
        Ok(0)
    }
}

#[async_trait]
impl HealthProbe for S3BlobStore {
    fn name(&self) -> &'static str {
        "blobs"
    }

    /// Lists one object. A probe that writes would cost a request that is billed, at every check of a load balancer.
    async fn probe(&self) -> Result<(), StoreError> {
        let listed = tokio::time::timeout(PROBE, self.list_one(&self.names.below(""))).await;
        let listed = listed.map_err(|_| StoreError::unavailable("the object store does not answer in time"))?;
        listed.map(drop).map_err(|error| unavailable("list objects", &error))
    }

    /// Decisions need no files. All replicas share the bucket: none of them would be better.
    fn serves_during_outage(&self) -> bool {
        true
    }
}
