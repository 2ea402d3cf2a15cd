//! The blob store port over a folder.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::container::{BlobKey, BlobMeta, BlobStore, ByteSource, CopyOutcome, OpenBlob};
use domain::error::StoreError;
use domain::system::HealthProbe;
use rustix::fd::OwnedFd;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::copy::{CancelFlag, CancelOnDrop, CopyTask};
use crate::listing::Listing;
use crate::partial::{self, PartialFile};
use crate::reader::FileReader;
use crate::root::Root;
use crate::source::{BUFFER_BYTES, OpenResult, Source};
use crate::tree::{self, CreatedFolders, ObjectPath, PARTIAL, unavailable};

/// Stores objects as files under one folder, at the path that the key spells. Unix only.
///
/// The folder is opened once. If its path later leads elsewhere (moved, replaced or mounted over), every operation
/// fails as unavailable. Symbolic links below the folder are never followed.
#[derive(Clone)]
pub struct LocalBlobStore {
    root: Arc<Root>,
    partial: Arc<OwnedFd>,
    quiet_period: Duration,
}

/// The longest duration of a probe; the port allows two seconds.
const PROBE: Duration = Duration::from_millis(1_500);

impl LocalBlobStore {
    /// Opens the folder and creates missing folders. `root` itself may be a link.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the folder cannot be created or opened.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let root = Root::open(root)?;
        let mut created = CreatedFolders::default();
        let partial = tree::make_folder(&root.folder, &[PARTIAL], &mut created)?;
        created.keep();
        Ok(Self { root: Arc::new(root), partial: Arc::new(partial), quiet_period: Self::QUIET_PERIOD })
    }

    /// The default of [`Self::with_quiet_period`].
    pub const QUIET_PERIOD: Duration = Duration::from_millis(100);

    /// Sets the time for which a file must be unchanged before it is copied. It must exceed the time granularity of the
    /// file system.
    #[must_use]
    pub fn with_quiet_period(self, quiet_period: Duration) -> Self {
        Self { quiet_period, ..self }
    }

    /// Opens the source of a copy and waits until it was unchanged for the quiet period.
    async fn quiet_source(&self, key: &BlobKey, size_bytes: u64) -> Result<Result<Source, CopyOutcome>, StoreError> {
        let key = key.clone();
        let opened = self.blocking(move |store| match ObjectPath::of(key.as_str()) {
            Some(place) => Source::open(&store.root.folder, &place, store.quiet_period),
            None => Ok(OpenResult::Absent),
        });
        Ok(match opened.await? {
            OpenResult::Absent => Err(CopyOutcome::SourceGone),
            OpenResult::Linked { links } => Err(CopyOutcome::SourceLinked { links }),
            OpenResult::After(_, source) if source.size() != size_bytes => Err(CopyOutcome::SourceChanged),
            OpenResult::After(wait, source) => {
                tokio::time::sleep(wait).await;
                Ok(source)
            }
        })
    }

    /// Runs blocking file work, and fails if the folder is not at its path before and after.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.clone();
        let checked = move || {
            store.root.check()?;
            let done = work(&store)?;
            // Work in a folder that was moved in between is not acknowledged.
            store.root.check().map(|()| done)
        };
        tokio::task::spawn_blocking(checked).await.map_err(StoreError::unavailable)?
    }
}

fn place(key: &BlobKey) -> Result<ObjectPath<'_>, StoreError> {
    ObjectPath::of(key.as_str()).ok_or_else(|| StoreError::unavailable("no file can have that key"))
}

#[async_trait]
impl BlobStore for LocalBlobStore {
    async fn stat(&self, key: &BlobKey) -> Result<Option<BlobMeta>, StoreError> {
        let key = key.clone();
        self.blocking(move |store| {
            let Some(place) = ObjectPath::of(key.as_str()) else { return Ok(None) };
            let Some(folder) = tree::open_folder(&store.root.folder, &place.folders)? else { return Ok(None) };
            let found = tree::stat_in(&folder, place.name)?.map(|stat| tree::size_and_time(&stat));
            Ok(found.map(|(size_bytes, modified_at)| BlobMeta { key, size_bytes, modified_at }))
        })
        .await
    }

    async fn copy(&self, from: &BlobKey, to: &BlobKey, size_bytes: u64) -> Result<CopyOutcome, StoreError> {
        let (from, to) = (from.clone(), to.clone());
        let cancelled = CancelFlag::default();
        let _guard = CancelOnDrop(cancelled.clone());
        let source = match self.quiet_source(&from, size_bytes).await? {
            Ok(source) => source,
            Err(outcome) => return Ok(outcome),
        };
        self.blocking(move |store| {
            let (from, to) = (place(&from)?, place(&to)?);
            CopyTask { root: &store.root.folder, partial: &store.partial, from, to, cancelled }.run(source, || {})
        })
        .await
    }

    async fn put(&self, key: &BlobKey, mut source: Box<dyn ByteSource>) -> Result<u64, StoreError> {
        place(key)?;
        let mut target = self.blocking(|store| PartialFile::create(&store.partial)).await?;
        let (mut size, mut gathered) = (0, Vec::with_capacity(BUFFER_BYTES));
        loop {
            let piece = source.next().await?;
            let at_end = piece.is_none();
            let piece = piece.unwrap_or_default();
            size += piece.len() as u64;
            gathered.extend_from_slice(&piece);
            if gathered.len() >= BUFFER_BYTES || (at_end && !gathered.is_empty()) {
                (target, gathered) = self
                    .blocking(move |_| {
                        target.file.write_all(&gathered).map_err(unavailable)?;
                        gathered.clear();
                        Ok((target, gathered))
                    })
                    .await?;
            }
            if at_end {
                break;
            }
        }
        let key = key.clone();
        self.blocking(move |store| target.finish(&store.root.folder, &place(&key)?)).await?;
        Ok(size)
    }

    async fn read(&self, key: &BlobKey) -> Result<Option<OpenBlob>, StoreError> {
        let key = key.clone();
        let opened = self.blocking(move |store| {
            let Some(place) = ObjectPath::of(key.as_str()) else { return Ok(None) };
            let Some(file) = tree::open_file(&store.root.folder, &place)? else { return Ok(None) };
            let size_bytes = file.metadata().map_err(unavailable)?.len();
            Ok(Some((file, size_bytes)))
        });
        let open = |(file, size_bytes)| OpenBlob { size_bytes, source: Box::new(FileReader::new(file, size_bytes)) };
        Ok(opened.await?.map(open))
    }

    async fn delete(&self, key: &BlobKey) -> Result<(), StoreError> {
        let key = key.clone();
        self.blocking(move |store| {
            let Some(place) = ObjectPath::of(key.as_str()) else { return Ok(()) };
            let Some(folder) = tree::open_folder(&store.root.folder, &place.folders)? else { return Ok(()) };
            if tree::stat_in(&folder, place.name)?.is_none() {
                return Ok(());
            }
            match rustix::fs::unlinkat(&folder, place.name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(error) => Err(unavailable(error)),
            }
        })
        .await
    }

    async fn list<'a>(
        &self,
        prefix: &str,
        after: Option<&'a BlobKey>,
        limit: usize,
    ) -> Result<Vec<BlobMeta>, StoreError> {
        let (prefix, after) = (prefix.to_owned(), after.cloned());
        self.blocking(move |store| {
            let names = prefix.strip_suffix('/').map(tree::segments);
            let Some(names) = (if prefix.is_empty() { Some(Vec::new()) } else { names.flatten() }) else {
                return Ok(Vec::new());
            };
            let Some(folder) = tree::open_folder(&store.root.folder, &names)? else { return Ok(Vec::new()) };
            let mut listing = Listing { after: after.as_ref().map(BlobKey::as_str), limit, found: Vec::new() };
            listing.walk(&folder, &prefix)?;
            Ok(listing.found)
        })
        .await
    }

    async fn sweep_partial(&self, older_than: Duration) -> Result<u64, StoreError> {
        self.blocking(move |store| partial::sweep(&store.partial, older_than)).await
    }
}

#[async_trait]
impl HealthProbe for LocalBlobStore {
    fn name(&self) -> &'static str {
        "blobs"
    }

    /// Writes and removes a file.
    async fn probe(&self) -> Result<(), StoreError> {
        let write = self.blocking(|store| {
            let mut probe = PartialFile::create(&store.partial)?;
            probe.file.write_all(b"probe").map_err(unavailable)
        });
        tokio::time::timeout(PROBE, write).await.map_err(StoreError::unavailable)?
    }
}
