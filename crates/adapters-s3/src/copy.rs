//! Copies of objects inside the store.

use async_trait::async_trait;
use bytes::Bytes;
use domain::container::{CopiedBlob, CopyOutcome};
use domain::error::StoreError;
use domain::text::hex;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{Error, GetOptions, ObjectStore as _, ObjectStoreExt as _};
use sha2::{Digest, Sha256};

use crate::failure::{describe, says_absent, unavailable};
use crate::reader::ObjectReader;
use crate::upload::{Pieces, upload};

/// The largest object that the service copies by one request.
pub(crate) const MAX_SERVER_COPY_BYTES: u64 = 5 << 30;

/// A copy of one version of an object.
pub(crate) struct Copy<'a> {
    pub(crate) store: &'a AmazonS3,
    pub(crate) from: &'a Path,
    pub(crate) to: &'a Path,
    pub(crate) size_bytes: u64,
}

impl Copy<'_> {
    /// Copies inside the service and reads the copy back. The copy is one version of the source, and its name is known
    /// to the caller only, so its hash holds for what is kept. `None` if the source does not exist.
    pub(crate) async fn in_the_service(&self) -> Result<Option<CopyOutcome>, StoreError> {
        match self.store.copy(self.from, self.to).await {
            Ok(()) => {}
            Err(error) if says_absent(&error) => return Ok(None),
            Err(error) => return Err(unavailable("copy an object", &error)),
        }
        let outcome = self.read_back().await;
        if !matches!(outcome, Ok(CopyOutcome::Copied(_))) {
            self.remove_copy().await;
        }
        outcome.map(Some)
    }

    async fn read_back(&self) -> Result<CopyOutcome, StoreError> {
        let copy = self.store.get(self.to).await.map_err(|error| unavailable("read a copy back", &error))?;
        if copy.meta.size != self.size_bytes {
            return Ok(CopyOutcome::SourceChanged);
        }
        let mut copy = Examined::new(ObjectReader::new(copy, self.size_bytes));
        while copy.next_piece().await?.is_some() {}
        Ok(CopyOutcome::Copied(copy.finish()))
    }

    async fn remove_copy(&self) {
        if let Err(error) = self.store.delete(self.to).await
            && !says_absent(&error)
        {
            tracing::warn!(reason = describe(&error), "unusable copy not removed; left to the sweeper");
        }
    }

    /// Copies an object that is too large for one request: downloads the given version and uploads it in parts.
    /// `None` if the source does not exist.
    pub(crate) async fn through_this_process(
        &self,
        version: Option<String>,
    ) -> Result<Option<CopyOutcome>, StoreError> {
        let options = GetOptions { if_match: version, ..GetOptions::default() };
        let source = match self.store.get_opts(self.from, options).await {
            Ok(source) if source.meta.size == self.size_bytes => source,
            Ok(_) | Err(Error::Precondition { .. }) => return Ok(Some(CopyOutcome::SourceChanged)),
            Err(error) if says_absent(&error) => return Ok(None),
            Err(error) => return Err(unavailable("read an object", &error)),
        };
        let mut source = Examined::new(ObjectReader::new(source, self.size_bytes));
        upload(self.store, self.to, &mut source).await?;
        Ok(Some(CopyOutcome::Copied(source.finish())))
    }
}

/// An object whose bytes are hashed as they are read.
struct Examined {
    reader: ObjectReader,
    hash: Sha256,
    head: Vec<u8>,
}

impl Examined {
    fn new(reader: ObjectReader) -> Self {
        Self { reader, hash: Sha256::new(), head: Vec::new() }
    }

    fn finish(self) -> CopiedBlob {
        CopiedBlob { sha256: hex(&self.hash.finalize()), head: self.head }
    }
}

#[async_trait]
impl Pieces for Examined {
    async fn next_piece(&mut self) -> Result<Option<Bytes>, StoreError> {
        let Some(piece) = self.reader.next_bytes().await? else { return Ok(None) };
        let wanted = CopiedBlob::HEAD_BYTES - self.head.len();
        self.head.extend_from_slice(&piece[..wanted.min(piece.len())]);
        self.hash.update(&piece);
        Ok(Some(piece))
    }
}
