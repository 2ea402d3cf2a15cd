//! The search for the next entry behind damaged bytes, in linear time.

use std::ops::Range;

use uuid::Uuid;

use crate::format::{ENTRY_HEADER_BYTES, Entry, MAX_READ_PAYLOAD_BYTES, checksum_before_payload, read_entry_header};

/// The distance of the precomputed checksums, in bytes.
const STEP: usize = 256;
/// The largest plausible jump of the sequence across damaged bytes.
const MAX_JUMP: u64 = 1 << 32;

/// A search in one segment.
///
/// Any bytes may look like the header of an entry of any length, so computing a checksum over each payload would take
/// quadratic time. Instead, the checksum of a payload follows from the checksums of the segment up to its start and up
/// to its end, of which every 256th is precomputed.
pub(crate) struct EntrySearch<'a> {
    process: Uuid,
    bytes: &'a [u8],
    /// The checksums of the first 0, 256, 512, … bytes.
    beginnings: Vec<u32>,
    shifts: Shifts,
    /// The processed bytes and multiplications.
    steps: u64,
}

impl<'a> EntrySearch<'a> {
    /// Computes the checksums of the segment's beginnings.
    pub(crate) fn new(process: Uuid, bytes: &'a [u8]) -> Self {
        let mut beginnings = Vec::with_capacity(bytes.len() / STEP + 1);
        beginnings.push(0);
        let mut checksum = 0;
        for chunk in bytes.chunks_exact(STEP) {
            checksum = crc32c::crc32c_append(checksum, chunk);
            beginnings.push(checksum);
        }
        Self { process, bytes, beginnings, shifts: Shifts::new(), steps: bytes.len() as u64 }
    }

    /// Reads a complete entry with a valid checksum at an offset.
    pub(crate) fn decode(&mut self, at: usize) -> Option<Entry<'a>> {
        let header = read_entry_header(self.bytes.get(at..)?, MAX_READ_PAYLOAD_BYTES)?;
        let start = at + ENTRY_HEADER_BYTES;
        let end = start.checked_add(header.length).filter(|end| *end <= self.bytes.len())?;
        let before = checksum_before_payload(self.process, header.sequence, header.kind, header.length);
        // The checksum of a concatenation is that of the first part, shifted by the length of the second, XOR that of
        // the second. This applies to the segment up to the payload's end, too.
        let (to_start, to_end) = (self.beginning(start), self.beginning(end));
        let is_whole = self.shift(before ^ to_start, header.length) ^ to_end == header.checksum;
        is_whole.then(|| Entry { sequence: header.sequence, kind: header.kind, payload: &self.bytes[start..end] })
    }

    /// Finds the first entry that starts in a range and has a higher number than `last`.
    pub(crate) fn find(&mut self, mut starts: Range<usize>, last: u64) -> Option<(usize, Entry<'a>)> {
        starts.find_map(|at| {
            let sequence = u64::from_le_bytes(*self.bytes.get(at + 8..)?.first_chunk()?);
            if sequence <= last || sequence - last > MAX_JUMP {
                return None;
            }
            self.decode(at).map(|entry| (at, entry))
        })
    }

    /// Returns the checksum of the first bytes of the segment.
    fn beginning(&mut self, length: usize) -> u32 {
        let known = length / STEP;
        let rest = &self.bytes[known * STEP..length];
        self.steps += rest.len() as u64;
        crc32c::crc32c_append(self.beginnings[known], rest)
    }

    fn shift(&mut self, checksum: u32, length: usize) -> u32 {
        self.steps += u64::from(length.count_ones());
        self.shifts.apply(checksum, length)
    }
}

/// Shifts checksums: converts the checksum of some bytes to its part in that of longer bytes with the same beginning.
struct Shifts {
    /// The factors for 1, 2, 4, … bytes.
    factors: [u32; usize::BITS as usize],
}

impl Shifts {
    fn new() -> Self {
        // Eight bits: the polynomial x^8, with the lowest power in the highest bit.
        let mut factor = 1 << 23;
        let factors = std::array::from_fn(|_| {
            let next = multiply(factor, factor);
            std::mem::replace(&mut factor, next)
        });
        Self { factors }
    }

    fn apply(&self, checksum: u32, bytes: usize) -> u32 {
        let of_bits = (0..).zip(self.factors).filter(|(bit, _)| bytes >> bit & 1 == 1);
        of_bits.fold(checksum, |checksum, (_, factor)| multiply(factor, checksum))
    }
}

/// Multiplies two polynomials over GF(2), modulo that of CRC-32C.
fn multiply(left: u32, mut right: u32) -> u32 {
    /// The polynomial, the lowest power at the highest bit.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut product = 0;
    for bit in (0..u32::BITS).rev() {
        if left >> bit & 1 == 1 {
            product ^= right;
        }
        right = if right & 1 == 1 { right >> 1 ^ POLYNOMIAL } else { right >> 1 };
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{decode_entry, encode_entry};
    use proptest::prelude::*;

    const PROCESS: Uuid = Uuid::from_u128(5);
    const SEGMENT: usize = 16 << 20;

    fn entry(sequence: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_entry(PROCESS, Entry { sequence, kind: 3, payload }, &mut bytes);
        bytes
    }

    /// Returns a segment of false headers that claim payloads of half the segment.
    fn hostile(length: u32) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend_from_slice(&length.to_le_bytes());
        header.extend_from_slice(&0x1234_5678_u32.to_le_bytes());
        header.extend_from_slice(&7_u64.to_le_bytes());
        header.push(1);
        header.iter().copied().cycle().take(SEGMENT).collect()
    }

    #[test]
    fn find_takes_a_bounded_number_of_steps_in_hostile_bytes() {
        // A naive reader would read eight million bytes for each of a million headers.
        let mut bytes = hostile(8 << 20);
        let mut search = EntrySearch::new(PROCESS, &bytes);
        assert_eq!(search.find(0..bytes.len(), 6), None);
        let headers = (SEGMENT / ENTRY_HEADER_BYTES) as u64;
        assert!(search.steps > headers, "the headers are plausible");
        let most = SEGMENT as u64 + headers * (2 * STEP as u64 + 24);
        assert!(search.steps <= most, "{} steps of {most}", search.steps);

        // The entry behind all of them is found.
        let last = entry(9, b"the end");
        let at = SEGMENT - last.len();
        bytes[at..].copy_from_slice(&last);
        let mut search = EntrySearch::new(PROCESS, &bytes);
        let found = search.find(0..bytes.len(), 7).map(|(at, entry)| (at, entry.sequence, entry.payload));
        assert_eq!(found, Some((at, 9, &b"the end"[..])));
    }

    #[test]
    fn find_ignores_numbers_that_are_known_or_too_far_ahead() {
        let bytes = [entry(5, b"known"), entry(7 + MAX_JUMP, b"far"), entry(8, b"next")].concat();
        let mut search = EntrySearch::new(PROCESS, &bytes);
        assert_eq!(search.find(0..bytes.len(), 6).map(|(_, entry)| entry.payload), Some(&b"next"[..]));
        assert_eq!(search.find(0..bytes.len(), 7).map(|(_, entry)| entry.payload), Some(&b"far"[..]));
        assert_eq!(search.find(0..bytes.len(), 8 + MAX_JUMP), None);
    }

    #[test]
    fn multiply_has_a_neutral_element_and_commutes() {
        let (one, numbers) = (1 << 31, [0, 1, 0x82f6_3b78, u32::MAX, 0x1234_5678]);
        for left in numbers {
            assert_eq!(multiply(one, left), left);
            for right in numbers {
                assert_eq!(multiply(left, right), multiply(right, left));
            }
        }
    }

    proptest! {
        #[test]
        fn shifted_checksum_joins_two_parts(first: Vec<u8>, second in proptest::collection::vec(any::<u8>(), 0..5_000)) {
            let joined = Shifts::new().apply(crc32c::crc32c(&first), second.len()) ^ crc32c::crc32c(&second);
            prop_assert_eq!(joined, crc32c::crc32c(&[first, second].concat()));
        }

        /// At every offset the search agrees with reading the whole payload, damaged or not.
        #[test]
        fn decode_agrees_with_reading_the_payload(
            before in proptest::collection::vec(any::<u8>(), 0..600),
            payload in proptest::collection::vec(any::<u8>(), 0..1_200),
            after in proptest::collection::vec(any::<u8>(), 0..600),
            damage in proptest::option::of((any::<prop::sample::Index>(), 1_u8..)),
        ) {
            let mut bytes = [before, entry(9, &payload), after].concat();
            if let Some((at, bits)) = damage {
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
            }
            let mut search = EntrySearch::new(PROCESS, &bytes);
            for at in 0..=bytes.len() {
                prop_assert_eq!(search.decode(at), decode_entry(PROCESS, &bytes[at..], MAX_READ_PAYLOAD_BYTES), "at {}", at);
            }
        }
    }
}
