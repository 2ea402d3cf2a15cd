//! Writes of objects from a source, in parts of constant size.

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use domain::container::ByteSource;
use domain::error::StoreError;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt as _, PutPayload};

use crate::failure::{describe, unavailable};

/// The size of a part, and of the largest object that is written by one request. Every service takes parts of 5 MiB to
/// 5 GiB; some want parts of equal size.
pub(crate) const PART_BYTES: usize = 8 << 20;
/// The largest number of parts of an object.
const MAX_PARTS: usize = 10_000;

/// Bytes in pieces.
#[async_trait]
pub(crate) trait Pieces: Send {
    /// Returns the next piece; `None` at the end.
    async fn next_piece(&mut self) -> Result<Option<Bytes>, StoreError>;
}

#[async_trait]
impl Pieces for Box<dyn ByteSource> {
    async fn next_piece(&mut self) -> Result<Option<Bytes>, StoreError> {
        Ok(self.next().await?.map(Bytes::from))
    }
}

/// Writes an object and returns its size. A small one is one request. A large one becomes visible when its last part
/// is complete; if the source or the store fails, its parts are removed.
pub(crate) async fn upload(store: &AmazonS3, to: &Path, source: &mut dyn Pieces) -> Result<u64, StoreError> {
    let mut parts = Parts::new(source);
    let (first, is_last) = parts.next().await?;
    if is_last {
        let size = first.len() as u64;
        store.put(to, first.into()).await.map_err(|error| unavailable("write an object", &error))?;
        return Ok(size);
    }
    let mut upload =
        store.put_multipart(to).await.map_err(|error| unavailable("begin the upload of an object", &error))?;
    match send_parts(&mut *upload, first, &mut parts).await {
        Ok(size) => Ok(size),
        Err(error) => {
            // The bucket's rule for aborted uploads removes what cannot be removed now.
            if let Err(failed) = upload.abort().await {
                tracing::warn!(reason = describe(&failed), "parts of a failed upload not removed");
            }
            Err(error)
        }
    }
}

async fn send_parts(upload: &mut dyn MultipartUpload, first: Bytes, parts: &mut Parts<'_>) -> Result<u64, StoreError> {
    let mut size = first.len() as u64;
    send(upload, first).await?;
    for _ in 1..MAX_PARTS {
        let (part, is_last) = parts.next().await?;
        if !part.is_empty() {
            size += part.len() as u64;
            send(upload, part).await?;
        }
        if is_last {
            upload.complete().await.map_err(|error| unavailable("complete the upload of an object", &error))?;
            return Ok(size);
        }
    }
    let most = PART_BYTES as u64 * MAX_PARTS as u64;
    Err(StoreError::unavailable(format!("the object has more than {most} bytes, the most of this store")))
}

async fn send(upload: &mut dyn MultipartUpload, part: Bytes) -> Result<(), StoreError> {
    upload.put_part(PutPayload::from(part)).await.map_err(|error| unavailable("write a part of an object", &error))
}

/// Gathers pieces into parts.
struct Parts<'a> {
    source: &'a mut dyn Pieces,
    gathered: BytesMut,
}

impl<'a> Parts<'a> {
    fn new(source: &'a mut dyn Pieces) -> Self {
        Self { source, gathered: BytesMut::new() }
    }

    /// Returns the next part and whether it is the last one. Every other part has exactly [`PART_BYTES`] bytes.
    async fn next(&mut self) -> Result<(Bytes, bool), StoreError> {
        while self.gathered.len() <= PART_BYTES {
            match self.source.next_piece().await? {
                Some(piece) => self.gathered.extend_from_slice(&piece),
                None => return Ok((std::mem::take(&mut self.gathered).freeze(), true)),
            }
        }
        let rest = self.gathered.split_off(PART_BYTES);
        Ok((std::mem::replace(&mut self.gathered, rest).freeze(), false))
    }
}
