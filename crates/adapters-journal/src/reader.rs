//! The reader of a folder: every entry with a valid checksum, once and in order, and the gaps between them, whose
//! bytes are quarantined.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use uuid::Uuid;

use crate::disk::{reach, sync_parent};
use crate::format::{Entry, HEADER_BYTES, Header, HeaderError, MAX_READ_PAYLOAD_BYTES, decode_entry, entry_bytes};
use crate::search::EntrySearch;
use crate::segment::{MAX_SEGMENT_BYTES, NotASegment, list_segments, open_regular, read_segment_file};
use crate::settings::JournalError;

/// The result of reading a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// The number of visited entries.
    pub entries: u64,
    /// The number of the first entry.
    pub first_sequence: Option<u64>,
    /// The number of the last entry.
    pub last_sequence: Option<u64>,
    /// The missing and unreadable parts.
    pub gaps: Vec<Gap>,
    /// The bytes of a torn end: a write that was cut off by the end of the process or the machine.
    pub torn_bytes: u64,
    /// The boots of the machine in which segments were written.
    pub boots: Vec<Uuid>,
}

/// A part of the journal that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The reason.
    pub reason: GapReason,
    /// The missing sequence numbers; empty if none is known to be missing.
    pub sequences: Range<u64>,
    /// The damaged bytes: a segment file and offsets, which are empty if it is no regular file. `None` for a missing
    /// segment.
    pub bytes: Option<(PathBuf, Range<u64>)>,
}

/// The reason why a part of a journal cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapReason {
    /// Bytes before an entry are not an entry.
    Damaged,
    /// Numbers are missing, and there are no damaged bytes in their place.
    Missing,
    /// The segment was written for another store.
    ForeignStore(Uuid),
    /// The segment was written by another process.
    ForeignProcess(Uuid),
    /// The segment has another version of the format.
    Version(u32),
    /// A folder, link, pipe, socket or device has the name of a segment. It is not opened.
    NotAFile(&'static str),
    /// The file has more bytes than a segment can have. It is not read.
    TooLarge(u64),
}

/// Reads the folder of a process and visits its entries by sequence number.
///
/// # Errors
/// [`JournalError::Folder`] where a file cannot be read, and the errors of `visit`.
pub fn read_folder<E: From<JournalError>>(
    folder: &Path,
    store: Uuid,
    process: Uuid,
    mut visit: impl FnMut(Entry<'_>) -> Result<(), E>,
) -> Result<ReadReport, E> {
    let mut reader = FolderReader::open(folder, store, process)?;
    while reader.read_segment(&mut visit)? {}
    Ok(reader.finish())
}

/// Reads the folder of a process segment by segment.
pub(crate) struct FolderReader {
    store: Uuid,
    segments: std::vec::IntoIter<(u64, PathBuf)>,
    reader: Reader,
}

impl FolderReader {
    /// Lists the segments.
    ///
    /// # Errors
    /// [`JournalError::Folder`] if the folder cannot be read.
    pub(crate) fn open(folder: &Path, store: Uuid, process: Uuid) -> Result<Self, JournalError> {
        let segments = list_segments(folder).map_err(JournalError::folder(folder))?;
        Ok(Self { store, segments: segments.into_iter(), reader: Reader::new(process) })
    }

    /// Visits the entries of the next segment. Returns false after the last one.
    ///
    /// # Errors
    /// [`JournalError::Folder`] if the file cannot be read, and the errors of `visit`.
    pub(crate) fn read_segment<E: From<JournalError>>(
        &mut self,
        mut visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let Some((_, path)) = self.segments.next() else { return Ok(false) };
        match read_segment_file(&path)? {
            Ok(bytes) => self.reader.read(self.store, &path, &bytes, &mut visit)?,
            Err(reason) => self.reader.reject(path, reason),
        }
        Ok(true)
    }

    /// Returns the report of all segments.
    pub(crate) fn finish(self) -> ReadReport {
        self.reader.finish()
    }
}

/// Reads segments in order, each with its path.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_segments<E: From<JournalError>>(
    store: Uuid,
    process: Uuid,
    segments: impl Iterator<Item = Result<(PathBuf, Vec<u8>), JournalError>>,
    mut visit: impl FnMut(Entry<'_>) -> Result<(), E>,
) -> Result<ReadReport, E> {
    let mut reader = Reader::new(process);
    for segment in segments {
        let (path, bytes) = segment?;
        reader.read(store, &path, &bytes, &mut visit)?;
    }
    Ok(reader.finish())
}

/// Returns the number of the last entry of a running process; 0 before the first. Reads only the newest segments.
///
/// # Errors
/// [`JournalError::Folder`] if a file cannot be read.
pub(crate) fn last_sequence(folder: &Path, store: Uuid, process: Uuid) -> Result<u64, JournalError> {
    let segments = list_segments(folder).map_err(JournalError::folder(folder))?;
    for (_, path) in segments.iter().rev() {
        let Ok(bytes) = read_segment_file(path)? else { continue };
        let mut reader = Reader::new(process);
        if reader.accepts(store, path, &bytes) {
            reader.read_segment::<JournalError>(path, &bytes, &mut |_| Ok(()))?;
        }
        if let Some(last) = reader.report.last_sequence {
            return Ok(last);
        }
    }
    Ok(0)
}

/// Returns the store of a process's folder if that is another one. All segments of a process are of one store, so a
/// folder with a segment of this store, or without a readable header, is not foreign.
///
/// # Errors
/// [`JournalError::Folder`] if a file cannot be read.
pub(crate) fn foreign_store(folder: &Path, store: Uuid, process: Uuid) -> Result<Option<Uuid>, JournalError> {
    let mut foreign = None;
    for (_, path) in list_segments(folder).map_err(JournalError::folder(folder))? {
        let head = match read_head(&path) {
            // Its live process has removed the segment since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            head => head.map_err(JournalError::folder(&path))?,
        };
        match Header::decode(&head) {
            Ok(Header { origin, .. }) if origin.process != process => {}
            Ok(Header { origin, .. }) if origin.store == store => return Ok(None),
            Ok(Header { origin, .. }) => foreign = Some(origin.store),
            Err(_) => {}
        }
    }
    Ok(foreign)
}

/// Reads the header of a segment; nothing of a file of another type.
fn read_head(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Ok(file) = open_regular(path, OFlags::RDONLY)? {
        file.take(HEADER_BYTES as u64).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Frees the space that is allocated behind the last bytes of a folder's segments. Keeps their modification times,
/// which determine their removal.
///
/// # Errors
/// [`JournalError::Folder`].
pub(crate) fn trim_folder(folder: &Path, store: Uuid, process: Uuid) -> Result<(), JournalError> {
    for (_, path) in list_segments(folder).map_err(JournalError::folder(folder))? {
        let Ok(bytes) = read_segment_file(&path)? else { continue };
        let mut reader = Reader::new(process);
        if !reader.accepts(store, &path, &bytes) {
            continue;
        }
        // The last entry may end with zeros.
        let end =
            reader.read_segment::<JournalError>(&path, &bytes, &mut |_| Ok(()))?.max(written_length(&bytes)) as u64;
        let trim = || {
            let file = fs::OpenOptions::new().write(true).open(&path)?;
            let found = file.metadata()?;
            if found.len() > end {
                reach("before trimming");
                file.set_len(end)?;
                reach("after trimming");
                file.set_modified(found.modified()?)?;
            }
            Ok(())
        };
        trim().map_err(JournalError::folder(&path))?;
    }
    Ok(())
}

/// Returns the length of some bytes without the zeros at their end.
fn written_length(bytes: &[u8]) -> usize {
    const PAGE: usize = 4096;
    let mut rest = bytes;
    // Comparing whole pages is fast; most of a segment is allocated ahead.
    while let Some((before, [..])) = rest.split_last_chunk::<PAGE>().filter(|(_, page)| **page == [0; PAGE]) {
        rest = before;
    }
    rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

struct Reader {
    process: Uuid,
    report: ReadReport,
    /// Bytes that are no entry, behind the last entry.
    unread: Option<(PathBuf, Range<u64>)>,
}

impl Reader {
    fn new(process: Uuid) -> Self {
        Self { process, report: ReadReport::default(), unread: None }
    }

    /// Reads the entries of a segment that belongs to the store.
    fn read<E>(
        &mut self,
        store: Uuid,
        path: &Path,
        bytes: &[u8],
        visit: &mut impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.accepts(store, path, bytes) {
            self.read_segment(path, bytes, visit)?;
        }
        Ok(())
    }

    /// Reports a file with the name of a segment that is not read.
    fn reject(&mut self, path: PathBuf, reason: NotASegment) {
        let (reason, bytes) = match reason {
            NotASegment::Type(name) => (GapReason::NotAFile(name), 0..0),
            // The beginning is quarantined.
            NotASegment::Bytes(length) => (GapReason::TooLarge(length), 0..MAX_SEGMENT_BYTES),
        };
        self.gap(reason, 0..0, Some((path, bytes)));
    }

    fn finish(mut self) -> ReadReport {
        // Bytes behind the last entry are the torn end of the last write.
        if let Some((_, range)) = self.unread.take() {
            self.report.torn_bytes = range.end - range.start;
        }
        self.report
    }

    /// Returns whether a segment is read, according to its header.
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
            Err(HeaderError::Version(version)) => GapReason::Version(version),
            // Allocated but unfinished: entries are written only after the whole header is on the disk.
            Err(HeaderError::Damaged) if bytes.iter().skip(HEADER_BYTES).all(|byte| *byte == 0) => return false,
            // The checksums of entries prove that they belong to this process.
            Err(HeaderError::Damaged) => {
                let range = 0..HEADER_BYTES.min(bytes.len()) as u64;
                self.gap(GapReason::Damaged, 0..0, Some((path.to_owned(), range)));
                return true;
            }
        };
        self.gap(reason, 0..0, Some((path.to_owned(), 0..bytes.len() as u64)));
        false
    }

    /// Reads the entries of a segment. Returns the end of the last one.
    fn read_segment<E>(
        &mut self,
        path: &Path,
        bytes: &[u8],
        visit: &mut impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut offset = HEADER_BYTES.min(bytes.len());
        let written = written_length(bytes);
        let mut search = None;
        while let Some((start, entry)) = self.next_entry(bytes, offset..written, &mut search) {
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
        self.note_unread(path, bytes, offset..written.max(offset));
        Ok(offset)
    }

    /// Finds the entry at the start of a range or, in damaged bytes, the next one with a higher number that starts in
    /// the range. After the first damaged bytes of a segment, `search` reads all of its entries.
    fn next_entry<'a>(
        &self,
        bytes: &'a [u8],
        Range { start: offset, end }: Range<usize>,
        search: &mut Option<EntrySearch<'a>>,
    ) -> Option<(usize, Entry<'a>)> {
        if offset >= end {
            return None;
        }
        let entry = match search {
            None => bytes.get(offset..).and_then(|rest| decode_entry(self.process, rest, MAX_READ_PAYLOAD_BYTES)),
            Some(search) => search.decode(offset),
        };
        // An entry that was rewritten after a failed sync is known already and is skipped.
        if let Some(entry) = entry {
            return Some((offset, entry));
        }
        let last = self.report.last_sequence.unwrap_or(0);
        search.get_or_insert_with(|| EntrySearch::new(self.process, bytes)).find(offset + 1..end, last)
    }

    /// Remembers bytes that are not an entry, without the zeros behind them.
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
            // The first number may be any, because folded segments are removed.
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
            io::copy(&mut source.take(range.end - range.start), &mut target)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Origin, encode_entry};

    #[test]
    fn reader_returns_entries_between_damaged_parts_and_reports_each() {
        let id = Uuid::from_u128;
        let origin = Origin { store: id(1), process: id(2), boot: id(3) };
        let mut bytes = Header { number: 1, origin }.encode().to_vec();
        let mut damaged = Vec::new();
        for sequence in 1..=200 {
            let start = bytes.len();
            // Payloads of 0 to 1,194 bytes, so that every alignment with the search's steps occurs.
            let payload = vec![0x5a; usize::try_from(sequence % 200).unwrap() * 6];
            encode_entry(id(2), Entry { sequence, kind: 1, payload: &payload }, &mut bytes);
            if sequence % 3 == 0 {
                let last = bytes.len() - 1;
                bytes[last] ^= 1;
                damaged.push((sequence, start as u64..bytes.len() as u64));
            }
        }
        let mut read = Vec::new();
        let segments = [Ok((PathBuf::from("1"), bytes))].into_iter();
        let report = read_segments::<JournalError>(id(1), id(2), segments, |entry| {
            read.push(entry.sequence);
            Ok(())
        });
        assert_eq!(read, (1..=200).filter(|sequence| sequence % 3 != 0).collect::<Vec<u64>>());
        let gaps: Vec<_> =
            report.unwrap().gaps.into_iter().map(|gap| (gap.sequences.start, gap.bytes.unwrap().1)).collect();
        assert_eq!(gaps, damaged);
    }
}
