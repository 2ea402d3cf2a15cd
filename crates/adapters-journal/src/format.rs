//! The binary format of a segment: a header, then entries until the first zero length.
//!
//! | header | bytes | | entry | bytes |
//! |---|---|---|---|---|
//! | magic | 8 | | payload length | 4 |
//! | version | 4 | | CRC-32C | 4 |
//! | segment number | 8 | | sequence number | 8 |
//! | store id | 16 | | kind | 1 |
//! | process id | 16 | | payload | length |
//! | boot id | 16 | | | |
//! | CRC-32C | 4 | | | |
//!
//! Numbers are little-endian. The checksum of an entry begins with the process id, so that bytes of another process in
//! a reused disk block are never an entry.

use uuid::Uuid;

const MAGIC: [u8; 8] = *b"TGJOURNL";
/// Increased with every change of the format or the payloads, so that segments of another version are quarantined.
pub(crate) const VERSION: u32 = 3;
pub(crate) const HEADER_BYTES: usize = 72;
pub(crate) const ENTRY_HEADER_BYTES: usize = 17;
/// The largest payload that readers accept; settings limit writers to far less.
pub(crate) const MAX_READ_PAYLOAD_BYTES: usize = 16 << 20;

/// The ids in the header of every segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The store that the entries are folded into.
    pub store: Uuid,
    /// The process that wrote the segment.
    pub process: Uuid,
    /// The boot of the machine. Without a power failure every written entry of the boot is readable.
    pub boot: Uuid,
}

/// One entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The sequence number: one more than that of the previous entry.
    pub sequence: u64,
    /// The kind of the payload; never 0.
    pub kind: u8,
    /// The payload.
    pub payload: &'a [u8],
}

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub number: u64,
    pub origin: Origin,
}

/// The reason for an unusable segment header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// Not a segment, or a damaged header.
    Damaged,
    /// Written in another version of the format.
    Version(u32),
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.number.to_le_bytes());
        bytes[20..36].copy_from_slice(self.origin.store.as_bytes());
        bytes[36..52].copy_from_slice(self.origin.process.as_bytes());
        bytes[52..68].copy_from_slice(self.origin.boot.as_bytes());
        let checksum = crc32c::crc32c(&bytes[..68]);
        bytes[68..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(HeaderError::Damaged)?;
        if bytes[..8] != MAGIC {
            return Err(HeaderError::Damaged);
        }
        // Another version may have another header, so its checksum is not verified.
        let version = u32::from_le_bytes(array(&bytes[8..]));
        if version != VERSION {
            return Err(HeaderError::Version(version));
        }
        if crc32c::crc32c(&bytes[..68]) != u32::from_le_bytes(array(&bytes[68..])) {
            return Err(HeaderError::Damaged);
        }
        let id = |from: usize| Uuid::from_bytes(array(&bytes[from..]));
        let origin = Origin { store: id(20), process: id(36), boot: id(52) };
        Ok(Self { number: u64::from_le_bytes(array(&bytes[12..])), origin })
    }
}

/// Appends an encoded entry to a buffer.
pub(crate) fn encode_entry(process: Uuid, entry: Entry<'_>, buffer: &mut Vec<u8>) {
    let length = u32::try_from(entry.payload.len()).unwrap_or(u32::MAX);
    buffer.extend_from_slice(&length.to_le_bytes());
    buffer.extend_from_slice(&checksum(process, entry).to_le_bytes());
    buffer.extend_from_slice(&entry.sequence.to_le_bytes());
    buffer.push(entry.kind);
    buffer.extend_from_slice(entry.payload);
}

/// Returns the size of an entry in a segment.
pub(crate) fn entry_bytes(payload: usize) -> usize {
    ENTRY_HEADER_BYTES + payload
}

/// The header of an entry, not yet verified.
pub(crate) struct EntryHeader {
    pub(crate) length: usize,
    pub(crate) checksum: u32,
    pub(crate) sequence: u64,
    pub(crate) kind: u8,
}

/// Reads the header of a possible entry at the beginning of some bytes.
pub(crate) fn read_entry_header(bytes: &[u8], max_payload: usize) -> Option<EntryHeader> {
    let header: &[u8; ENTRY_HEADER_BYTES] = bytes.first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(array(&header[..]))).ok()?;
    let kind = header[16];
    (length <= max_payload && kind != 0).then(|| EntryHeader {
        length,
        checksum: u32::from_le_bytes(array(&header[4..])),
        sequence: u64::from_le_bytes(array(&header[8..])),
        kind,
    })
}

/// Reads a complete entry with a valid checksum at the beginning of some bytes.
pub(crate) fn decode_entry(process: Uuid, bytes: &[u8], max_payload: usize) -> Option<Entry<'_>> {
    let header = read_entry_header(bytes, max_payload)?;
    let payload = bytes[ENTRY_HEADER_BYTES..].get(..header.length)?;
    let entry = Entry { sequence: header.sequence, kind: header.kind, payload };
    (checksum(process, entry) == header.checksum).then_some(entry)
}

fn checksum(process: Uuid, entry: Entry<'_>) -> u32 {
    let before = checksum_before_payload(process, entry.sequence, entry.kind, entry.payload.len());
    crc32c::crc32c_append(before, entry.payload)
}

/// Returns the checksum of an entry without its payload, which comes last.
pub(crate) fn checksum_before_payload(process: Uuid, sequence: u64, kind: u8, length: usize) -> u32 {
    // One call for all fields: each call has a fixed cost.
    let mut bytes = [0; 33];
    bytes[..16].copy_from_slice(process.as_bytes());
    bytes[16..24].copy_from_slice(&sequence.to_le_bytes());
    bytes[24] = kind;
    bytes[25..].copy_from_slice(&u64::try_from(length).unwrap_or(u64::MAX).to_le_bytes());
    crc32c::crc32c(&bytes)
}

/// Returns the first `N` bytes; zeros if there are fewer, which callers exclude.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn origin() -> Origin {
        let id = Uuid::from_u128;
        Origin { store: id(1), process: id(2), boot: id(3) }
    }

    #[test]
    fn header_decodes_to_what_was_encoded() {
        let header = Header { number: 7, origin: origin() };
        assert_eq!(Header::decode(&header.encode()), Ok(header));
    }

    #[test]
    fn header_is_rejected_when_any_bit_flips() {
        let bytes = Header { number: 7, origin: origin() }.encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&damaged).is_err(), "bit {bit}");
        }
        assert_eq!(Header::decode(&bytes[..HEADER_BYTES - 1]), Err(HeaderError::Damaged));
    }

    #[test]
    fn header_reports_other_version() {
        let mut bytes = Header { number: 7, origin: origin() }.encode();
        bytes[8] = 9;
        assert_eq!(Header::decode(&bytes), Err(HeaderError::Version(9)));
    }

    #[test]
    fn decode_rejects_zeros() {
        assert_eq!(decode_entry(Uuid::nil(), &[0; 64], 1024), None);
    }

    proptest! {
        #[test]
        fn entry_decodes_to_what_was_encoded(sequence: u64, kind in 1_u8.., payload: Vec<u8>, after: Vec<u8>) {
            let process = Uuid::from_u128(5);
            let entry = Entry { sequence, kind, payload: &payload };
            let mut bytes = Vec::new();
            encode_entry(process, entry, &mut bytes);
            prop_assert_eq!(bytes.len(), entry_bytes(payload.len()));
            bytes.extend(after);
            prop_assert_eq!(decode_entry(process, &bytes, payload.len()), Some(entry));
        }

        #[test]
        fn entry_is_rejected_when_damaged_or_foreign(payload: Vec<u8>, bit: prop::sample::Index) {
            let process = Uuid::from_u128(5);
            let mut bytes = Vec::new();
            encode_entry(process, Entry { sequence: 3, kind: 2, payload: &payload }, &mut bytes);
            prop_assert_eq!(decode_entry(Uuid::from_u128(6), &bytes, 1024), None, "another process");
            prop_assert_eq!(decode_entry(process, &bytes[..bytes.len() - 1], 1024), None, "torn");
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(decode_entry(process, &bytes, 1024), None, "bit {}", bit);
        }
    }
}
