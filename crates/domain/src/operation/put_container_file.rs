//! Writes a file into a container.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::authority::{Authority, Restricted, Right};
use crate::container::{BlobKey, BlobStore, ByteSource, ContainerId, ContainerPath, PutBlobError};
use crate::error::{ErrorKind, StoreError};
use crate::file::ContainerFile;
use crate::naming::{NameError, ResourceName};
use crate::workspace::{WorkspaceError, WorkspaceRepository, choose_named};

/// The limits of container files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContainerLimits {
    /// The largest file.
    pub file_bytes: u64,
    /// The most files of a container.
    pub files: usize,
    /// The most bytes of a container.
    pub bytes: u64,
}

impl ContainerLimits {
    /// The limits of a container, with this largest file: 10,000 files and 10 GiB.
    pub fn with_file_bytes(file_bytes: u64) -> Self {
        Self { file_bytes, files: 10_000, bytes: 10 << 30 }
    }
}

/// Writes files into containers.
pub struct PutContainerFile {
    workspaces: Arc<dyn WorkspaceRepository>,
    blobs: Arc<dyn BlobStore>,
    limits: ContainerLimits,
    running: Arc<Mutex<HashMap<String, Running>>>,
}

/// The uploads that run in a container: their number, and the most bytes that they may write.
#[derive(Debug, Clone, Copy, Default)]
struct Running {
    files: usize,
    bytes: u64,
}

/// The place of a file.
#[derive(Debug, Clone, Copy)]
pub struct ContainerPlace<'a> {
    /// A name of the workspace; `None` is the default one, else the caller's only one.
    pub workspace: Option<&'a ResourceName>,
    /// The container.
    pub container: &'a ContainerId,
    /// The path.
    pub path: &'a ContainerPath,
}

/// The error of writing a file. Nothing is left behind, unless a store fails after the file was written.
#[derive(Debug, thiserror::Error)]
pub enum PutContainerFileError {
    /// The caller lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// The workspace does not exist for the caller, or the caller must name one.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The file is larger than permitted.
    #[error("the file is larger than {0} bytes")]
    TooLarge(u64),
    /// The container would have too many files.
    #[error("the container has {0} files, the most that it may have; delete some")]
    TooManyFiles(usize),
    /// The container would have too many bytes.
    #[error("the container may have {0} bytes, and the file does not fit; delete files")]
    ContainerFull(u64),
    /// A file is where a folder is needed.
    #[error("path: {0} is a file, and a file cannot be a folder, too")]
    PathConflict(String),
    /// A folder is at the path.
    #[error("path: {0} is a folder, which a file does not replace")]
    IsFolder(String),
    /// A folder, a link or a special file is in the way.
    #[error("path: a folder, a link or a special file is in the way, which a file does not replace")]
    Occupied,
    /// Another request deleted the file as soon as it was written.
    #[error("another request deleted the file while it was uploaded")]
    Deleted,
    /// The store has no names of this length.
    #[error("path: is too long for the object store")]
    NameTooLong,
    /// The store failed, or the bytes did not arrive.
    #[error("the file was not written")]
    Store(#[from] StoreError),
}

impl From<PutBlobError> for PutContainerFileError {
    fn from(error: PutBlobError) -> Self {
        match error {
            PutBlobError::NameTooLong => Self::NameTooLong,
            PutBlobError::Occupied => Self::Occupied,
            PutBlobError::Store(error) => Self::Store(error),
        }
    }
}

impl PutContainerFileError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Restricted(restricted) => restricted.kind(),
            Self::Workspace(error) => error.kind(),
            Self::Store(store) => store.kind(),
            Self::TooLarge(_) => ErrorKind::PayloadTooLarge,
            Self::TooManyFiles(_) | Self::ContainerFull(_) => ErrorKind::Forbidden,
            Self::PathConflict(_) | Self::IsFolder(_) | Self::Occupied | Self::Deleted => ErrorKind::Conflict,
            Self::NameTooLong => ErrorKind::InvalidRequest,
        }
    }
}

/// The objects that are read at once.
const LIST_PAGE: usize = 1_000;

impl PutContainerFile {
    /// Wires the ports.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>, blobs: Arc<dyn BlobStore>, limits: ContainerLimits) -> Self {
        Self { workspaces, blobs, limits, running: Arc::default() }
    }

    /// Writes a file, and replaces an existing one. `announced` is its size, if it is known before.
    ///
    /// Uploads of this process that run at once count with the most bytes that they may write: the announced size, or
    /// what is left in the container.
    ///
    /// # Errors
    /// See [`PutContainerFileError`].
    pub async fn execute(
        &self,
        by: &Authority,
        place: ContainerPlace<'_>,
        announced: Option<u64>,
        source: Box<dyn ByteSource>,
    ) -> Result<ContainerFile, PutContainerFileError> {
        by.check(Right::Write)?;
        let workspace = choose_named(&*self.workspaces, by, place.workspace).await?.id;
        let limits = self.limits;
        if announced.is_some_and(|bytes| bytes > limits.file_bytes) {
            return Err(PutContainerFileError::TooLarge(limits.file_bytes));
        }
        let prefix = BlobKey::container_prefix(workspace, place.container);
        // Begun before the container is read: a file that is written meanwhile counts here or there, or twice.
        let reserved = announced.unwrap_or(limits.file_bytes);
        let (mut place_taken, others) = RunningUpload::begin(&self.running, &prefix, reserved);
        let stored = self.read_container(&prefix, place.path).await?;
        if stored.files + others.files >= limits.files {
            return Err(PutContainerFileError::TooManyFiles(limits.files));
        }
        let full = PutContainerFileError::ContainerFull(limits.bytes);
        let left = limits.bytes.checked_sub(stored.bytes.saturating_add(others.bytes));
        let Some(left) = left.filter(|left| announced.is_none_or(|bytes| bytes <= *left)) else { return Err(full) };
        let most = reserved.min(left);
        place_taken.shrink(most);
        let key = BlobKey::container_file(workspace, place.container, place.path);
        let is_exceeded = Arc::new(AtomicBool::new(false));
        let source = Box::new(BoundedSource { source, left: most, is_exceeded: Arc::clone(&is_exceeded) });
        if let Err(error) = self.blobs.put(&key, source).await {
            return Err(match (is_exceeded.load(Ordering::Relaxed), announced) {
                (false, _) => error.into(),
                (true, None) if most < limits.file_bytes => full,
                (true, _) => PutContainerFileError::TooLarge(most),
            });
        }
        drop(place_taken);
        // The workspace may have been deleted meanwhile: its deletion removes the files that it sees, and this one is
        // either seen by it or sees it.
        if self.workspaces.find(workspace).await?.is_none() {
            self.blobs.delete(&key).await?;
            return Err(WorkspaceError::Name(NameError::Unknown).into());
        }
        let written = self.blobs.stat(&key).await?;
        let written = written.ok_or(PutContainerFileError::Deleted)?;
        let file = ContainerFile {
            path: place.path.clone(),
            size_bytes: written.size_bytes,
            modified_at: written.modified_at,
        };
        Ok(file)
    }

    /// Counts the files and bytes of a container without the file at `path`.
    async fn read_container(&self, prefix: &str, path: &ContainerPath) -> Result<Stored, PutContainerFileError> {
        let mut stored = Stored { files: 0, bytes: 0 };
        let mut after = None;
        loop {
            let page = self.blobs.list(prefix, after.as_ref(), LIST_PAGE).await?;
            for object in &page {
                let other = object.key.as_str().strip_prefix(prefix).unwrap_or_default();
                let is_inside =
                    |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
                if other == path.as_str() {
                    continue;
                }
                if is_inside(path.as_str(), other) {
                    return Err(PutContainerFileError::PathConflict(other.to_owned()));
                }
                if is_inside(other, path.as_str()) {
                    return Err(PutContainerFileError::IsFolder(path.as_str().to_owned()));
                }
                stored.files += 1;
                stored.bytes = stored.bytes.saturating_add(object.size_bytes);
            }
            if page.len() < LIST_PAGE || stored.files > self.limits.files {
                return Ok(stored);
            }
            after = page.last().map(|object| object.key.clone());
        }
    }
}

/// The files of a container besides the one that is written.
struct Stored {
    files: usize,
    bytes: u64,
}

/// An upload that counts in its container until it is dropped.
struct RunningUpload {
    running: Arc<Mutex<HashMap<String, Running>>>,
    prefix: String,
    bytes: u64,
}

impl RunningUpload {
    /// Begins an upload, and returns the others that run in its container.
    fn begin(running: &Arc<Mutex<HashMap<String, Running>>>, prefix: &str, bytes: u64) -> (Self, Running) {
        let mut all = running.lock().unwrap_or_else(PoisonError::into_inner);
        let of_container = all.entry(prefix.to_owned()).or_default();
        let others = *of_container;
        of_container.files += 1;
        of_container.bytes = of_container.bytes.saturating_add(bytes);
        (Self { running: Arc::clone(running), prefix: prefix.to_owned(), bytes }, others)
    }

    /// Counts it with fewer bytes than before.
    fn shrink(&mut self, bytes: u64) {
        let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_container) = all.get_mut(&self.prefix) {
            of_container.bytes = of_container.bytes.saturating_sub(self.bytes.saturating_sub(bytes));
        }
        self.bytes = bytes;
    }
}

impl Drop for RunningUpload {
    fn drop(&mut self) {
        let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_container) = all.get_mut(&self.prefix) {
            of_container.files = of_container.files.saturating_sub(1);
            of_container.bytes = of_container.bytes.saturating_sub(self.bytes);
            if of_container.files == 0 {
                all.remove(&self.prefix);
            }
        }
    }
}

/// Bytes that fail once there are more than permitted.
struct BoundedSource {
    source: Box<dyn ByteSource>,
    left: u64,
    is_exceeded: Arc<AtomicBool>,
}

#[async_trait]
impl ByteSource for BoundedSource {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let piece = self.source.next().await?;
        let bytes = piece.as_ref().map_or(0, |piece| piece.len() as u64);
        let Some(left) = self.left.checked_sub(bytes) else {
            self.is_exceeded.store(true, Ordering::Relaxed);
            return Err(StoreError::unavailable("the file is larger than permitted"));
        };
        self.left = left;
        Ok(piece)
    }
}

#[cfg(test)]
mod tests;
