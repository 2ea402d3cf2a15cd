//! Maps by ids of this service.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by keys that this service or its operator creates.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// A hasher with one multiplication for each eight bytes. It has no secret, so it is unfit for keys that clients choose:
/// they could make all of them collide.
#[derive(Debug, Clone, Copy, Default)]
pub struct IdHasher(u64);

/// An odd number with evenly spread bits: 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl IdHasher {
    /// Mixes a word into all bits of the state: the table uses the highest and the lowest ones.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half of the product")]
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ FACTOR) * u128::from(FACTOR);
        self.0 = (product as u64 ^ (product >> 64) as u64).rotate_left(5);
    }
}

impl Hasher for IdHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            // Fewer than eight bytes leave room for their number, which tells zeros apart.
            self.mix(rest.iter().fold(rest.len() as u64, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.mix(number.into());
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.mix(number);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, Hash};

    use uuid::Uuid;

    use super::*;
    use crate::ids::{ApiKeyId, DecisionId};

    fn hash(key: impl Hash) -> u64 {
        BuildHasherDefault::<IdHasher>::default().hash_one(key)
    }

    /// Returns ids of one process as the generator makes them: a counter and some random bits.
    fn ids() -> impl Iterator<Item = Uuid> {
        (0..4_096_u128).map(|number| {
            Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0000 + ((number << 42) | (number * number)))
        })
    }

    #[test]
    fn similar_ids_differ_in_highest_and_lowest_bits() {
        let hashes: [Vec<u64>; 2] = [
            ids().map(|id| hash(ApiKeyId::from_uuid(id))).collect(),
            ids().map(|id| hash(DecisionId::from_uuid(id))).collect(),
        ];
        for hashes in hashes {
            assert_eq!(hashes.iter().collect::<HashSet<_>>().len(), 4_096);
            // A random function leaves 1/e of the places empty: 1,507 of 4,096.
            let low: HashSet<u64> = hashes.iter().map(|hash| hash % 4_096).collect();
            assert!((2_400..2_800).contains(&low.len()), "{}", low.len());
            let high: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            assert_eq!(high.len(), 128);
        }
    }

    #[test]
    fn length_and_order_of_bytes_count() {
        let texts = ["", "a", "b", "ab", "ba", "abcdefgh", "abcdefghi", "\0", "\0\0"];
        let hashes: HashSet<u64> = texts.into_iter().map(hash).collect();
        assert_eq!(hashes.len(), texts.len());
    }
}
