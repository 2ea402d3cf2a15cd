//! The records of a fold.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use domain::budget::{FoldEntry, Payer, ResetInterval};
use domain::error::StoreError;
use domain::ids::WorkspaceId;
use domain::usage::{OutboxMessage, UsageOutcome, UsageRecord};
use sea_orm::{ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, QueryFilter, Value};

use super::charged_record::{CHARGE_COLUMNS, ChargedRecord};
use super::copied_rows;
use super::counters::positive;
use super::statements::{column, list, pieces, places, read, run};
use crate::connections::Transaction;
use crate::convert::millis;
use crate::entities::record_bytes;
use crate::errors::store_error;
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
            let rows = copied_rows::encode(self.entries.iter().map(|entry| record_values(&entry.charge.record)))?;
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
