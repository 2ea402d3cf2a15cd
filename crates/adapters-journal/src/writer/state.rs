//! The state under the journal's lock: the segments, the unfolded entries, the reservations.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::chain::{SegmentChain, Segments};
use crate::error::JournalError;
use crate::format::{Entry, encode_entry, entry_bytes};
use crate::segment::Segment;
use crate::settings::JournalSettings;
use crate::tail::{Place, Tail, TailEntry};

#[derive(Debug)]
pub(super) struct State {
    pub(super) chain: SegmentChain,
    pub(super) tail: Tail,
    /// After a failed sync: when the next may be tried, by the monotonic clock. Each failure costs a segment.
    pub(super) next_sync: Option<Duration>,
    next_sequence: u64,
    /// Bytes that the ends of calls in flight will take.
    reserved: u64,
    buffer: Vec<u8>,
}

impl State {
    pub(super) fn new(first: Segment) -> Self {
        Self {
            chain: SegmentChain::new(first),
            tail: Tail::default(),
            next_sync: None,
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

    /// Reserves room for an entry and for the end of its call.
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
            let segment = segments.create(number).map_err(JournalError::Write)?;
            self.chain.add_prepared(segment, segments);
        }
        self.reserved += bytes;
        Ok(())
    }

    pub(super) fn release(&mut self, bytes: u64) {
        self.reserved = self.reserved.saturating_sub(bytes);
    }

    /// Takes an entry in; it is written by [`Self::write_pending`].
    pub(super) fn push(&mut self, kind: u8, payload: &[u8]) -> u64 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let length = payload.len();
        self.tail.push(TailEntry { sequence, kind, length, payload: Some(payload.into()), place: None });
        sequence
    }

    /// Writes all entries that are not written yet, in order. Those that fail stay, to be tried again.
    pub(super) fn write_pending(&mut self, segments: &Segments) -> io::Result<()> {
        for entry in self.tail.unwritten() {
            let Some(payload) = &entry.payload else { continue };
            self.buffer.clear();
            let written = Entry { sequence: entry.sequence, kind: entry.kind, payload };
            encode_entry(segments.origin.process, written, &mut self.buffer);
            let place = self.chain.append(&self.buffer, entry.sequence, segments)?;
            // The payload is the end of the entry.
            let payload_at = (self.buffer.len() - entry.length) as u64;
            entry.place = Some(Place { offset: place.offset + payload_at, ..place });
        }
        Ok(())
    }

    /// Writes the entries since the last good sync to a new segment, after a sync failed.
    pub(super) fn rewrite_after(&mut self, synced: u64, segments: &Segments) -> io::Result<()> {
        self.chain.fail_sync();
        self.tail.forget_places_after(synced);
        self.write_pending(segments)
    }

    /// The paths of segments that may be removed: those that were full before a time, or are more than so many.
    pub(super) fn take_removable(
        &mut self,
        keep_from: u64,
        kept: (Option<Duration>, usize),
        segments: &Segments,
    ) -> Vec<PathBuf> {
        self.chain.take_removable(self.tail.first_segment(), keep_from, kept, segments)
    }
}
