//! Reads the bytes of an object as they arrive.

use async_trait::async_trait;
use bytes::Bytes;
use domain::container::ByteSource;
use domain::error::StoreError;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use object_store::GetResult;

use crate::failure::unavailable;

/// An object that is being downloaded. A broken download of one version of the object is resumed by the client.
pub(crate) struct ObjectReader {
    stream: BoxStream<'static, object_store::Result<Bytes>>,
    remaining: u64,
}

impl ObjectReader {
    /// Reads an object, or a range of it, that must have `length` bytes.
    pub(crate) fn new(object: GetResult, length: u64) -> Self {
        Self { remaining: length, stream: object.into_stream() }
    }

    /// Returns the next bytes, never an empty piece; `None` at the end.
    pub(crate) async fn next_bytes(&mut self) -> Result<Option<Bytes>, StoreError> {
        while let Some(piece) = self.stream.next().await {
            let piece = piece.map_err(|error| unavailable("read an object", &error))?;
            if piece.is_empty() {
                continue;
            }
            let left = self.remaining.checked_sub(piece.len() as u64);
            self.remaining = left.ok_or_else(|| StoreError::unavailable("the object is longer than announced"))?;
            return Ok(Some(piece));
        }
        if self.remaining > 0 {
            return Err(StoreError::unavailable("the object ended before its announced size"));
        }
        Ok(None)
    }
}

#[async_trait]
impl ByteSource for ObjectReader {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.next_bytes().await?.map(Into::into))
    }
}
