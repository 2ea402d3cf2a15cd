//! The state under the journal's lock: the segments, the unfolded entries, the reservations.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::system::Clock;

use crate::disk::{Disk, SegmentFile, reach};
use crate::format::{Entry, Origin, encode_entry, entry_bytes};
use crate::segment::{Segment, segment_path};
use crate::settings::{JournalError, JournalSettings};
use crate::tail::{EntryPosition, Tail, TailEntry};

#[derive(Debug)]
pub(super) struct State {
    pub(super) chain: SegmentChain,
    pub(super) tail: Tail,
    /// The earliest monotonic time of the next sync after a failed one. Each failure costs a segment.
    pub(super) next_sync: Option<Duration>,
    /// True after an entry was rejected because the disk has no room for a segment, until a segment is allocated.
    pub(super) lacks_segment: bool,
    /// True once the journal takes no more entries.
    pub(super) is_sealed: bool,
    next_sequence: u64,
    /// Bytes reserved for the ends of pending calls.
    reserved: u64,
    buffer: Vec<u8>,
}

impl State {
    pub(super) fn new(first: Segment) -> Self {
        Self {
            chain: SegmentChain::new(first),
            tail: Tail::default(),
            next_sync: None,
            lacks_segment: false,
            is_sealed: false,
            next_sequence: 1,
            reserved: 0,
            buffer: Vec::new(),
        }
    }

    pub(super) fn last_sequence(&self) -> u64 {
        self.next_sequence - 1
    }

    pub(super) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Reserves space for an entry and for the end of its call.
    pub(super) fn reserve(
        &mut self,
        bytes: u64,
        settings: &JournalSettings,
        segments: &Segments,
    ) -> Result<(), JournalError> {
        let unfolded_bytes = self.tail.bytes() + self.reserved + bytes;
        if unfolded_bytes > settings.max_unfolded_bytes {
            return Err(JournalError::Full { unfolded_bytes, max_bytes: settings.max_unfolded_bytes });
        }
        let waste = entry_bytes(settings.max_payload_bytes) as u64;
        while self.chain.usable_bytes(waste) < self.reserved + bytes {
            let number = self.chain.take_number();
            let created = segments.create(number);
            self.lacks_segment = created.is_err();
            self.chain.add_prepared(created.map_err(JournalError::Write)?, segments);
        }
        self.reserved += bytes;
        Ok(())
    }

    /// Returns false while entries wait for the disk, and after one was rejected until the disk has room for a segment.
    pub(super) fn is_writable(&self) -> bool {
        !self.tail.has_unwritten() && !self.lacks_segment
    }

    pub(super) fn release(&mut self, bytes: u64) {
        self.reserved = self.reserved.saturating_sub(bytes);
    }

    /// Adds an entry; [`Self::write_pending`] writes it.
    pub(super) fn push(&mut self, kind: u8, payload: &[u8]) -> u64 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let length = payload.len();
        self.tail.push(TailEntry { sequence, kind, length, payload: Some(payload.into()), place: None });
        sequence
    }

    /// Writes all unwritten entries, in order. Failed ones stay and are retried.
    pub(super) fn write_pending(&mut self, segments: &Segments) -> io::Result<()> {
        for entry in self.tail.unwritten() {
            let Some(payload) = &entry.payload else { continue };
            self.buffer.clear();
            let written = Entry { sequence: entry.sequence, kind: entry.kind, payload };
            encode_entry(segments.origin.process, written, &mut self.buffer);
            let place = self.chain.append(&self.buffer, entry.sequence, segments)?;
            // The payload is the end of the entry.
            let payload_at = (self.buffer.len() - entry.length) as u64;
            entry.place = Some(EntryPosition { offset: place.offset + payload_at, ..place });
        }
        Ok(())
    }

    /// Writes the entries since the last successful sync to a new segment, after a failed sync.
    pub(super) fn rewrite_after(&mut self, synced: u64, segments: &Segments) -> io::Result<()> {
        self.chain.fail_sync();
        self.tail.forget_places_after(synced);
        self.write_pending(segments)
    }
}

/// The creator of a folder's segments, by number.
pub(super) struct Segments {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) folder: PathBuf,
    pub(super) origin: Origin,
    pub(super) segment_bytes: u64,
}

impl Segments {
    pub(super) fn create(&self, number: u64) -> io::Result<Segment> {
        Segment::create(&*self.disk, &self.folder, self.origin, number, self.segment_bytes)
    }
}

/// A full segment.
#[derive(Debug)]
struct FullSegment {
    number: u64,
    last_sequence: u64,
    /// Monotonic time.
    since: Duration,
}

#[derive(Debug)]
pub(super) struct SegmentChain {
    current: Segment,
    /// True after a failed sync: data written to the current segment since the last successful sync is in doubt.
    is_current_failed: bool,
    prepared: VecDeque<Segment>,
    next_number: u64,
    full: VecDeque<FullSegment>,
    /// Files written since the start of the last sync, except the current one.
    unsynced: Vec<Arc<dyn SegmentFile>>,
}

impl SegmentChain {
    pub(super) fn new(first: Segment) -> Self {
        Self {
            next_number: first.number + 1,
            current: first,
            is_current_failed: false,
            prepared: VecDeque::new(),
            full: VecDeque::new(),
            unsynced: Vec::new(),
        }
    }

    pub(super) fn has_prepared(&self) -> bool {
        !self.prepared.is_empty()
    }

    /// Returns the number of the next segment to allocate.
    pub(super) fn take_number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    pub(super) fn add_prepared(&mut self, segment: Segment, segments: &Segments) {
        // Readers follow the numbers: a segment that was overtaken during its allocation is never used.
        if segment.number < self.current.number {
            self.full.push_back(FullSegment {
                number: segment.number,
                last_sequence: 0,
                since: segments.clock.monotonic(),
            });
            return;
        }
        let at = self.prepared.partition_point(|other| other.number < segment.number);
        self.prepared.insert(at, segment);
    }

    /// Returns the bytes that certainly fit into the allocated segments, if an entry that does not fit into the rest of
    /// a segment wastes at most `waste` bytes.
    pub(super) fn usable_bytes(&self, waste: u64) -> u64 {
        let current = if self.is_current_failed { None } else { Some(&self.current) };
        current.into_iter().chain(&self.prepared).map(|segment| segment.room().saturating_sub(waste)).sum()
    }

    /// Appends bytes, in the next segment if the current one is full or fails.
    pub(super) fn append(&mut self, bytes: &[u8], sequence: u64, segments: &Segments) -> io::Result<EntryPosition> {
        if self.is_current_failed {
            self.rotate(sequence - 1, segments)?;
        }
        let offset = match self.current.append(bytes) {
            Ok(offset) => offset,
            // A fresh segment would fail too: do not waste one per attempt on a disk that rejects writes.
            Err(error) if self.current.is_empty() => return Err(error),
            Err(_) => {
                self.rotate(sequence - 1, segments)?;
                self.current.append(bytes)?
            }
        };
        Ok(EntryPosition { segment: self.current.number, file: Arc::clone(&self.current.file), offset })
    }

    fn rotate(&mut self, last_sequence: u64, segments: &Segments) -> io::Result<()> {
        let next = if let Some(next) = self.prepared.pop_front() {
            next
        } else {
            let number = self.take_number();
            segments.create(number)?
        };
        reach("rotating");
        let full = std::mem::replace(&mut self.current, next);
        if !std::mem::take(&mut self.is_current_failed) {
            self.unsynced.push(full.file);
        }
        self.full.push_back(FullSegment { number: full.number, last_sequence, since: segments.clock.monotonic() });
        Ok(())
    }

    /// Returns the files with data written since the start of the last sync.
    pub(super) fn begin_sync(&mut self) -> Vec<Arc<dyn SegmentFile>> {
        let mut files = std::mem::take(&mut self.unsynced);
        files.push(Arc::clone(&self.current.file));
        files
    }

    /// After a failed sync no file is synced again: the system may report success without having written the data.
    pub(super) fn fail_sync(&mut self) {
        self.unsynced.clear();
        self.is_current_failed = true;
    }

    /// Takes the paths of full segments without entries from `keep_from` on that were full before `full_before`, or
    /// that exceed the `max_full` newest.
    pub(super) fn take_removable(
        &mut self,
        first_unfolded: Option<u64>,
        keep_from: u64,
        (full_before, max_full): (Option<Duration>, usize),
        segments: &Segments,
    ) -> Vec<PathBuf> {
        let first_unfolded = first_unfolded.unwrap_or(self.current.number);
        let mut paths = Vec::new();
        loop {
            let too_many = self.full.len() > max_full;
            let removable = |full: &mut FullSegment| {
                let is_over = full.number < first_unfolded && full.last_sequence < keep_from;
                is_over && (too_many || full_before.is_some_and(|before| full.since <= before))
            };
            let Some(full) = self.full.pop_front_if(removable) else { break };
            paths.push(segment_path(&segments.folder, full.number));
        }
        paths
    }
}
