//! Access for fuzzing to the segment format and its reader. Built only with `--cfg fuzzing`.

use std::path::PathBuf;

use uuid::Uuid;

use crate::format::{Entry, Header, Origin, encode_entry};
use crate::reader::{ReadReport, read_segments};
use crate::settings::JournalError;

const STORE: Uuid = Uuid::from_u128(1);
const PROCESS: Uuid = Uuid::from_u128(2);

/// The writer of a segment.
#[derive(Debug, Clone, Copy)]
pub enum SegmentOrigin {
    /// The process whose journal is read.
    Own,
    /// The same process with another store.
    OtherStore,
    /// Another process.
    OtherProcess,
    /// Another version of the format.
    OtherVersion,
}

/// Writes input for [`read`].
#[derive(Debug)]
pub struct SegmentWriter;

impl SegmentWriter {
    /// Returns the header of a segment.
    pub fn header(number: u64, origin: SegmentOrigin) -> Vec<u8> {
        let other = Uuid::from_u128(9);
        let mut ids = Origin { store: STORE, process: PROCESS, boot: Uuid::from_u128(3) };
        match origin {
            SegmentOrigin::OtherStore => ids.store = other,
            SegmentOrigin::OtherProcess => ids.process = other,
            SegmentOrigin::Own | SegmentOrigin::OtherVersion => {}
        }
        let mut bytes = Header { number, origin: ids }.encode();
        if matches!(origin, SegmentOrigin::OtherVersion) {
            bytes[8] ^= 0xff;
        }
        bytes.to_vec()
    }

    /// Appends an entry: its number, kind and payload.
    pub fn entry((sequence, kind, payload): &(u64, u8, Vec<u8>), segment: &mut Vec<u8>) {
        encode_entry(PROCESS, Entry { sequence: *sequence, kind: *kind, payload }, segment);
    }
}

/// Reads segments and returns the number, kind and payload of each entry, and the report.
pub fn read(segments: &[Vec<u8>]) -> (Vec<(u64, u8, Vec<u8>)>, ReadReport) {
    let mut entries = Vec::new();
    let files = segments.iter().zip(1..).map(|(bytes, number)| Ok((PathBuf::from(format!("{number}")), bytes.clone())));
    let report = read_segments::<JournalError>(STORE, PROCESS, files, |entry| {
        entries.push((entry.sequence, entry.kind, entry.payload.to_vec()));
        Ok(())
    });
    // Neither the files nor the visitor fail.
    (entries, report.unwrap_or_default())
}
