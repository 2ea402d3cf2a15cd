//! The records of a fold, the columns of a charge, and rows in the format of PostgreSQL's `COPY`.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use domain::budget::{FoldEntry, Payer, ResetInterval};
use domain::error::StoreError;
use domain::ids::WorkspaceId;
use domain::usage::{OutboxMessage, UsageOutcome, UsageRecord};
use sea_orm::{ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, QueryFilter, QueryResult, Value};

use super::counters::positive;
use crate::connections::Transaction;
use crate::convert::{key_id, millis, moment};
use crate::entities::record_bytes;
use crate::errors::{corrupt, store_error};
use crate::statements::{column, list, pieces, places, read, run};
use crate::usage::{RECORD_COLUMNS, ids, record_values};

/// A cost to add to the accounts of a payer; negative for a removed record.
pub(super) struct Cost {
    pub(super) payer: Payer,
    pub(super) at: DateTime<Utc>,
    pub(super) pico: i128,
}

/// The entries with new records, and their costs.
pub(super) struct NewRecords<'a> {
    entries: Vec<&'a FoldEntry>,
    /// Ids of replaced records with the outcome `abandoned`.
    replaced: Vec<Vec<u8>>,
    pub(super) costs: Vec<Cost>,
}

impl<'a> NewRecords<'a> {
    /// Selects the entries whose records count: those with new ids, and replacements of abandoned ones.
    pub(super) async fn choose(
        connection: &impl ConnectionTrait,
        entries: &'a [FoldEntry],
    ) -> Result<Self, StoreError> {
        let entries = deduplicate(entries)?;
        let known = read_known(connection, &entries).await?;
        let mut fresh = Self { entries: Vec::with_capacity(entries.len()), replaced: Vec::new(), costs: Vec::new() };
        for entry in entries {
            let record = &entry.charge.record;
            // Nearly every batch has new ids only.
            let known = if known.is_empty() { None } else { known.get(&ids::decision_column(&record.id)) };
            match known {
                Some(Some(removed_cost)) if record.outcome != UsageOutcome::Abandoned => {
                    fresh.replaced.push(ids::decision_column(&record.id));
                    let Cost { payer, at, pico } = removed_cost;
                    fresh.costs.push(Cost { payer: payer.clone(), at: *at, pico: *pico });
                }
                Some(_) => continue,
                None => {}
            }
            let payer = Payer {
                workspace_id: record.workspace_id,
                api_key: record.api_key,
                guardrails: record.guardrails.clone(),
            };
            fresh.costs.push(Cost { payer, at: record.charged_at, pico: record.cost.pico().into() });
            fresh.entries.push(entry);
        }
        Ok(fresh)
    }

    /// Inserts the records and their messages, and counts the bytes of both.
    pub(super) async fn insert(&self, transaction: &Transaction, now: DateTime<Utc>) -> Result<(), StoreError> {
        for piece in pieces(&self.replaced) {
            let text = format!("DELETE FROM usage_records WHERE id IN ({})", list(piece.len()));
            run(transaction, &text, piece.iter().map(|id| id.as_slice().into()).collect()).await?;
        }
        self.insert_records(transaction).await?;
        insert_messages(transaction, self.entries.iter().flat_map(|entry| &entry.charge.messages), now).await?;
        self.add_bytes(transaction, now).await
    }

    async fn insert_records(&self, transaction: &Transaction) -> Result<(), StoreError> {
        let columns = RECORD_COLUMNS.join(", ");
        if transaction.get_database_backend() == DbBackend::Postgres {
            if self.entries.is_empty() {
                return Ok(());
            }
            let rows = encode_copy(self.entries.iter().map(|entry| record_values(&entry.charge.record)))?;
            let copy = format!("COPY usage_records ({columns}) FROM STDIN (FORMAT binary)");
            return transaction.copy_in(copy, rows).await.map_err(store_error);
        }
        for piece in pieces(&self.entries) {
            let mut values = Vec::with_capacity(piece.len() * RECORD_COLUMNS.len());
            for entry in piece {
                values.extend(record_values(&entry.charge.record)?);
            }
            let places = places(piece.len(), RECORD_COLUMNS.len());
            run(transaction, &format!("INSERT INTO usage_records ({columns}) VALUES {places}"), values).await?;
        }
        Ok(())
    }

    /// Adds the bytes of the records to the current day of their workspaces. A later day starts at zero; an earlier one
    /// counts towards the later.
    async fn add_bytes(&self, transaction: &impl ConnectionTrait, now: DateTime<Utc>) -> Result<(), StoreError> {
        let mut added: BTreeMap<WorkspaceId, u64> = BTreeMap::new();
        for entry in &self.entries {
            let sum = added.entry(entry.charge.record.workspace_id).or_default();
            *sum = sum.saturating_add(entry.charge.record.stored_bytes());
        }
        let added: Vec<(String, u64)> = added.into_iter().map(|(id, bytes)| (id.to_string(), bytes)).collect();
        let today = millis(ResetInterval::Daily.start_of(now));
        for piece in pieces(&added) {
            let ids = record_bytes::Column::WorkspaceId.is_in(piece.iter().map(|(id, _)| id.as_str()));
            let rows = record_bytes::Entity::find().filter(ids).all(transaction).await.map_err(store_error)?;
            let before: HashMap<String, (i64, i64)> =
                rows.into_iter().map(|row| (row.workspace_id, (row.day, row.bytes))).collect();
            let mut values: Vec<Value> = Vec::with_capacity(piece.len() * 3);
            for (id, bytes) in piece {
                let bytes = i64::try_from(*bytes).unwrap_or(i64::MAX);
                let (day, bytes) = match before.get(id) {
                    Some((day, before)) if *day >= today => (*day, before.saturating_add(bytes)),
                    _ => (today, bytes),
                };
                values.extend([id.as_str().into(), day.into(), bytes.into()]);
            }
            let text = format!(
                "INSERT INTO record_bytes (workspace_id, day, bytes) VALUES {} \
                 ON CONFLICT (workspace_id) DO UPDATE SET day = excluded.day, bytes = excluded.bytes",
                places(piece.len(), 3)
            );
            run(transaction, &text, values).await?;
        }
        Ok(())
    }
}

/// Adds messages to the outbox, due at once. Known ids add nothing.
pub(super) async fn insert_messages<'m>(
    transaction: &impl ConnectionTrait,
    messages: impl Iterator<Item = &'m OutboxMessage>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let messages: Vec<&OutboxMessage> = messages.collect();
    for piece in pieces(&messages) {
        let text = format!(
            "INSERT INTO outbox (id, destination_id, payload, state, attempts, next_at, created_at) VALUES {} \
             ON CONFLICT (id) DO NOTHING",
            places(piece.len(), 7)
        );
        let rows = piece.iter().flat_map(|message| -> [Value; 7] {
            [
                message.id.to_string().into(),
                message.destination_id.to_string().into(),
                message.payload.text().into(),
                "pending".into(),
                0_i64.into(),
                millis(now).into(),
                millis(now).into(),
            ]
        });
        run(transaction, &text, rows.collect()).await?;
    }
    Ok(())
}

/// Deduplicates entries by id: keeps the first, or the first that is not abandoned.
fn deduplicate(entries: &[FoldEntry]) -> Result<Vec<&FoldEntry>, StoreError> {
    let is_abandoned = |record: &UsageRecord| record.outcome == UsageOutcome::Abandoned;
    let mut positions: HashMap<&str, usize> = HashMap::with_capacity(entries.len());
    let mut kept: Vec<&FoldEntry> = Vec::with_capacity(entries.len());
    for entry in entries {
        let record = &entry.charge.record;
        positive(record.cost)?;
        match positions.get(record.id.as_str()) {
            Some(at) if is_abandoned(&kept[*at].charge.record) && !is_abandoned(record) => kept[*at] = entry,
            Some(_) => {}
            None => {
                positions.insert(record.id.as_str(), kept.len());
                kept.push(entry);
            }
        }
    }
    Ok(kept)
}

/// Returns the known ids among the entries, with the cost to remove if the record is abandoned.
async fn read_known(
    connection: &impl ConnectionTrait,
    entries: &[&FoldEntry],
) -> Result<HashMap<Vec<u8>, Option<Cost>>, StoreError> {
    let mut known = HashMap::new();
    for piece in pieces(entries) {
        let mut text =
            format!("SELECT {CHARGE_COLUMNS}, outcome FROM usage_records WHERE id IN ({})", list(piece.len()));
        let mut ids: Vec<Vec<u8>> = piece.iter().map(|entry| ids::decision_column(&entry.charge.record.id)).collect();
        // PostgreSQL does not look into the months outside of this range.
        if connection.get_database_backend() == DbBackend::Postgres
            && let (Some(first), Some(last)) = (ids.iter().min().cloned(), ids.iter().max().cloned())
        {
            text += " AND id >= ? AND id <= ?";
            ids.extend([first, last]);
        }
        for row in read(connection, &text, ids.into_iter().map(Value::from).collect()).await? {
            let id: Vec<u8> = column(&row, 0)?;
            let outcome: String = column(&row, 6)?;
            let abandoned = outcome == UsageOutcome::Abandoned.as_str();
            let cost = if abandoned { Some(removed_cost(&row)?) } else { None };
            known.insert(id, cost);
        }
    }
    Ok(known)
}

/// Returns the negative cost of a record.
fn removed_cost(row: &sea_orm::QueryResult) -> Result<Cost, StoreError> {
    let ChargedRecord { payer, at, pico, .. } = ChargedRecord::read(row)?;
    Ok(Cost { payer, at, pico: -i128::from(pico) })
}

/// The columns for [`ChargedRecord::read`].
pub(super) const CHARGE_COLUMNS: &str = "id, workspace_id, api_key, guardrails, cost_pico, charged_at";

/// The cost of a record, its payer and the time of the charge.
pub(super) struct ChargedRecord {
    /// The raw column.
    pub(super) id: Vec<u8>,
    pub(super) payer: Payer,
    pub(super) at: DateTime<Utc>,
    pub(super) pico: i64,
}

impl ChargedRecord {
    /// Reads a row that begins with the columns of [`CHARGE_COLUMNS`].
    pub(super) fn read(row: &QueryResult) -> Result<Self, StoreError> {
        let id: Vec<u8> = column(row, 0)?;
        let payer = PayerColumns::read(row, 1)?.decode(&id)?;
        let at = moment(column(row, 5)?, "usage_records.charged_at", ids::display_id(&id))?;
        Ok(Self { payer, at, pico: column(row, 4)?, id })
    }

    /// Returns the id of an unreadable row, for reports.
    pub(super) fn id_of(row: &QueryResult) -> String {
        match column::<Vec<u8>>(row, 0) {
            Ok(id) => ids::decision_id(&id).map_or_else(|_| ids::display_id(&id), |id| id.to_string()),
            Err(_) => "a record whose id cannot be read".to_owned(),
        }
    }
}

/// The columns that identify the payer of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PayerColumns {
    workspace_id: Vec<u8>,
    api_key: Vec<u8>,
    guardrails: Option<Vec<u8>>,
}

impl PayerColumns {
    /// Reads `workspace_id, api_key, guardrails` from the given column on.
    pub(super) fn read(row: &QueryResult, first: usize) -> Result<Self, StoreError> {
        Ok(Self {
            workspace_id: column(row, first)?,
            api_key: column(row, first + 1)?,
            guardrails: column(row, first + 2)?,
        })
    }

    /// Decodes the payer; `id` is the column of the record's id, for errors.
    pub(super) fn decode(&self, id: &[u8]) -> Result<Payer, StoreError> {
        let unreadable = |column| corrupt(column, ids::display_id(id));
        let workspace_id = ids::workspace_id(&self.workspace_id);
        let guardrails = ids::guardrails(self.guardrails.as_deref());
        Ok(Payer {
            workspace_id: workspace_id.ok_or_else(|| unreadable("usage_records.workspace_id"))?,
            api_key: key_id(&self.api_key, "usage_records.api_key", ids::display_id(id))?,
            guardrails: guardrails.ok_or_else(|| unreadable("usage_records.guardrails"))?,
        })
    }
}

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// No flags, and no extension of the header.
const HEADER: [u8; 8] = [0; 8];
const END: i16 = -1;
const NULL: i32 = -1;

/// Returns the data of a `COPY` of rows. Values are texts, bytes and 64-bit integers.
fn encode_copy<const COLUMNS: usize>(
    rows: impl IntoIterator<Item = Result<[Value; COLUMNS], StoreError>>,
) -> Result<Vec<u8>, StoreError> {
    let mut data = [SIGNATURE, &HEADER].concat();
    let columns = i16::try_from(COLUMNS).map_err(|_| encoding_error("a row with too many columns"))?;
    for row in rows {
        data.extend(columns.to_be_bytes());
        for value in &row? {
            push_value(&mut data, value)?;
        }
    }
    data.extend(END.to_be_bytes());
    Ok(data)
}

fn push_value(data: &mut Vec<u8>, value: &Value) -> Result<(), StoreError> {
    match value {
        Value::BigInt(Some(number)) => push_bytes(data, &number.to_be_bytes()),
        Value::String(Some(text)) => push_bytes(data, text.as_bytes()),
        Value::Bytes(Some(bytes)) => push_bytes(data, bytes),
        Value::BigInt(None) | Value::String(None) | Value::Bytes(None) => {
            data.extend(NULL.to_be_bytes());
            Ok(())
        }
        _ => Err(encoding_error("a value of another type")),
    }
}

fn push_bytes(data: &mut Vec<u8>, bytes: &[u8]) -> Result<(), StoreError> {
    let length = i32::try_from(bytes.len()).map_err(|_| encoding_error("a value of more than 2 GiB"))?;
    data.extend(length.to_be_bytes());
    data.extend(bytes);
    Ok(())
}

fn encoding_error(what: &str) -> StoreError {
    StoreError::Corrupt(format!("{what} cannot be copied into the database"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_lengths_and_nulls() {
        let row = [Value::from(258_i64), Value::from("ab"), Value::Bytes(None)];
        let data = encode_copy([Ok(row)]).unwrap();
        let body =
            [&[0, 3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 2][..], b"ab", &[0xff; 4], &[0xff; 2]].concat();
        assert_eq!(data, [b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", &body[..]].concat());
        assert_eq!(encode_copy::<1>([]).unwrap().len(), 21);
        assert!(encode_copy([Ok([Value::from(1.5)])]).is_err());
    }
}
