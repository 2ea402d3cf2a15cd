//! Lists, reads and deletes the files of a container.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};

use super::InvalidPosition;
use crate::api_key::ContentAccess;
use crate::container::{BlobKey, BlobMeta, BlobStore, ContainerId, ContainerPath, OpenBlob};
use crate::error::StoreError;

/// Reads and deletes the files in the containers of the caller's workspace. An object is a file if a promotion may copy
/// it: its path is allowed, and it has no second hard link.
pub struct ManageContainerFiles {
    blobs: Arc<dyn BlobStore>,
}

/// A file of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerFile {
    /// The path in the container.
    pub path: ContainerPath,
    /// The size in bytes.
    pub size_bytes: u64,
    /// The time of the last write.
    pub modified_at: DateTime<Utc>,
}

/// A page of a container's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerFileList {
    /// The files, in bytewise order of their paths.
    pub files: Vec<ContainerFile>,
    /// The position after which the next page begins: the last file, or where the search for files stopped.
    pub last: Option<FilePosition>,
    /// True if more objects follow.
    pub has_more: bool,
}

/// A position in the list of a container's files. It is written like the id of a file, but may be that of no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePosition(String);

const PREFIX: &str = "cfile_";
/// The longest position that is read, encoded.
const MAX_POSITION_BYTES: usize = 2_048;

impl FilePosition {
    /// Returns the id.
    pub fn id(&self) -> String {
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(&self.0))
    }

    /// Parses an id.
    ///
    /// # Errors
    /// The text is no id of a path.
    pub fn from_id(id: &str) -> Result<Self, InvalidPosition> {
        let encoded = id.strip_prefix(PREFIX).filter(|encoded| (1..=MAX_POSITION_BYTES).contains(&encoded.len()));
        let bytes = encoded.and_then(|encoded| URL_SAFE_NO_PAD.decode(encoded).ok()).ok_or(InvalidPosition)?;
        String::from_utf8(bytes).map(Self).map_err(|_| InvalidPosition)
    }
}

/// The number of objects after which a search for files stops, so that a page costs a bounded time.
const MAX_SCANNED: usize = 10_000;

/// The objects that are read at once while the search goes on.
const SEARCH_PAGE: usize = 1_000;

impl ManageContainerFiles {
    /// Wires the port.
    pub fn new(blobs: Arc<dyn BlobStore>) -> Self {
        Self { blobs }
    }

    /// Returns up to `limit` files whose paths sort after `after`. An unknown container has none.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(
        &self,
        access: ContentAccess,
        container: &ContainerId,
        after: Option<&FilePosition>,
        limit: usize,
    ) -> Result<ContainerFileList, StoreError> {
        let prefix = BlobKey::container_prefix(access.workspace_id(), container);
        let mut position = after.map(|FilePosition(path)| BlobKey::from_listing(format!("{prefix}{path}")));
        let (mut files, mut scanned): (Vec<ContainerFile>, usize) = (Vec::new(), 0);
        loop {
            // Objects that are no files are rare, and then many.
            let wanted = if scanned == 0 { limit.saturating_add(1) } else { SEARCH_PAGE.max(limit.saturating_add(1)) };
            let page = self.blobs.list(&prefix, position.as_ref(), wanted).await?;
            let is_last_page = page.len() < wanted;
            scanned += page.len();
            position = page.last().map(|object| object.key.clone()).or(position);
            files.extend(page.into_iter().filter_map(|object| file_below(&prefix, &object)));
            let is_full = files.len() > limit;
            if is_full || is_last_page || scanned >= MAX_SCANNED {
                files.truncate(limit);
                let has_more = is_full || !is_last_page;
                let stopped = position.filter(|_| has_more && !is_full);
                let stopped = stopped.and_then(|key| key.as_str().strip_prefix(&prefix).map(str::to_owned));
                let last = stopped.or_else(|| files.last().map(|file| file.path.as_str().to_owned()));
                return Ok(ContainerFileList { files, last: last.map(FilePosition), has_more });
            }
        }
    }

    /// Returns a file. `None` where the container has no such file.
    ///
    /// # Errors
    /// The store failed.
    pub async fn get(
        &self,
        access: ContentAccess,
        container: &ContainerId,
        path: &ContainerPath,
    ) -> Result<Option<ContainerFile>, StoreError> {
        let key = BlobKey::container_file(access.workspace_id(), container, path);
        Ok(self.blobs.stat(&key).await?.filter(|object| object.links == 1).map(|object| ContainerFile {
            path: path.clone(),
            size_bytes: object.size_bytes,
            modified_at: object.modified_at,
        }))
    }

    /// Opens a file for reading. `None` where the container has no such file. A file that is written meanwhile may be
    /// read as a mixture of its versions; a promotion copies one.
    ///
    /// # Errors
    /// The store failed.
    pub async fn open(
        &self,
        access: ContentAccess,
        container: &ContainerId,
        path: &ContainerPath,
    ) -> Result<Option<OpenBlob>, StoreError> {
        let key = BlobKey::container_file(access.workspace_id(), container, path);
        // Links are counted on the opened file, because the path may lead to another one by now.
        Ok(self.blobs.read(&key, None).await?.filter(|open| open.links == 1))
    }

    /// Deletes a file; returns false where the container has no such file.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delete(
        &self,
        access: ContentAccess,
        container: &ContainerId,
        path: &ContainerPath,
    ) -> Result<bool, StoreError> {
        if self.get(access, container, path).await?.is_none() {
            return Ok(false);
        }
        self.blobs.delete(&BlobKey::container_file(access.workspace_id(), container, path)).await
    }
}

/// Returns the file that an object is; `None` for objects that are no files.
fn file_below(prefix: &str, object: &BlobMeta) -> Option<ContainerFile> {
    let path = object.key.as_str().strip_prefix(prefix)?.parse().ok().filter(|_| object.links == 1)?;
    Some(ContainerFile { path, size_bytes: object.size_bytes, modified_at: object.modified_at })
}

#[cfg(test)]
mod tests;
