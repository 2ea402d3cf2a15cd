//! New rows, encoded column by column without values of the ORM.

use std::sync::Arc;

use domain::error::StoreError;
use sea_orm::sqlx::Arguments as _;
use sea_orm::sqlx::sqlite::SqliteArguments;

/// Takes the columns of rows, in order.
pub(crate) trait RowWriter: Send {
    fn integer(&mut self, value: Option<i64>) -> Result<(), StoreError>;

    fn text(&mut self, value: Option<&str>) -> Result<(), StoreError>;

    fn bytes(&mut self, value: Option<Vec<u8>>) -> Result<(), StoreError>;
}

impl RowWriter for SqliteArguments {
    fn integer(&mut self, value: Option<i64>) -> Result<(), StoreError> {
        self.add(value).map_err(StoreError::unavailable)
    }

    fn text(&mut self, value: Option<&str>) -> Result<(), StoreError> {
        self.add(value.map(Arc::<str>::from)).map_err(StoreError::unavailable)
    }

    fn bytes(&mut self, value: Option<Vec<u8>>) -> Result<(), StoreError> {
        self.add(value).map_err(StoreError::unavailable)
    }
}

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// No flags, and no extension of the header.
const HEADER: [u8; 8] = [0; 8];
const END: i16 = -1;
const NULL: i32 = -1;

/// Rows in the binary format of PostgreSQL's `COPY`.
pub(super) struct CopyRows(Vec<u8>);

impl CopyRows {
    pub(super) fn new() -> Self {
        Self([SIGNATURE, &HEADER].concat())
    }

    pub(super) fn begin_row(&mut self, columns: usize) {
        self.0.extend(u16::try_from(columns).unwrap_or(u16::MAX).to_be_bytes());
    }

    /// Returns the data.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.0.extend(END.to_be_bytes());
        self.0
    }

    fn push(&mut self, value: Option<&[u8]>) -> Result<(), StoreError> {
        let Some(bytes) = value else {
            self.0.extend(NULL.to_be_bytes());
            return Ok(());
        };
        let too_long =
            |_| StoreError::Corrupt("a value of more than 2 GiB cannot be copied into the database".to_owned());
        let length = i32::try_from(bytes.len()).map_err(too_long)?;
        self.0.extend(length.to_be_bytes());
        self.0.extend(bytes);
        Ok(())
    }
}

impl RowWriter for CopyRows {
    fn integer(&mut self, value: Option<i64>) -> Result<(), StoreError> {
        self.push(value.map(i64::to_be_bytes).as_ref().map(<[u8; 8]>::as_slice))
    }

    fn text(&mut self, value: Option<&str>) -> Result<(), StoreError> {
        self.push(value.map(str::as_bytes))
    }

    fn bytes(&mut self, value: Option<Vec<u8>>) -> Result<(), StoreError> {
        self.push(value.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_rows_have_lengths_and_nulls() {
        let mut rows = CopyRows::new();
        rows.begin_row(3);
        rows.integer(Some(258)).unwrap();
        rows.text(Some("ab")).unwrap();
        rows.bytes(None).unwrap();
        let body =
            [&[0, 3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 2][..], b"ab", &[0xff; 4], &[0xff; 2]].concat();
        assert_eq!(rows.finish(), [b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", &body[..]].concat());
        assert_eq!(CopyRows::new().finish().len(), 21);
    }
}
