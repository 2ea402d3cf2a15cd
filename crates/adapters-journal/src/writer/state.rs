//! The state under the journal's lock: the segments, the unfolded entries, the reservations.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::chain::{SegmentChain, Segments};
use crate::error::JournalError;
use crate::format::{Entry, encode_entry, entry_bytes};
use crate::segment::Segment;
use crate::settings::JournalSettings;
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

    /// Takes the paths of removable segments: those full before a time, or above a number.
    pub(super) fn take_removable(
        &mut self,
        keep_from: u64,
        kept: (Option<Duration>, usize),
        segments: &Segments,
    ) -> Vec<PathBuf> {
        self.chain.take_removable(self.tail.first_segment(), keep_from, kept, segments)
    }
}
