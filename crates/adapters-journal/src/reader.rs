//! Reads a folder: every entry with a valid checksum, in order, each once, and the gaps between them.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::error::JournalError;
use crate::fault_points::reach;
use crate::format::{Entry, HEADER_BYTES, Header, HeaderFault, decode_entry, entry_bytes};
use crate::segment::list_segments;

/// The largest payload that is looked for; settings bound what is written far below.
const MAX_PAYLOAD_BYTES: usize = 16 << 20;
/// The farthest jump of the sequence across damaged bytes that is believed.
const MAX_JUMP: u64 = 1 << 32;

/// The result of reading a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// The entries that were visited.
    pub entries: u64,
    /// The number of the first.
    pub first_sequence: Option<u64>,
    /// The number of the last.
    pub last_sequence: Option<u64>,
    /// The missing and unreadable parts.
    pub gaps: Vec<Gap>,
    /// The bytes of a torn end: a write that the death of the process or of the machine cut off.
    pub torn_bytes: u64,
    /// The boots of the machine during which segments were written.
    pub boots: Vec<Uuid>,
}

/// A part of the journal that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The reason.
    pub reason: GapReason,
    /// The sequence numbers that are missing; empty where none is known to be.
    pub sequences: Range<u64>,
    /// The damaged bytes: a segment file and offsets in it. `None` where a segment is missing.
    pub bytes: Option<(PathBuf, Range<u64>)>,
}

/// The reason why a part of a journal cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapReason {
    /// Bytes that are no entry lie before an entry.
    Damaged,
    /// Numbers are missing, and no damaged bytes lie where they were.
    Missing,
    /// The segment was written for another store.
    ForeignStore(Uuid),
    /// The segment was written by another process.
    ForeignProcess(Uuid),
    /// The segment has another version of the format.
    Version(u32),
}

/// Reads the folder of a process and visits its entries by sequence number.
///
/// # Errors
/// [`JournalError::Folder`] where a file cannot be read, and the errors of `visit`.
pub fn read_folder<E: From<JournalError>>(
    folder: &Path,
    store: Uuid,
    process: Uuid,
    visit: impl FnMut(Entry<'_>) -> Result<(), E>,
) -> Result<ReadReport, E> {
    let segments = list_segments(folder).map_err(JournalError::folder(folder))?;
    let read = |(_, path): (u64, PathBuf)| read_written(&path).map(|bytes| (path, bytes));
    read_segments(store, process, segments.into_iter().map(read), visit)
}

/// Reads segments in their order, each with its path.
pub(crate) fn read_segments<E: From<JournalError>>(
    store: Uuid,
    process: Uuid,
    segments: impl Iterator<Item = Result<(PathBuf, Vec<u8>), JournalError>>,
    mut visit: impl FnMut(Entry<'_>) -> Result<(), E>,
) -> Result<ReadReport, E> {
    let mut reader = Reader { process, report: ReadReport::default(), unread: None };
    for segment in segments {
        let (path, bytes) = segment?;
        if reader.accepts(store, &path, &bytes) {
            reader.read_segment(&path, &bytes, &mut visit)?;
        }
    }
    // Bytes behind the last entry are the torn end of the last write.
    if let Some((_, range)) = reader.unread {
        reader.report.torn_bytes = range.end - range.start;
    }
    Ok(reader.report)
}

/// The number of the last entry of a process whose journal is being written; 0 before the first. Reads the newest
/// segments alone.
///
/// # Errors
/// [`JournalError::Folder`] where a file cannot be read.
pub(crate) fn last_sequence(folder: &Path, store: Uuid, process: Uuid) -> Result<u64, JournalError> {
    let segments = list_segments(folder).map_err(JournalError::folder(folder))?;
    for (_, path) in segments.iter().rev() {
        let bytes = read_written(path)?;
        let mut reader = Reader { process, report: ReadReport::default(), unread: None };
        if reader.accepts(store, path, &bytes) {
            reader.read_segment::<JournalError>(path, &bytes, &mut |_| Ok(()))?;
        }
        if let Some(last) = reader.report.last_sequence {
            return Ok(last);
        }
    }
    Ok(0)
}

/// Gives back the space that was allocated behind the last bytes of a folder's segments. Their times stay, by which
/// they are removed.
///
/// # Errors
/// [`JournalError::Folder`].
pub(crate) fn trim_folder(folder: &Path) -> Result<(), JournalError> {
    for (_, path) in list_segments(folder).map_err(JournalError::folder(folder))? {
        let written = read_written(&path)?.len() as u64;
        let trim = || {
            let file = fs::OpenOptions::new().write(true).open(&path)?;
            let found = file.metadata()?;
            if found.len() > written {
                reach("before trimming");
                file.set_len(written)?;
                reach("after trimming");
                file.set_modified(found.modified()?)?;
            }
            Ok(())
        };
        trim().map_err(JournalError::folder(&path))?;
    }
    Ok(())
}

/// Reads a segment without the zeros that were allocated behind its last byte.
fn read_written(path: &Path) -> Result<Vec<u8>, JournalError> {
    const PAGE: usize = 4096;
    let mut bytes = fs::read(path).map_err(JournalError::folder(path))?;
    while bytes.len() > PAGE && bytes[bytes.len() - PAGE..] == [0; PAGE] {
        bytes.truncate(bytes.len() - PAGE);
    }
    Ok(bytes)
}

struct Reader {
    process: Uuid,
    report: ReadReport,
    /// Bytes that are no entry, behind the last entry.
    unread: Option<(PathBuf, Range<u64>)>,
}

impl Reader {
    /// Decides by its header whether a segment is read.
    fn accepts(&mut self, store: Uuid, path: &Path, bytes: &[u8]) -> bool {
        let reason = match Header::decode(bytes) {
            Ok(header) if header.origin.process != self.process => GapReason::ForeignProcess(header.origin.process),
            Ok(header) if header.origin.store != store => GapReason::ForeignStore(header.origin.store),
            Ok(header) => {
                if !self.report.boots.contains(&header.origin.boot) {
                    self.report.boots.push(header.origin.boot);
                }
                return true;
            }
            Err(HeaderFault::Version(version)) => GapReason::Version(version),
            // Allocated, and not finished: entries are written once the whole header is on the disk.
            Err(HeaderFault::Damaged) if bytes.iter().skip(HEADER_BYTES).all(|byte| *byte == 0) => return false,
            // Entries prove by their checksums that they are of this process.
            Err(HeaderFault::Damaged) => {
                let range = 0..HEADER_BYTES.min(bytes.len()) as u64;
                self.gap(GapReason::Damaged, 0..0, Some((path.to_owned(), range)));
                return true;
            }
        };
        self.gap(reason, 0..0, Some((path.to_owned(), 0..bytes.len() as u64)));
        false
    }

    fn read_segment<E>(
        &mut self,
        path: &Path,
        bytes: &[u8],
        visit: &mut impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut offset = HEADER_BYTES.min(bytes.len());
        while let Some((start, entry)) = self.next_entry(bytes, offset) {
            self.note_unread(path, bytes, offset..start);
            self.note_sequence(entry.sequence);
            if self.report.last_sequence.is_none_or(|last| entry.sequence > last) {
                self.report.first_sequence.get_or_insert(entry.sequence);
                self.report.last_sequence = Some(entry.sequence);
                self.report.entries += 1;
                visit(entry)?;
            }
            offset = start + entry_bytes(entry.payload.len());
        }
        self.note_unread(path, bytes, offset..bytes.len());
        Ok(())
    }

    /// Finds the entry at an offset or, where the bytes there are none, the next one with a higher number.
    fn next_entry<'a>(&self, bytes: &'a [u8], offset: usize) -> Option<(usize, Entry<'a>)> {
        let decode = |at: usize| decode_entry(self.process, bytes.get(at..)?, MAX_PAYLOAD_BYTES);
        // An entry that was written again after a failed sync is known already; the reader goes past it.
        if let Some(entry) = decode(offset) {
            return Some((offset, entry));
        }
        let last = self.report.last_sequence.unwrap_or(0);
        (offset + 1..bytes.len()).find_map(|at| {
            let sequence = u64::from_le_bytes(*bytes.get(at + 8..)?.first_chunk()?);
            // Most bytes are ruled out before a checksum is computed over what they take for a length.
            if sequence <= last || sequence - last > MAX_JUMP {
                return None;
            }
            decode(at).map(|entry| (at, entry))
        })
    }

    /// Remembers bytes that are no entry, without the zeros behind them.
    fn note_unread(&mut self, path: &Path, bytes: &[u8], range: Range<usize>) {
        let written = bytes[range.clone()].iter().rposition(|byte| *byte != 0);
        if let Some(last) = written {
            self.unread = Some((path.to_owned(), range.start as u64..(range.start + last + 1) as u64));
        }
    }

    /// Compares an entry's number with the last one and notes the missing numbers between them.
    fn note_sequence(&mut self, sequence: u64) {
        let unread = self.unread.take();
        let Some(last) = self.report.last_sequence else {
            // The caller knows with which number the folder begins: folded segments are removed.
            if unread.is_some() {
                self.gap(GapReason::Damaged, 0..0, unread);
            }
            return;
        };
        if sequence > last + 1 {
            let reason = if unread.is_some() { GapReason::Damaged } else { GapReason::Missing };
            self.gap(reason, last + 1..sequence, unread);
        }
        // Without a missing number the unread bytes are a failed write that was repeated in the next segment.
    }

    fn gap(&mut self, reason: GapReason, sequences: Range<u64>, bytes: Option<(PathBuf, Range<u64>)>) {
        self.report.gaps.push(Gap { reason, sequences, bytes });
    }
}
