//! Rows of any table.

use aws_lc_rs::digest::{Context, SHA256};
use domain::audit::AuditHash;
use domain::error::StoreError;
use domain::text::hex;
use sea_orm::{DbErr, QueryResult, TryGetable, Value};

use super::marker::CopyError;

/// The longest name of a row in a message.
const MAX_NAME: usize = 200;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    BigInteger,
    Integer,
    Boolean,
    Text,
    Bytes,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

/// The values of a row, in the order of the table's columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    values: Vec<Value>,
    key_length: usize,
}

/// A row that cannot be read, or a failed store.
pub(super) type UnreadableRow = CopyError;

impl Row {
    /// Reads a row of a table. The columns of the primary key come first.
    pub(super) fn read(
        table: &'static str,
        columns: &[Column],
        key_length: usize,
        row: &QueryResult,
    ) -> Result<Self, UnreadableRow> {
        let mut values = Vec::with_capacity(columns.len());
        for (place, column) in columns.iter().enumerate() {
            // The error's text may contain the value, so the message has only the column.
            let Ok(value) = read_value(row, place, column.kind) else {
                let problem = format!("the value of {} has another type or is damaged", column.name);
                let row = name_of(&values[..key_length.min(values.len())]);
                return Err(CopyError::Row { table, row, problem });
            };
            values.push(value);
        }
        Ok(Self { values, key_length })
    }

    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    pub(super) fn key(&self) -> &[Value] {
        &self.values[..self.key_length]
    }

    /// Returns the row's key for messages.
    pub(super) fn name(&self) -> String {
        name_of(self.key())
    }

    /// Returns the SHA-256 of all values, each with its length. Null differs from every value.
    pub(super) fn hash(&self) -> AuditHash {
        let mut digest = Context::new(&SHA256);
        for value in &self.values {
            match bytes(value) {
                None => digest.update(&[0]),
                Some(bytes) => {
                    digest.update(&[1]);
                    digest.update(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
                    digest.update(&bytes);
                }
            }
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(digest.finish().as_ref());
        AuditHash(hash)
    }
}

fn read_value(row: &QueryResult, place: usize, kind: Kind) -> Result<Value, DbErr> {
    match kind {
        Kind::BigInteger => read_as::<i64>(row, place),
        Kind::Integer => read_as::<i32>(row, place),
        Kind::Boolean => read_as::<bool>(row, place),
        Kind::Text => read_as::<String>(row, place),
        Kind::Bytes => read_as::<Vec<u8>>(row, place),
    }
}

fn read_as<T>(row: &QueryResult, place: usize) -> Result<Value, DbErr>
where
    Option<T>: TryGetable + Into<Value>,
{
    row.try_get_by_index::<Option<T>>(place).map(Into::into)
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::BigInt(value) => value.map(|value| value.to_le_bytes().to_vec()),
        Value::Int(value) => value.map(|value| value.to_le_bytes().to_vec()),
        Value::Bool(value) => value.map(|value| vec![u8::from(value)]),
        Value::String(value) => value.as_ref().map(|value| value.clone().into_bytes()),
        Value::Bytes(value) => value.clone(),
        _ => None,
    }
}

fn name_of(key: &[Value]) -> String {
    let parts = key.iter().map(|value| match value {
        Value::BigInt(Some(value)) => value.to_string(),
        Value::Int(Some(value)) => value.to_string(),
        Value::Bool(Some(value)) => value.to_string(),
        Value::String(Some(value)) => value.clone(),
        Value::Bytes(Some(value)) => hex(value),
        _ => "null".to_owned(),
    });
    let name = parts.collect::<Vec<_>>().join(" ");
    if name.is_empty() { "(its key cannot be read)".to_owned() } else { name.chars().take(MAX_NAME).collect() }
}

/// Encodes a key for the stored position: a letter for the type, then the value.
pub(super) fn encode_key(key: &[Value]) -> Vec<String> {
    let encode = |value: &Value| match value {
        Value::BigInt(Some(value)) => format!("l{value}"),
        Value::Int(Some(value)) => format!("i{value}"),
        Value::Bytes(Some(value)) => format!("b{}", hex(value)),
        Value::String(Some(value)) => format!("t{value}"),
        _ => String::new(),
    };
    key.iter().map(encode).collect()
}

/// Decodes a key.
///
/// # Errors
/// [`StoreError::Corrupt`] if it was not encoded by [`encode_key`].
pub(super) fn decode_key(key: &[String]) -> Result<Vec<Value>, StoreError> {
    let decode = |text: &String| match text.split_at_checked(1)? {
        ("l", digits) => digits.parse::<i64>().ok().map(Value::from),
        ("i", digits) => digits.parse::<i32>().ok().map(Value::from),
        ("b", digits) => unhex(digits).map(Value::from),
        ("t", text) => Some(Value::from(text.to_owned())),
        _ => None,
    };
    let decoded: Option<Vec<Value>> = key.iter().map(decode).collect();
    decoded.ok_or_else(|| StoreError::Corrupt("store_copies.position".to_owned()))
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: Vec<Value>) -> Row {
        Row { values, key_length: 1 }
    }

    #[test]
    fn key_round_trips() {
        let key: Vec<Value> = vec![(-7_i64).into(), 3_i32.into(), vec![0_u8, 255].into(), "a\"l1 ü".to_owned().into()];
        assert_eq!(decode_key(&encode_key(&key)).unwrap(), key);
        for damaged in ["", "x1", "lx", "bzz", "é"] {
            assert!(decode_key(&[damaged.to_owned()]).is_err(), "{damaged}");
        }
    }

    #[test]
    fn hash_depends_on_every_value_and_its_length() {
        let text = |text: &str| Value::from(text.to_owned());
        let null = Value::String(None);
        let rows = [
            row(vec![text("ab"), text("c")]),
            row(vec![text("a"), text("bc")]),
            row(vec![text("ab"), null.clone()]),
            row(vec![text("ab"), text("")]),
            row(vec![null, text("ab")]),
        ];
        let hashes: std::collections::BTreeSet<[u8; 32]> = rows.iter().map(|row| row.hash().0).collect();
        assert_eq!(hashes.len(), rows.len());
        assert_eq!(rows[0].hash(), rows[0].clone().hash());
        assert_eq!(row(vec![vec![171_u8].into()]).name(), "ab");
    }
}
