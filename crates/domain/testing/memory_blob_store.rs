//! A blob store in memory. It keeps whole objects in memory, which no real store may do.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use super::FixedClock;
use super::system::lock;
use crate::container::{BlobKey, BlobMeta, BlobStore, ByteSource, CopiedBlob, CopyOutcome, OpenBlob, PutBlobError};
use crate::error::StoreError;
use crate::system::Clock;

/// Objects in memory. Clones share them.
#[derive(Clone, Default)]
pub struct MemoryBlobStore {
    clock: FixedClock,
    objects: Arc<Mutex<BTreeMap<BlobKey, Object>>>,
}

/// The bytes of an object, and their time.
type Object = (Arc<[u8]>, DateTime<Utc>);

impl MemoryBlobStore {
    /// Creates an empty store; `clock` dates its objects.
    pub fn new(clock: FixedClock) -> Self {
        Self { clock, objects: Arc::default() }
    }

    /// Returns the bytes of an object.
    pub fn content(&self, key: &BlobKey) -> Option<Arc<[u8]>> {
        lock(&self.objects).get(key).map(|(bytes, _)| Arc::clone(bytes))
    }

    fn store(&self, key: &BlobKey, bytes: Arc<[u8]>) {
        lock(&self.objects).insert(key.clone(), (bytes, self.clock.now()));
    }
}

fn meta((key, (bytes, modified_at)): (&BlobKey, &Object)) -> BlobMeta {
    BlobMeta { key: key.clone(), size_bytes: bytes.len() as u64, modified_at: *modified_at, links: 1 }
}

pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[async_trait]
impl BlobStore for MemoryBlobStore {
    async fn stat(&self, key: &BlobKey) -> Result<Option<BlobMeta>, StoreError> {
        Ok(lock(&self.objects).get_key_value(key).map(meta))
    }

    async fn copy(&self, from: &BlobKey, to: &BlobKey, size_bytes: u64) -> Result<CopyOutcome, StoreError> {
        let Some(bytes) = self.content(from) else { return Ok(CopyOutcome::SourceGone) };
        if bytes.len() as u64 != size_bytes {
            return Ok(CopyOutcome::SourceChanged);
        }
        let copied =
            CopiedBlob { sha256: sha256_hex(&bytes), head: bytes[..bytes.len().min(CopiedBlob::HEAD_BYTES)].to_vec() };
        self.store(to, bytes);
        Ok(CopyOutcome::Copied(copied))
    }

    async fn put(&self, key: &BlobKey, mut source: Box<dyn ByteSource>) -> Result<u64, PutBlobError> {
        let mut bytes = Vec::new();
        while let Some(piece) = source.next().await? {
            bytes.extend_from_slice(&piece);
        }
        let size = bytes.len() as u64;
        self.store(key, bytes.into());
        Ok(size)
    }

    async fn read(&self, key: &BlobKey, range: Option<Range<u64>>) -> Result<Option<OpenBlob>, StoreError> {
        let Some(bytes) = self.content(key) else { return Ok(None) };
        let size_bytes = bytes.len() as u64;
        let Range { start, end } = range.unwrap_or(0..size_bytes);
        let index = |at| usize::try_from(at).map_err(StoreError::unavailable);
        let read = bytes.get(index(start)?..index(end)?);
        let read = read.ok_or_else(|| StoreError::unavailable("the range ends behind the end of the object"))?;
        let source = MemoryByteSource::new(read.chunks(64 * 1024).map(<[u8]>::to_vec)).boxed();
        Ok(Some(OpenBlob { size_bytes, links: 1, source }))
    }

    async fn delete(&self, key: &BlobKey) -> Result<bool, StoreError> {
        Ok(lock(&self.objects).remove(key).is_some())
    }

    async fn list<'a>(
        &self,
        prefix: &str,
        after: Option<&'a BlobKey>,
        limit: usize,
    ) -> Result<Vec<BlobMeta>, StoreError> {
        let objects = lock(&self.objects);
        let under = objects.iter().filter(|(key, _)| key.as_str().starts_with(prefix));
        Ok(under.filter(|(key, _)| after.is_none_or(|after| *key > after)).take(limit).map(meta).collect())
    }

    async fn sweep_partial(&self, _older_than: Duration) -> Result<u64, StoreError> {
        Ok(0)
    }
}

/// Bytes from memory, in given pieces.
#[derive(Debug, Clone, Default)]
pub struct MemoryByteSource {
    pieces: VecDeque<Vec<u8>>,
    fails: bool,
}

impl MemoryByteSource {
    /// Creates a source of these pieces, in order; empty pieces are left out.
    pub fn new<P: Into<Vec<u8>>>(pieces: impl IntoIterator<Item = P>) -> Self {
        let pieces = pieces.into_iter().map(Into::into).filter(|piece: &Vec<u8>| !piece.is_empty()).collect();
        Self { pieces, fails: false }
    }

    /// Lets the source fail in place of its end.
    #[must_use]
    pub fn then_failing(self) -> Self {
        Self { fails: true, ..self }
    }

    /// Returns the source as its port.
    pub fn boxed(self) -> Box<dyn ByteSource> {
        Box::new(self)
    }
}

#[async_trait]
impl ByteSource for MemoryByteSource {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        match self.pieces.pop_front() {
            None if self.fails => Err(StoreError::unavailable("the source broke off")),
            next => Ok(next),
        }
    }
}
