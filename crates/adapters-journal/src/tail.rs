//! The unfolded entries of the running process: the newest in memory, the others by position on the disk.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use domain::budget::JournalEntry;

use crate::disk::SegmentFile;

#[derive(Debug)]
pub(crate) struct TailEntry {
    pub(crate) sequence: u64,
    pub(crate) kind: u8,
    /// The size of the payload.
    pub(crate) length: usize,
    /// `None` only for synced entries.
    pub(crate) payload: Option<Arc<[u8]>>,
    /// `None` until it is written.
    pub(crate) place: Option<EntryPosition>,
}

/// The position of a payload on the disk.
#[derive(Debug, Clone)]
pub(crate) struct EntryPosition {
    pub(crate) segment: u64,
    pub(crate) file: Arc<dyn SegmentFile>,
    pub(crate) offset: u64,
}

/// The unfolded entries, by number.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    entries: VecDeque<TailEntry>,
    /// The number of entries at the front without a payload in memory.
    evicted: usize,
    memory_bytes: usize,
    /// The size of all entries.
    bytes: u64,
}

impl Tail {
    pub(crate) fn push(&mut self, entry: TailEntry) {
        self.memory_bytes += entry.length;
        self.bytes += entry.length as u64;
        self.entries.push_back(entry);
    }

    /// Returns the size of all unfolded payloads.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the unwritten entries, in order.
    pub(crate) fn unwritten(&mut self) -> impl Iterator<Item = &mut TailEntry> {
        // They are at the end, and few: entries are written in order.
        let unwritten = self.entries.iter().rev().take_while(|entry| entry.place.is_none()).count();
        self.entries.range_mut(self.entries.len() - unwritten..)
    }

    pub(crate) fn has_unwritten(&self) -> bool {
        self.entries.back().is_some_and(|entry| entry.place.is_none())
    }

    /// Removes and returns the unwritten entries.
    pub(crate) fn take_unwritten(&mut self) -> Vec<JournalEntry> {
        let first = self.entries.partition_point(|entry| entry.place.is_some());
        let taken: Vec<TailEntry> = self.entries.drain(first..).collect();
        for entry in &taken {
            self.bytes -= entry.length as u64;
            self.memory_bytes -= entry.length;
        }
        let stored = |TailEntry { sequence, kind, payload, .. }: TailEntry| {
            payload.map(|payload| JournalEntry { sequence, kind, payload })
        };
        taken.into_iter().filter_map(stored).collect()
    }

    /// Marks the entries above a number as unwritten.
    pub(crate) fn forget_places_after(&mut self, sequence: u64) {
        let first = self.entries.partition_point(|entry| entry.sequence <= sequence);
        for entry in self.entries.range_mut(first..) {
            entry.place = None;
        }
    }

    /// Drops payloads of synced entries from memory, the oldest first, until the rest fits.
    pub(crate) fn evict(&mut self, synced: u64, max_bytes: usize) {
        while self.memory_bytes > max_bytes
            && let Some(entry) = self.entries.get_mut(self.evicted)
            && entry.sequence <= synced
        {
            entry.payload = None;
            self.memory_bytes -= entry.length;
            self.evicted += 1;
        }
    }

    /// Removes the entries up to a number.
    pub(crate) fn remove_folded(&mut self, up_to: u64) {
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.sequence <= up_to) {
            self.bytes -= entry.length as u64;
            if self.evicted > 0 {
                self.evicted -= 1;
            } else {
                self.memory_bytes -= entry.length;
            }
        }
    }

    /// Returns the segment of the oldest unfolded entry.
    pub(crate) fn first_segment(&self) -> Option<u64> {
        self.entries.front().and_then(|entry| entry.place.as_ref()).map(|place| place.segment)
    }

    /// Returns the next synced entries, at least one if there is any. They are loaded outside the lock.
    pub(crate) fn batch(&self, synced: u64, max_entries: usize, max_bytes: usize) -> Vec<EntryLocation> {
        let mut bytes = 0;
        let mut batch = Vec::new();
        for entry in self.entries.iter().take_while(|entry| entry.sequence <= synced).take(max_entries) {
            bytes += entry.length;
            if bytes > max_bytes && !batch.is_empty() {
                break;
            }
            let content = match (&entry.payload, &entry.place) {
                (Some(payload), _) => Content::Memory(Arc::clone(payload)),
                (None, Some(place)) => Content::Disk(place.clone(), entry.length),
                // Only written entries are evicted.
                (None, None) => break,
            };
            batch.push(EntryLocation { sequence: entry.sequence, kind: entry.kind, content });
        }
        batch
    }
}

/// An entry whose payload may have to be read from the disk.
#[derive(Debug)]
pub(crate) struct EntryLocation {
    sequence: u64,
    kind: u8,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Memory(Arc<[u8]>),
    Disk(EntryPosition, usize),
}

impl EntryLocation {
    pub(crate) fn load(self) -> io::Result<JournalEntry> {
        let payload = match self.content {
            Content::Memory(payload) => payload,
            Content::Disk(place, length) => {
                let mut payload = vec![0; length];
                place.file.read_at(&mut payload, place.offset)?;
                payload.into()
            }
        };
        Ok(JournalEntry { sequence: self.sequence, kind: self.kind, payload })
    }
}
