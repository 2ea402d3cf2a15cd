//! Reads the bytes of a stored object in pieces.

use std::fs::File;
use std::io::Read;

use async_trait::async_trait;
use domain::container::ByteSource;
use domain::error::StoreError;

use crate::source::BUFFER_BYTES;
use crate::tree::unavailable;

/// An open file, read on the threads for blocking work.
pub(crate) struct FileReader {
    /// `None` while a piece is read, and after an error.
    file: Option<File>,
    remaining: u64,
}

impl FileReader {
    /// Reads `size_bytes` bytes of the file from where it stands.
    pub(crate) fn new(file: File, size_bytes: u64) -> Self {
        Self { file: Some(file), remaining: size_bytes }
    }
}

#[async_trait]
impl ByteSource for FileReader {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        if self.remaining == 0 {
            return Ok(None);
        }
        let Some(file) = self.file.take() else {
            return Err(StoreError::unavailable("the object could not be read before"));
        };
        let wanted = self.remaining.min(BUFFER_BYTES as u64);
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::with_capacity(usize::try_from(wanted).unwrap_or(BUFFER_BYTES));
            (&file).take(wanted).read_to_end(&mut piece).map(|_| (file, piece))
        });
        let (file, piece) = read.await.map_err(StoreError::unavailable)?.map_err(unavailable)?;
        if (piece.len() as u64) < wanted {
            return Err(StoreError::unavailable("the object became shorter while it was read"));
        }
        self.file = Some(file);
        self.remaining -= wanted;
        Ok(Some(piece))
    }
}
