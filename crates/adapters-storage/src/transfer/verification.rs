//! The comparison of the source with the target, and the digest by which a changed source is recognised.

use aws_lc_rs::digest::{Context, SHA256};
use domain::audit::RowSum;
use domain::text::hex;
use sea_orm::{ConnectionTrait, Value};
use serde::Serialize;

use super::marker::CopyError;
use super::table::{Table, tables};
use crate::errors::store_error;

/// The maximum number of named rows.
const NAMED: usize = 10;

/// The content of a table: its number of rows, and the sum of their SHA-256 hashes modulo 2^256, which does not depend
/// on their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableContent {
    /// The table.
    pub table: &'static str,
    /// The number of rows.
    pub rows: u64,
    /// The sum in hex.
    pub checksum: String,
}

/// Compares a table of two stores.
///
/// # Errors
/// [`CopyError::Differs`] names the first different rows.
pub(super) async fn compare(
    table: &Table,
    source: &impl ConnectionTrait,
    target: &impl ConnectionTrait,
) -> Result<TableContent, CopyError> {
    let expected = content(table, source).await?;
    let found = content(table, target).await?;
    if expected == found {
        return Ok(found);
    }
    let mut rows = Vec::new();
    named(table, source, target, "is missing in the target", "differs", &mut rows).await?;
    named(table, target, source, "is not in the source", "", &mut rows).await?;
    Err(CopyError::Differs { table: table.name, expected: expected.rows, found: found.rows, rows: rows.join("; ") })
}

async fn content(table: &Table, connection: &impl ConnectionTrait) -> Result<TableContent, CopyError> {
    let (mut rows, mut sum) = (0, RowSum::default());
    let mut after: Option<Vec<Value>> = None;
    loop {
        let page = table.read_after(connection, after.as_deref(), table.batch_rows).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.key().to_vec());
        for row in &page {
            sum.add(row.hash());
            rows += 1;
        }
    }
    Ok(TableContent { table: table.name, rows, checksum: hex(&sum.0) })
}

/// Adds the rows of one store that the other lacks or that differ there. An empty `different` skips the latter.
async fn named(
    table: &Table,
    one: &impl ConnectionTrait,
    other: &impl ConnectionTrait,
    missing: &str,
    different: &str,
    rows: &mut Vec<String>,
) -> Result<(), CopyError> {
    let mut after: Option<Vec<Value>> = None;
    loop {
        let page = table.read_after(one, after.as_deref(), table.batch_rows).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.key().to_vec());
        for row in &page {
            if rows.len() >= NAMED {
                return Ok(());
            }
            match table.read_one(other, row.key()).await? {
                None => rows.push(format!("row {} {missing}", row.name())),
                Some(found) if found != *row && !different.is_empty() => {
                    rows.push(format!("row {} {different}", row.name()));
                }
                Some(_) => {}
            }
        }
    }
}

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
