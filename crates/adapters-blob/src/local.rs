//! The blob store port over a folder.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use domain::container::{BlobKey, BlobMeta, BlobStore, ByteSource, CopyOutcome, OpenBlob, PutBlobError};
use domain::error::StoreError;
use domain::system::HealthProbe;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use crate::copy::{self, CancelFlag, CancelOnDrop, CopyTask, PartialFile};
use crate::source::{BUFFER_BYTES, OpenResult, Source};
use crate::tree::{self, CreatedFolders, ObjectPath, PARTIAL, Root, unavailable};

/// Stores objects as files under one folder, at the path that the key spells. Unix only.
///
/// The folder is opened once. If its path later leads elsewhere (moved, replaced or mounted over), every operation
/// fails as unavailable. Symbolic links below the folder are never followed.
#[derive(Clone)]
pub struct LocalBlobStore {
    /// The reason why there is none, for a folder that did not exist.
    folder: Result<Arc<OpenFolder>, Arc<str>>,
    quiet_period: Duration,
}

/// The opened folder, and that of partial files.
struct OpenFolder {
    root: Root,
    partial: OnceLock<Arc<OwnedFd>>,
}

impl OpenFolder {
    fn new(root: Root) -> Self {
        Self { root, partial: OnceLock::new() }
    }

    /// Returns the folder of partial files, and creates it if it is missing.
    fn partial(&self) -> Result<&Arc<OwnedFd>, StoreError> {
        if let Some(partial) = self.partial.get() {
            return Ok(partial);
        }
        let mut created = CreatedFolders::default();
        let partial = tree::make_folder(&self.root.folder, &[PARTIAL], &mut created)?;
        let partial = partial.ok_or_else(|| StoreError::unavailable("the folder of partial files was removed"))?;
        created.keep();
        Ok(self.partial.get_or_init(|| Arc::new(partial)))
    }
}

/// The longest duration of a probe; the port allows two seconds.
const PROBE: Duration = Duration::from_millis(1_500);

impl LocalBlobStore {
    /// Opens the folder and creates missing folders. `root` itself may be a link.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the folder cannot be created or opened.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let folder = OpenFolder::new(Root::create(root)?);
        folder.partial()?;
        Ok(Self { folder: Ok(Arc::new(folder)), quiet_period: Self::QUIET_PERIOD })
    }

    /// Opens the folder and creates nothing. Without the folder every operation fails as unavailable.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the folder exists and cannot be opened.
    pub fn open_existing(root: &Path) -> Result<Self, StoreError> {
        let missing = || {
            let shown = root.display();
            format!("the blobs folder {shown} does not exist: move it back, or start the server to create an empty one")
        };
        let folder = Root::open(root)?.map(|root| Arc::new(OpenFolder::new(root)));
        Ok(Self { folder: folder.ok_or_else(|| missing().into()), quiet_period: Self::QUIET_PERIOD })
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
        let (key, quiet_period) = (key.clone(), self.quiet_period);
        let opened = self.blocking(move |store| match ObjectPath::of(key.as_str()) {
            Some(place) => Source::open(&store.root.folder, &place, quiet_period),
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
        work: impl FnOnce(&OpenFolder) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.folder.clone().map_err(|missing| StoreError::unavailable(&*missing))?;
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
            Ok(tree::stat_in(&folder, place.name)?.map(|stat| tree::meta(key, &stat)))
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
            CopyTask { root: &store.root.folder, partial: store.partial()?, from, to, cancelled }.run(source, || {})
        })
        .await
    }

    async fn put(&self, key: &BlobKey, mut source: Box<dyn ByteSource>) -> Result<u64, PutBlobError> {
        place(key)?;
        let mut target = self.blocking(|store| PartialFile::create(store.partial()?)).await?;
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
        self.blocking(move |store| Ok(target.finish(&store.root.folder, &place(&key)?))).await??;
        Ok(size)
    }

    async fn read(&self, key: &BlobKey, range: Option<Range<u64>>) -> Result<Option<OpenBlob>, StoreError> {
        let key = key.clone();
        self.blocking(move |store| {
            let Some(place) = ObjectPath::of(key.as_str()) else { return Ok(None) };
            let Some(mut file) = tree::open_file(&store.root.folder, &place)? else { return Ok(None) };
            let metadata = file.metadata().map_err(unavailable)?;
            let (size_bytes, links) = (metadata.len(), metadata.nlink());
            let Range { start, end } = range.unwrap_or(0..size_bytes);
            file.seek(SeekFrom::Start(start)).map_err(unavailable)?;
            let source = Box::new(FileReader::new(file, end.saturating_sub(start)));
            Ok(Some(OpenBlob { size_bytes, links, source }))
        })
        .await
    }

    async fn delete(&self, key: &BlobKey) -> Result<bool, StoreError> {
        let key = key.clone();
        self.blocking(move |store| {
            let Some(place) = ObjectPath::of(key.as_str()) else { return Ok(false) };
            let Some(folder) = tree::open_folder(&store.root.folder, &place.folders)? else { return Ok(false) };
            if tree::stat_in(&folder, place.name)?.is_none() {
                return Ok(false);
            }
            match rustix::fs::unlinkat(&folder, place.name, AtFlags::empty()) {
                Ok(()) => {}
                Err(Errno::NOENT) => return Ok(false),
                Err(error) => return Err(unavailable(error)),
            }
            // The object is deleted; a failure to remove its folders changes nothing about that.
            if let Err(error) = tree::remove_empty_folders(&store.root.folder, &place.folders) {
                let error: &(dyn std::error::Error + 'static) = &error;
                tracing::warn!(error, "empty folders of a deleted object not removed");
            }
            Ok(true)
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
        self.blocking(move |store| copy::sweep(store.partial()?, older_than)).await
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
            let mut probe = PartialFile::create(store.partial()?)?;
            probe.file.write_all(b"probe").map_err(unavailable)
        });
        tokio::time::timeout(PROBE, write).await.map_err(StoreError::unavailable)?
    }
}

pub(crate) struct Listing<'a> {
    pub(crate) after: Option<&'a str>,
    pub(crate) limit: usize,
    pub(crate) found: Vec<BlobMeta>,
}

impl Listing<'_> {
    /// Walks a folder whose keys begin with `path`, which is empty or ends with a slash.
    pub(crate) fn walk(&mut self, folder: &OwnedFd, path: &str) -> Result<(), StoreError> {
        for name in self.sorted_names(folder, path)? {
            if self.found.len() >= self.limit {
                return Ok(());
            }
            let key = format!("{path}{name}");
            if let Some(folder_name) = name.strip_suffix('/') {
                if let Some(inner) = tree::open_folder_in(folder, folder_name)? {
                    self.walk(&inner, &key)?;
                }
            } else if let Some(stat) = tree::stat_in(folder, &name)? {
                self.found.push(tree::meta(BlobKey::from_listing(key), &stat));
            }
        }
        Ok(())
    }

    /// Returns the names that may contain keys of this listing. Folder names end with a slash, so that they sort like
    /// the keys inside.
    fn sorted_names(&self, folder: &OwnedFd, path: &str) -> Result<Vec<String>, StoreError> {
        let mut names = Vec::new();
        for entry in Dir::read_from(folder).map_err(unavailable)? {
            let entry = entry.map_err(unavailable)?;
            // Keys are always UTF-8.
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") || (path.is_empty() && name == PARTIAL) {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => kind_of(folder, name)?,
                known => known,
            };
            let name = match kind {
                FileType::Directory => format!("{name}/"),
                FileType::RegularFile => name.to_owned(),
                _ => continue,
            };
            if self.may_follow(&format!("{path}{name}")) {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns true if the key, or a key inside the folder, sorts after `after`.
    fn may_follow(&self, key: &str) -> bool {
        self.after.is_none_or(|after| key > after || (key.ends_with('/') && after.starts_with(key)))
    }
}

/// Reads the file type on file systems that omit it in directory entries.
fn kind_of(folder: &OwnedFd, name: &str) -> Result<FileType, StoreError> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode)),
        Err(Errno::NOENT) => Ok(FileType::Unknown),
        Err(error) => Err(unavailable(error)),
    }
}

/// The bytes of an object that are read at once. A download that its client does not read keeps them in memory.
const READ_BYTES: usize = 128 * 1024;

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
        let wanted = self.remaining.min(READ_BYTES as u64);
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::with_capacity(usize::try_from(wanted).unwrap_or(READ_BYTES));
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
