//! The bytes of journal segments. Their reader is private; the build for fuzzing exports it.
//!
//! An input is a list of steps, since random bytes never contain a valid checksum: entries, jumps of the sequence
//! number, new segments, and bytes that no journal writes.

use adapters_journal::fuzzing::{self, SegmentOrigin, SegmentWriter};
use adapters_journal::{GapReason, ReadReport};
use anyhow::{Result, ensure};

type Entries = Vec<(u64, u8, Vec<u8>)>;

/// Segments, and the entries expected from them.
#[derive(Default)]
struct Script {
    segments: Vec<Vec<u8>>,
    sequence: u64,
    /// The entries before any bytes that no journal writes.
    expected: Entries,
    /// The missing sequence numbers between them.
    missing: Vec<std::ops::Range<u64>>,
    is_hostile: bool,
}

/// Reads the segments of a script. Written entries must be read back, also if garbage follows them.
///
/// # Errors
/// The violated property.
pub fn check(input: &[u8]) -> Result<()> {
    if let Some((0xff, bytes)) = input.split_first() {
        return check_report(&fuzzing::read(&[bytes.to_vec()]), bytes.len());
    }
    let script = Script::of(input);
    let bytes = script.segments.iter().map(Vec::len).sum();
    let found = fuzzing::read(&script.segments);
    check_report(&found, bytes)?;
    let (entries, report) = found;
    let prefix = entries.get(..script.expected.len());
    ensure!(prefix == Some(&script.expected), "the entries before the garbage are not read: {report:?}");
    if !script.is_hostile {
        ensure!(entries == script.expected, "an entry was invented");
        let missing: Vec<_> = report.gaps.iter().map(|gap| gap.sequences.clone()).collect();
        ensure!(missing == script.missing, "{missing:?} are named, {:?} are missing", script.missing);
        ensure!(report.gaps.iter().all(|gap| gap.reason == GapReason::Missing), "{report:?}");
        ensure!(report.torn_bytes == 0, "a torn end of {} bytes", report.torn_bytes);
    }
    Ok(())
}

/// Checks the properties that a report on any bytes has.
fn check_report((entries, report): &(Entries, ReadReport), bytes: usize) -> Result<()> {
    ensure!(entries.is_sorted_by(|one, next| one.0 < next.0), "numbers do not rise");
    ensure!(entries.len() as u64 == report.entries, "{} entries of {}", entries.len(), report.entries);
    ensure!(entries.first().map(|entry| entry.0) == report.first_sequence, "another first number");
    ensure!(entries.last().map(|entry| entry.0) == report.last_sequence, "another last number");
    let read: usize = entries.iter().map(|entry| entry.2.len() + 17).sum();
    ensure!(read <= bytes, "{read} bytes were read of {bytes}");
    ensure!(report.torn_bytes <= bytes as u64, "a torn end of {} bytes", report.torn_bytes);
    for gap in &report.gaps {
        let is_read = entries.iter().any(|entry| gap.sequences.contains(&entry.0));
        ensure!(!is_read, "{gap:?} names an entry that was read");
    }
    Ok(())
}

impl Script {
    fn of(input: &[u8]) -> Self {
        let mut script = Self::default();
        script.begin_segment(SegmentOrigin::Own);
        let mut rest = input;
        while let Some(step) = take(&mut rest) {
            script.add(step, &mut rest);
        }
        script
    }

    fn add(&mut self, step: u8, rest: &mut &[u8]) {
        match step % 10 {
            0..=2 => self.append(rest),
            3 => {
                let jump = take(rest).unwrap_or(0);
                self.sequence += u64::from(jump);
            }
            4 => self.begin_segment(SegmentOrigin::Own),
            5 => self.append_again(rest),
            6 => self.push(&[0; 40], false),
            7 => self.push(take_bytes(rest), true),
            8 => {
                self.is_hostile = true;
                let origin = [SegmentOrigin::OtherStore, SegmentOrigin::OtherProcess, SegmentOrigin::OtherVersion];
                self.begin_segment(origin[usize::from(take(rest).unwrap_or(0)) % 3]);
            }
            _ => {
                self.is_hostile = true;
                let cut = usize::from(take(rest).unwrap_or(0));
                if let Some(segment) = self.segments.last_mut() {
                    segment.truncate(segment.len().saturating_sub(cut));
                }
                // The cut may remove the last entries.
                let gone = cut.div_ceil(17);
                self.expected.truncate(self.expected.len().saturating_sub(gone));
            }
        }
    }

    fn append(&mut self, rest: &mut &[u8]) {
        let kind = take(rest).unwrap_or(1).max(1);
        let payload = take_bytes(rest).to_vec();
        self.sequence += 1;
        let entry = (self.sequence, kind, payload);
        SegmentWriter::entry(&entry, self.segments.last_mut().unwrap_or(&mut Vec::new()));
        if self.is_hostile {
            return;
        }
        if let Some((last, ..)) = self.expected.last()
            && entry.0 > last + 1
        {
            self.missing.push(last + 1..entry.0);
        }
        self.expected.push(entry);
    }

    /// Appends an earlier entry again, as after a failed sync.
    fn append_again(&mut self, rest: &mut &[u8]) {
        let which = usize::from(take(rest).unwrap_or(0));
        if let (Some(entry), Some(segment)) = (self.expected.get(which), self.segments.last_mut()) {
            SegmentWriter::entry(entry, segment);
        }
    }

    fn begin_segment(&mut self, origin: SegmentOrigin) {
        let number = self.segments.len() as u64 + 1;
        self.segments.push(SegmentWriter::header(number, origin));
    }

    fn push(&mut self, bytes: &[u8], is_hostile: bool) {
        // Zeros before an entry are damage; at the end of a segment they are free space.
        self.is_hostile |= is_hostile;
        if let Some(segment) = self.segments.last_mut() {
            segment.extend_from_slice(bytes);
        }
        if !is_hostile {
            self.begin_segment(SegmentOrigin::Own);
        }
    }
}

fn take(rest: &mut &[u8]) -> Option<u8> {
    let (first, others) = rest.split_first()?;
    *rest = others;
    Some(*first)
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let length = usize::from(take(rest).unwrap_or(0)).min(rest.len());
    let (bytes, others) = rest.split_at(length);
    *rest = others;
    bytes
}

/// Returns scripts with each step, and an unchanged segment.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut raw = vec![0xff];
    raw.extend(SegmentWriter::header(1, SegmentOrigin::Own));
    SegmentWriter::entry(&(1, 2, b"payload".to_vec()), &mut raw);
    vec![
        raw,
        vec![0, 1, 4, 9, 9, 9, 9, 1, 2, 0, 2, 3, 1, 0],
        vec![0, 1, 1, 9, 4, 0, 1, 2, 8, 8, 3, 5, 0, 1, 1, 6, 0, 2, 0],
        vec![0, 1, 2, 3, 4, 7, 6, 1, 2, 3, 4, 5, 6, 0, 1, 1, 1],
        vec![0, 1, 2, 3, 4, 8, 0, 0, 1, 1, 1, 9, 3, 8, 2],
    ]
}
