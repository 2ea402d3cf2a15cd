//! The archive of a backup: its entries and its manifest.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::container::{ByteSource, OnePiece};
use domain::error::StoreError;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, mpsc};
use uuid::Uuid;

use crate::commands::prelude::*;

/// The block size of a tar archive; entries are padded to a multiple of it.
const BLOCK: usize = 512;
/// The compression level, a fast one.
const LEVEL: i32 = 1;
/// Bytes per read.
const PIECE: usize = 256 * 1024;
/// Pieces that are buffered ahead.
const READ_AHEAD: usize = 4;

/// Writes an archive entry by entry.
pub struct ArchiveWriter {
    output: zstd::Encoder<'static, BufWriter<File>>,
    progress: Progress,
}

impl ArchiveWriter {
    /// Creates the file with access for its owner only.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let mut output = zstd::Encoder::new(BufWriter::with_capacity(PIECE, file), LEVEL)?;
        output.include_checksum(true)?;
        Ok(Self { output, progress: Progress::bytes("Writing", None) })
    }

    /// Writes an entry of `size_bytes` bytes; returns their SHA-256 as lower-case hex.
    ///
    /// # Errors
    /// The source or the file failed, or the source has another size.
    pub async fn add(&mut self, name: &str, size_bytes: u64, source: &mut dyn ByteSource) -> anyhow::Result<String> {
        let mut header = tar::Header::new_ustar();
        header.set_path(name)?;
        header.set_size(size_bytes);
        header.set_mode(0o600);
        header.set_cksum();
        self.output.write_all(header.as_bytes())?;
        let (mut written, mut hash): (u64, _) = (0, Sha256::new());
        while let Some(piece) = source.next().await? {
            written += piece.len() as u64;
            hash.update(&piece);
            self.output.write_all(&piece)?;
            self.progress.add(piece.len());
        }
        anyhow::ensure!(written == size_bytes, "{name} has {written} bytes in place of {size_bytes}");
        let over = usize::try_from(written % BLOCK as u64)?;
        if over > 0 {
            self.output.write_all(&[0; BLOCK][over..])?;
        }
        Ok(hex(hash))
    }

    /// Writes an entry from memory.
    ///
    /// # Errors
    /// The file failed.
    pub async fn add_bytes(&mut self, name: &str, bytes: Vec<u8>) -> anyhow::Result<()> {
        self.add(name, bytes.len() as u64, &mut OnePiece::new(bytes)).await.map(drop)
    }

    /// Writes an entry from a file.
    ///
    /// # Errors
    /// One of the files failed.
    pub async fn add_file(&mut self, name: &str, path: &Path) -> anyhow::Result<()> {
        let file = File::open(path)?;
        let size_bytes = file.metadata()?.len();
        self.add(name, size_bytes, &mut FilePieces(file)).await.map(drop)
    }

    /// Completes and syncs the archive. Returns its size in bytes.
    ///
    /// # Errors
    /// The file failed.
    pub fn finish(mut self) -> io::Result<u64> {
        self.progress.end();
        self.output.write_all(&[0; 2 * BLOCK])?;
        let file = self.output.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }
}

/// Returns a digest as lower-case hex.
pub fn hex(hash: Sha256) -> String {
    domain::text::hex(&hash.finalize())
}

/// The pieces of a local file. Reads block the command's thread, which has no other work.
struct FilePieces(File);

#[async_trait]
impl ByteSource for FilePieces {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let mut piece = Vec::with_capacity(PIECE);
        Read::by_ref(&mut self.0).take(PIECE as u64).read_to_end(&mut piece).map_err(StoreError::unavailable)?;
        Ok((!piece.is_empty()).then_some(piece))
    }
}

/// An entry, or a piece of the previous entry.
enum Item {
    Entry { name: String, size_bytes: u64 },
    Piece(Vec<u8>),
}

type Items = Arc<Mutex<mpsc::Receiver<io::Result<Item>>>>;

/// Reads an archive entry by entry. A separate thread reads and decompresses.
pub struct ArchiveReader {
    items: Items,
}

/// An entry of an archive.
pub struct ArchiveEntry {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub content: EntryContent,
}

impl ArchiveReader {
    /// Opens an archive.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let progress = Progress::bytes("Reading", Some(file.metadata()?.len()));
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        tokio::task::spawn_blocking(move || {
            let sent = send_entries(progress.of_reader(file), &sender);
            progress.end();
            if let Err(error) = sent {
                // A dropped receiver needs no error.
                let _ = sender.blocking_send(Err(error));
            }
        });
        Ok(Self { items: Arc::new(Mutex::new(receiver)) })
    }

    /// Returns the next entry, after the previous one was read to its end; `None` at the end of a complete archive.
    ///
    /// # Errors
    /// The file cannot be read, is no archive, or is damaged.
    pub async fn next(&mut self) -> anyhow::Result<Option<ArchiveEntry>> {
        match self.items.lock().await.recv().await.transpose()? {
            None => Ok(None),
            Some(Item::Piece(_)) => anyhow::bail!("the entry before was not read to its end"),
            Some(Item::Entry { name, size_bytes }) => {
                let content = EntryContent::new(Arc::clone(&self.items), size_bytes);
                Ok(Some(ArchiveEntry { name, content }))
            }
        }
    }
}

fn send_entries(file: impl Read, sender: &mpsc::Sender<io::Result<Item>>) -> io::Result<()> {
    let closed = |_| io::Error::other("the reader of the archive is gone");
    let mut archive = tar::Archive::new(zstd::Decoder::new(BufReader::with_capacity(PIECE, file))?);
    let mut is_empty = true;
    // Raw entries: extensions for long names are read into memory whole, and a backup has none.
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        is_empty = false;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if entry.header().entry_type() != tar::EntryType::Regular {
            return Err(io::Error::other(format!("{name} is not a file")));
        }
        let size_bytes = entry.size();
        sender.blocking_send(Ok(Item::Entry { name, size_bytes })).map_err(closed)?;
        let mut remaining = size_bytes;
        while remaining > 0 {
            let mut piece = Vec::with_capacity(usize::try_from(remaining.min(PIECE as u64)).unwrap_or(PIECE));
            Read::by_ref(&mut entry).take(PIECE as u64).read_to_end(&mut piece)?;
            if piece.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            remaining = remaining.saturating_sub(piece.len() as u64);
            sender.blocking_send(Ok(Item::Piece(piece))).map_err(closed)?;
        }
    }
    if is_empty {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // The checksum follows the end of the archive.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map(drop)
}

/// The bytes of an entry. Clones share the state, so that the hash can be read after a store has consumed the source.
#[derive(Clone)]
pub struct EntryContent {
    items: Items,
    state: Arc<Mutex<ReadState>>,
}

struct ReadState {
    remaining: u64,
    hash: Sha256,
}

impl EntryContent {
    fn new(items: Items, size_bytes: u64) -> Self {
        Self { items, state: Arc::new(Mutex::new(ReadState { remaining: size_bytes, hash: Sha256::new() })) }
    }

    /// Returns the SHA-256 of the bytes read so far, as lower-case hex.
    pub async fn sha256(&self) -> String {
        hex(self.state.lock().await.hash.clone())
    }

    /// Reads all bytes of a small entry.
    ///
    /// # Errors
    /// The archive is damaged, or the entry has more than `most` bytes.
    pub async fn read_all(mut self, most: u64) -> anyhow::Result<Vec<u8>> {
        anyhow::ensure!(self.state.lock().await.remaining <= most, "the entry is too large");
        let mut bytes = Vec::new();
        while let Some(piece) = self.next().await? {
            bytes.extend(piece);
        }
        Ok(bytes)
    }

    /// Writes the bytes into a file and syncs it.
    ///
    /// # Errors
    /// The archive is damaged, or the file cannot be written.
    pub async fn write_into(mut self, file: &mut File) -> anyhow::Result<()> {
        while let Some(piece) = self.next().await? {
            file.write_all(&piece)?;
        }
        Ok(file.sync_all()?)
    }
}

#[async_trait]
impl ByteSource for EntryContent {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let mut state = self.state.lock().await;
        if state.remaining == 0 {
            return Ok(None);
        }
        match self.items.lock().await.recv().await {
            Some(Ok(Item::Piece(piece))) => {
                state.remaining = state.remaining.saturating_sub(piece.len() as u64);
                state.hash.update(&piece);
                Ok(Some(piece))
            }
            Some(Err(error)) => Err(damaged(&error)),
            Some(Ok(Item::Entry { .. })) | None => Err(damaged(&"the archive ends within an entry")),
        }
    }
}

/// Returns the error of an archive whose bytes cannot be read: no store is to blame.
fn damaged(reason: &dyn fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("the backup is damaged, or its file cannot be read: {reason}"))
}

/// The version of the archive layout of this program.
pub const FORMAT: u32 = 1;
/// The maximum size of a manifest in bytes.
pub const MAX_BYTES: u64 = 64 * 1024;

/// The description of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the archive layout.
    pub format: u32,
    /// The version of the program that created the backup.
    pub tollgate: String,
    /// The start of the backup.
    pub created_at: DateTime<Utc>,
    /// The identity of the database.
    pub database_id: Uuid,
    /// The running processes whose charges are missing.
    pub unfolded: Vec<Uuid>,
}

impl Manifest {
    /// Creates the manifest of a new backup.
    pub fn new(created_at: DateTime<Utc>, database_id: Uuid, unfolded: Vec<Uuid>) -> Self {
        Self { format: FORMAT, tollgate: env!("CARGO_PKG_VERSION").to_owned(), created_at, database_id, unfolded }
    }

    /// Describes the charges that are missing.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        self.unfolded.iter().map(|process| {
            format!("charges of the process {process} are missing: they waited in its journal during the backup")
        })
    }

    /// Parses the first entry of an archive.
    ///
    /// # Errors
    /// The text is no manifest, or has a newer layout.
    pub fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
            tollgate: String,
        }
        let version: Version = serde_json::from_slice(bytes).context("not a Tollgate backup")?;
        if version.format != FORMAT {
            bail!(
                "the backup has format {}, written by tollgate {}; this program reads format {FORMAT}",
                version.format,
                version.tollgate
            );
        }
        serde_json::from_slice(bytes).context("the description of the backup is damaged")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes an archive of these entries.
    async fn archive(entries: &[(&str, Vec<u8>)]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar.zst");
        let mut writer = ArchiveWriter::create(&path).unwrap();
        for (name, bytes) in entries {
            writer.add_bytes(name, bytes.clone()).await.unwrap();
        }
        let size = writer.finish().unwrap();
        assert_eq!(size, std::fs::metadata(&path).unwrap().len());
        (folder, path)
    }

    async fn read(path: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        let mut reader = ArchiveReader::open(path)?;
        let mut found = Vec::new();
        while let Some(ArchiveEntry { name, content }) = reader.next().await? {
            found.push((name, content.read_all(u64::MAX).await?));
        }
        Ok(found)
    }

    fn samples() -> Vec<(&'static str, Vec<u8>)> {
        let large = (0..PIECE * 2 + 7).map(|n| u8::try_from(n * 31 % 251).unwrap()).collect();
        vec![("empty", Vec::new()), ("block", vec![7; BLOCK]), ("folder/large", large), ("last", b"x".to_vec())]
    }

    #[tokio::test]
    async fn archive_returns_what_was_written() {
        let (_folder, path) = archive(&samples()).await;
        let expected: Vec<_> = samples().into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
        assert_eq!(read(&path).await.unwrap(), expected);
        assert!(ArchiveWriter::create(&path).is_err(), "an existing file is never replaced");
    }

    #[tokio::test]
    async fn truncated_or_modified_archive_is_rejected() {
        let (_folder, path) = archive(&samples()).await;
        let whole = std::fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(whole.len() / 50 + 1) {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(read(&path).await.is_err(), "cut to {length} of {}", whole.len());
        }
        for place in (0..whole.len()).step_by(whole.len() / 50 + 1) {
            let mut changed = whole.clone();
            changed[place] ^= 0x10;
            std::fs::write(&path, &changed).unwrap();
            assert!(read(&path).await.is_err(), "changed at {place} of {}", whole.len());
        }
    }

    #[tokio::test]
    async fn add_fails_when_source_has_other_size() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = ArchiveWriter::create(&folder.path().join("a")).unwrap();
        let error = writer.add("x", 3, &mut OnePiece::new(*b"four")).await.unwrap_err();
        assert_eq!(error.to_string(), "x has 4 bytes in place of 3");
    }

    #[test]
    fn parse_accepts_own_manifest_and_rejects_others() {
        let manifest = Manifest::new(DateTime::UNIX_EPOCH, Uuid::from_u128(7), Vec::new());
        let bytes = serde_json::to_vec(&manifest).unwrap();
        assert_eq!(Manifest::parse(&bytes).unwrap(), manifest);
        let error = |bytes: &[u8]| Manifest::parse(bytes).unwrap_err().to_string();
        assert_eq!(error(b"PK"), "not a Tollgate backup");
        assert_eq!(
            error(br#"{"format": 2, "tollgate": "9.1.0"}"#),
            "the backup has format 2, written by tollgate 9.1.0; this program reads format 1"
        );
    }
}
