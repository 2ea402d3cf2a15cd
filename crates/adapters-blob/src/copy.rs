//! A copy in pieces, hashed on the way.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::container::{CopiedBlob, CopyOutcome};
use domain::error::StoreError;
use rustix::fd::OwnedFd;
use sha2::{Digest, Sha256};

use crate::partial::Partial;
use crate::tree::{self, Place, unavailable};

/// How much is in memory at a time, in bytes.
pub(crate) const PIECE: usize = 512 * 1024;

/// Tells a running copy that nobody waits for it any more.
#[derive(Clone, Default)]
pub(crate) struct GivenUp(Arc<AtomicBool>);

impl GivenUp {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Gives a copy up when it is dropped.
pub(crate) struct GiveUpOnDrop(pub(crate) GivenUp);

impl Drop for GiveUpOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

pub(crate) struct Copy<'a> {
    pub(crate) root: &'a OwnedFd,
    pub(crate) partial: &'a Arc<OwnedFd>,
    pub(crate) from: Option<Place<'a>>,
    pub(crate) to: Place<'a>,
    pub(crate) size_bytes: u64,
    pub(crate) given_up: GivenUp,
}

impl Copy<'_> {
    /// `between` is called after each piece.
    pub(crate) fn run(self, mut between: impl FnMut()) -> Result<CopyOutcome, StoreError> {
        let opened = match &self.from {
            Some(from) => tree::open_file(self.root, from)?,
            None => None,
        };
        let Some(mut source) = opened else { return Ok(CopyOutcome::SourceGone) };
        let before = source.metadata().map_err(unavailable)?;
        if before.len() != self.size_bytes {
            return Ok(CopyOutcome::SourceChanged);
        }
        let mut target = Partial::create(self.partial)?;
        let Some(copied) = self.transfer(&mut source, &mut target.file, &mut between)? else {
            return Ok(CopyOutcome::SourceChanged);
        };
        if state_of(&before) != state_of(&source.metadata().map_err(unavailable)?) {
            return Ok(CopyOutcome::SourceChanged);
        }
        target.finish(self.root, &self.to)?;
        Ok(CopyOutcome::Copied(copied))
    }

    /// `None` where the source does not have the bytes that it should have.
    fn transfer(
        &self,
        source: &mut File,
        target: &mut File,
        between: &mut impl FnMut(),
    ) -> Result<Option<CopiedBlob>, StoreError> {
        let mut piece = vec![0; PIECE];
        let (mut hash, mut head, mut seen) = (Sha256::new(), Vec::new(), 0_u64);
        loop {
            if self.given_up.is_set() {
                return Err(StoreError::unavailable("nobody waits for the copy any more"));
            }
            let length = match source.read(&mut piece) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(unavailable(error)),
            };
            let bytes = &piece[..length];
            if bytes.is_empty() {
                break;
            }
            seen += length as u64;
            if seen > self.size_bytes {
                return Ok(None);
            }
            let wanted = CopiedBlob::HEAD_BYTES - head.len();
            head.extend_from_slice(&bytes[..wanted.min(length)]);
            hash.update(bytes);
            target.write_all(bytes).map_err(unavailable)?;
            between();
        }
        let sha256 = format!("{}", Hex(&hash.finalize()));
        Ok((seen == self.size_bytes).then_some(CopiedBlob { sha256, head }))
    }
}

/// Changes whenever the content does.
fn state_of(metadata: &Metadata) -> (u64, i64, i64, i64, i64) {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec())
}

struct Hex<'a>(&'a [u8]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::path::Path;
    use std::time::Duration;

    /// Copies a file of four pieces; `between` runs after each piece with the path of the source.
    fn copy(given_up: GivenUp, mut between: impl FnMut(&Path)) -> (tempfile::TempDir, Result<CopyOutcome, StoreError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("from");
        std::fs::write(&path, vec![b'x'; 4 * PIECE]).unwrap();
        // Files are dated by a clock of a few milliseconds' grain.
        std::thread::sleep(Duration::from_millis(20));
        std::fs::create_dir(folder.path().join(tree::PARTIAL)).unwrap();
        let root = OwnedFd::from(File::open(folder.path()).unwrap());
        let partial = Arc::new(OwnedFd::from(File::open(folder.path().join(tree::PARTIAL)).unwrap()));
        let size_bytes = 4 * PIECE as u64;
        let (from, to) = (Place::of("from"), Place::of("to").unwrap());
        let copy = Copy { root: &root, partial: &partial, from, to, size_bytes, given_up };
        let outcome = copy.run(|| between(&path));
        let left = std::fs::read_dir(folder.path().join(tree::PARTIAL)).unwrap().count();
        assert_eq!(left, 0, "something half-written is left");
        (folder, outcome)
    }

    #[track_caller]
    fn assert_changed((folder, outcome): (tempfile::TempDir, Result<CopyOutcome, StoreError>)) {
        assert_eq!(outcome.unwrap(), CopyOutcome::SourceChanged);
        assert!(!folder.path().join("to").exists());
    }

    #[test]
    fn a_source_that_stays_as_it_is_is_copied() {
        let (folder, outcome) = copy(GivenUp::default(), |_| {});
        assert!(matches!(outcome.unwrap(), CopyOutcome::Copied(_)));
        assert_eq!(std::fs::read(folder.path().join("to")).unwrap(), vec![b'x'; 4 * PIECE]);
    }

    #[test]
    fn a_source_that_is_cut_short_on_the_way_has_changed() {
        assert_changed(copy(GivenUp::default(), |path| {
            OpenOptions::new().write(true).open(path).unwrap().set_len(PIECE as u64).unwrap();
        }));
    }

    #[test]
    fn a_source_that_grows_on_the_way_has_changed() {
        assert_changed(copy(GivenUp::default(), |path| {
            OpenOptions::new().append(true).open(path).unwrap().write_all(b"more").unwrap();
        }));
    }

    #[test]
    fn a_source_that_is_overwritten_in_place_has_changed() {
        assert_changed(copy(GivenUp::default(), |path| {
            OpenOptions::new().write(true).open(path).unwrap().write_all(b"y").unwrap();
        }));
    }

    #[test]
    fn a_copy_that_nobody_waits_for_ends() {
        let given_up = GivenUp::default();
        let mut pieces = 0;
        let (folder, outcome) = copy(given_up.clone(), |_| {
            pieces += 1;
            drop(GiveUpOnDrop(given_up.clone()));
        });
        assert!(matches!(outcome, Err(StoreError::Unavailable(_))));
        assert_eq!(pieces, 1);
        assert!(!folder.path().join("to").exists());
    }
}
