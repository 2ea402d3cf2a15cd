//! Hashes of the managed rows, and their sums.
//!
//! A sum covers all rows of a table: a change subtracts the old hash of the row and adds the new one. Each entry of the
//! log holds the digest of all sums after its change. A row that was changed, added or removed without an entry
//! therefore makes the sum differ from the newest entry.

use sha2::{Digest, Sha256};

use super::AuditHash;

/// Hashes the columns of a row, one after the other.
pub struct RowHasher(Sha256);

impl RowHasher {
    /// Starts the hash of a row of this table.
    pub fn new(table: &str) -> Self {
        let mut hasher = Self(Sha256::new());
        hasher.0.update(b"tollgate managed row 1\0");
        hasher.add(Some(table.as_bytes()));
        hasher
    }

    /// Adds a text column.
    #[must_use]
    pub fn text<'a>(mut self, value: impl Into<Option<&'a str>>) -> Self {
        self.add(value.into().map(str::as_bytes));
        self
    }

    /// Adds a bytes column.
    #[must_use]
    pub fn bytes<'a>(mut self, value: impl Into<Option<&'a [u8]>>) -> Self {
        self.add(value.into());
        self
    }

    /// Adds a number column.
    #[must_use]
    pub fn number(mut self, value: impl Into<Option<i64>>) -> Self {
        self.add(value.into().map(i64::to_le_bytes).as_ref().map(<[u8; 8]>::as_slice));
        self
    }

    /// Returns the hash of all columns.
    pub fn finish(self) -> AuditHash {
        AuditHash(self.0.finalize().into())
    }

    fn add(&mut self, value: Option<&[u8]>) {
        add_field(&mut self.0, value);
    }
}

/// Adds a field after its presence and length, so that different rows hash different bytes, and none differs from
/// empty.
pub(super) fn add_field(digest: &mut Sha256, value: Option<&[u8]>) {
    digest.update([u8::from(value.is_some())]);
    let value = value.unwrap_or_default();
    digest.update(u64::try_from(value.len()).unwrap_or(u64::MAX).to_le_bytes());
    digest.update(value);
}

/// The sum of the hashes of rows, modulo 2^256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowSum(pub [u8; 32]);

impl RowSum {
    /// Adds a row.
    pub fn add(&mut self, row: AuditHash) {
        let mut carry = 0;
        for (digit, own) in self.0.iter_mut().zip(row.0) {
            let sum = u16::from(*digit) + u16::from(own) + carry;
            *digit = sum.to_le_bytes()[0];
            carry = sum >> 8;
        }
    }

    /// Subtracts a row.
    pub fn subtract(&mut self, row: AuditHash) {
        let mut borrow = 0;
        for (digit, own) in self.0.iter_mut().zip(row.0) {
            let difference = 256 + u16::from(*digit) - u16::from(own) - borrow;
            *digit = difference.to_le_bytes()[0];
            borrow = u16::from(difference < 256);
        }
    }

    /// Adds all rows of another sum.
    pub fn add_sum(&mut self, other: Self) {
        self.add(AuditHash(other.0));
    }
}

/// The sums of all managed tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowSums {
    /// API keys, deleted ones included, without their guardrails.
    pub keys: RowSum,
    /// Pairs of an API key and its guardrail.
    pub assignments: RowSum,
    /// Guardrails.
    pub guardrails: RowSum,
    /// Workspaces, without their usage.
    pub workspaces: RowSum,
}

impl RowSums {
    /// Returns the digest for an audit entry.
    pub fn digest(&self) -> AuditHash {
        let mut digest = Sha256::new();
        for sum in [self.keys, self.assignments, self.guardrails, self.workspaces] {
            digest.update(sum.0);
        }
        AuditHash(digest.finalize().into())
    }

    /// Adds the sums of a change.
    #[must_use]
    pub fn with(mut self, change: &Self) -> Self {
        self.keys.add_sum(change.keys);
        self.assignments.add_sum(change.assignments);
        self.guardrails.add_sum(change.guardrails);
        self.workspaces.add_sum(change.workspaces);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hash(number: u8) -> AuditHash {
        RowHasher::new("t").number(i64::from(number)).finish()
    }

    #[test]
    fn hash_distinguishes_none_from_empty_and_column_borders() {
        let row = || RowHasher::new("t");
        let hashes = [
            row().text(None::<&str>).text("").finish(),
            row().text("").text(None::<&str>).finish(),
            row().text("").text("").finish(),
            row().text("a").text("").finish(),
            row().text("").text("a").finish(),
            row().text("a").finish(),
            row().number(0).finish(),
            row().number(None::<i64>).finish(),
            RowHasher::new("u").number(0).finish(),
        ];
        for (place, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..place].contains(hash), "{place}");
        }
    }

    #[test]
    fn sum_wraps_around() {
        let mut sum = RowSum([0xff; 32]);
        let mut one = [0; 32];
        one[0] = 1;
        sum.add(AuditHash(one));
        assert_eq!(sum, RowSum::default());
        sum.subtract(AuditHash(one));
        assert_eq!(sum, RowSum([0xff; 32]));
    }

    proptest! {
        #[test]
        fn sum_is_independent_of_order(mut rows in prop::collection::vec(any::<u8>(), 1..20), extra in any::<u8>()) {
            let sum_of = |rows: &[u8]| {
                let mut sum = RowSum::default();
                for row in rows {
                    sum.add(hash(*row));
                }
                sum
            };
            let sum = sum_of(&rows);
            let mut other = sum;
            other.add(hash(extra));
            prop_assert_ne!(other, sum);
            other.subtract(hash(extra));
            prop_assert_eq!(other, sum);
            rows.reverse();
            prop_assert_eq!(sum_of(&rows), sum);
        }
    }
}
