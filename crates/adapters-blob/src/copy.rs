//! Copy of a file in pieces, with its hash.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::container::{CopiedBlob, CopyOutcome};
use domain::error::StoreError;
use rustix::fd::OwnedFd;
use sha2::{Digest, Sha256};

use crate::partial::PartialFile;
use crate::source::{BUFFER_BYTES, Hash, Source, read};
use crate::tree::{ObjectPath, unavailable};

/// A flag that cancels a running copy.
#[derive(Clone, Default)]
pub(crate) struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Cancels a copy on drop.
pub(crate) struct CancelOnDrop(pub(crate) CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

pub(crate) struct CopyTask<'a> {
    pub(crate) root: &'a OwnedFd,
    pub(crate) partial: &'a Arc<OwnedFd>,
    pub(crate) from: ObjectPath<'a>,
    pub(crate) to: ObjectPath<'a>,
    pub(crate) cancelled: CancelFlag,
}

impl CopyTask<'_> {
    /// Copies a source that was unchanged for the quiet period since it was opened. `between` is called after each
    /// piece.
    pub(crate) fn run(self, mut source: Source, mut between: impl FnMut()) -> Result<CopyOutcome, StoreError> {
        if !source.is_unchanged()? || !source.is_named(self.root, &self.from)? {
            return Ok(CopyOutcome::SourceChanged);
        }
        let mut target = PartialFile::create(self.partial)?;
        let Some((hash, head)) = self.transfer(&mut source, &mut target.file, &mut between)? else {
            return Ok(CopyOutcome::SourceChanged);
        };
        // The second read comes after the sync of the copy, which gives a concurrent writer time to become visible.
        target.file.sync_all().map_err(unavailable)?;
        let is_same = source.reads_as(&hash, || self.cancelled.is_set())?;
        if self.cancelled.is_set() {
            return Err(abandoned());
        }
        // A writer that pauses within a version changes neither the time nor the content.
        if !is_same || source.has_writer() || !source.is_unchanged()? {
            return Ok(CopyOutcome::SourceChanged);
        }
        target.finish(self.root, &self.to)?;
        Ok(CopyOutcome::Copied(CopiedBlob { sha256: format!("{}", Hex(&hash)), head }))
    }

    /// Copies the bytes; `None` if the length of the source differs from the expected one.
    fn transfer(
        &self,
        source: &mut Source,
        target: &mut File,
        between: &mut impl FnMut(),
    ) -> Result<Option<(Hash, Vec<u8>)>, StoreError> {
        let mut piece = vec![0; BUFFER_BYTES];
        let (mut hash, mut head, mut seen) = (Sha256::new(), Vec::new(), 0_u64);
        loop {
            if self.cancelled.is_set() {
                return Err(abandoned());
            }
            let length = read(&mut source.file, &mut piece)?;
            let bytes = &piece[..length];
            if bytes.is_empty() {
                break;
            }
            seen += length as u64;
            if seen > source.size() {
                return Ok(None);
            }
            let wanted = CopiedBlob::HEAD_BYTES - head.len();
            head.extend_from_slice(&bytes[..wanted.min(length)]);
            hash.update(bytes);
            target.write_all(bytes).map_err(unavailable)?;
            between();
        }
        Ok((seen == source.size()).then(|| (hash.finalize().into(), head)))
    }
}

fn abandoned() -> StoreError {
    StoreError::unavailable("the copy was cancelled")
}

struct Hex<'a>(&'a [u8]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests;
