//! Copies the unreadable parts of a journal.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::disk::sync_parent;
use crate::error::JournalError;
use crate::fault_points::reach;
use crate::reader::Gap;
use crate::segment_file::open_regular;

/// Copies the bytes of gaps into a folder, one file each, and returns the files. Existing copies are kept, so that a
/// repeated recovery adds no files.
///
/// # Errors
/// [`JournalError::Folder`].
pub fn quarantine_gaps(gaps: &[Gap], process: uuid::Uuid, folder: &Path) -> Result<Vec<PathBuf>, JournalError> {
    let mut files = Vec::new();
    for (segment, range) in gaps.iter().filter_map(|gap| gap.bytes.as_ref()).filter(|(_, range)| !range.is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(JournalError::folder(folder))?;
        let name = segment.file_stem().and_then(|stem| stem.to_str()).unwrap_or("segment");
        let path = folder.join(format!("{process}-{name}-{}", range.start));
        let mut options = OpenOptions::new();
        let mut target = match options.write(true).create_new(true).mode(0o600).open(&path) {
            Ok(target) => target,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(JournalError::folder(path)(error)),
        };
        reach("quarantine file created");
        let copied = open_regular(segment, OFlags::RDONLY).and_then(|source| {
            // It is no file any more.
            let Ok(mut source) = source else { return Ok(()) };
            source.seek(SeekFrom::Start(range.start))?;
            std::io::copy(&mut source.take(range.end - range.start), &mut target)?;
            reach("quarantine file written");
            target.sync_all()?;
            sync_parent(&path)
        });
        if let Err(error) = copied {
            // The next recovery would take a partial copy for a complete one.
            fs::remove_file(&path).ok();
            return Err(JournalError::folder(path)(error));
        }
        files.push(path);
    }
    Ok(files)
}
