//! A segment file for writing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, SegmentFile};
use crate::format::{HEADER_BYTES, Header, Origin};

const EXTENSION: &str = "segment";

/// A segment that is appended to.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) file: Arc<dyn SegmentFile>,
    end: u64,
    capacity: u64,
}

impl Segment {
    /// Creates a segment with all blocks allocated and a synced header.
    pub(crate) fn create(
        disk: &dyn Disk,
        folder: &Path,
        origin: Origin,
        number: u64,
        capacity: u64,
    ) -> io::Result<Self> {
        let path = segment_path(folder, number);
        let file = disk.create(&path, capacity)?;
        let written = file.write_at(&Header { number, origin }.encode(), 0).and_then(|()| file.sync());
        if let Err(error) = written {
            std::fs::remove_file(&path).ok();
            return Err(error);
        }
        Ok(Self { number, file, end: HEADER_BYTES as u64, capacity })
    }

    /// Returns true until the first entry is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.end == HEADER_BYTES as u64
    }

    /// Returns the remaining bytes.
    pub(crate) fn room(&self) -> u64 {
        self.capacity - self.end
    }

    /// Appends bytes and returns their offset. A failed write is repeated once at the same offset.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let offset = self.end;
        if bytes.len() as u64 > self.room() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write_at(bytes, offset).or_else(|_| self.file.write_at(bytes, offset))?;
        self.end += bytes.len() as u64;
        Ok(offset)
    }
}

/// Returns the path of a segment.
pub(crate) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:016}.{EXTENSION}"))
}

/// Returns the segments of a folder, by number.
pub(crate) fn list_segments(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut segments = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let Some(number) = number
            && path.extension().is_some_and(|extension| extension == EXTENSION)
        {
            segments.push((number, path));
        }
    }
    segments.sort();
    Ok(segments)
}
