//! A digest by which a changed source is recognised.

use aws_lc_rs::digest::{Context, SHA256};
use sea_orm::ConnectionTrait;

use super::error::CopyError;
use super::row::hex;
use super::table::{Table, tables};
use crate::errors::store_error;

/// Small tables that change with every managed change, charge and start of a server.
const CONTENT: [&str; 5] = ["store_identity", "record_bytes", "budget_processes", "audit_state", "change_feed"];

/// The state of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// The digest in hex.
    pub(super) digest: String,
    /// The number of rows of each table.
    pub(super) rows: Vec<(&'static str, u64)>,
}

impl Fingerprint {
    /// Reads the number of rows of every table, and the rows of those that show changes.
    pub(super) async fn read(connection: &impl ConnectionTrait) -> Result<Self, CopyError> {
        let mut digest = Context::new(&SHA256);
        let mut rows = Vec::new();
        for table in tables() {
            let count = table.count(connection).await.map_err(store_error)?;
            digest.update(table.name.as_bytes());
            digest.update(&count.to_le_bytes());
            rows.push((table.name, count));
            if CONTENT.contains(&table.name) {
                add_content(&mut digest, &table, connection).await?;
            }
        }
        Ok(Self { digest: hex(digest.finish().as_ref()), rows })
    }

    /// Returns the number of rows of a table.
    pub(super) fn rows_of(&self, table: &str) -> u64 {
        self.rows.iter().find(|(name, _)| *name == table).map_or(0, |(_, rows)| *rows)
    }
}

async fn add_content(digest: &mut Context, table: &Table, connection: &impl ConnectionTrait) -> Result<(), CopyError> {
    let mut after = None;
    loop {
        let page = table.read_after(connection, after.as_deref(), table.batch_rows).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.key().to_vec());
        for row in &page {
            digest.update(&row.hash().0);
        }
    }
}
