//! The records of a fold, and the columns of a charge.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use domain::budget::{FoldEntry, Payer, ResetInterval, UsageCharge};
use domain::error::StoreError;
use domain::ids::WorkspaceId;
use domain::usage::{OutboxMessage, UsageOutcome, UsageRecord};
use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Value};

use super::counters::positive;
use super::usage_sums::{SUM_COLUMNS, SumChanges};
use crate::connections::{RowWriter, Transaction};
use crate::convert::{key_id, millis, moment};
use crate::errors::corrupt;
use crate::evidence::insert_evidence;
use crate::statements::{column, list, pieces, places, read, run};
use crate::usage::{RECORD_COLUMNS, ids, write_record};

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
    sums: SumChanges<'a>,
}

impl<'a> NewRecords<'a> {
    /// Selects the entries whose records count: those with new ids, and replacements of abandoned ones.
    pub(super) async fn choose(
        connection: &impl ConnectionTrait,
        entries: &'a [FoldEntry],
    ) -> Result<Self, StoreError> {
        let entries = deduplicate(entries)?;
        let mut known = read_known(connection, &entries).await?;
        let mut fresh = Self {
            entries: Vec::with_capacity(entries.len()),
            replaced: Vec::new(),
            costs: Vec::new(),
            sums: SumChanges::default(),
        };
        for entry in entries {
            let record = &entry.charge.record;
            // Nearly every batch has new ids only.
            if !known.is_empty() {
                let id = ids::decision_column(&record.id);
                match known.remove(&id) {
                    Some(Some((removed, row))) if record.outcome != UsageOutcome::Abandoned => {
                        fresh.replaced.push(id);
                        fresh.costs.push(removed);
                        fresh.sums.remove(&row, [1, 2, 4, 5], 7)?;
                    }
                    Some(_) => continue,
                    None => {}
                }
            }
            let payer = Payer {
                workspace_id: record.workspace_id,
                api_key: record.api_key,
                guardrails: record.guardrails.clone(),
            };
            fresh.costs.push(Cost { payer, at: record.charged_at, pico: record.cost.pico().into() });
            fresh.sums.add(record);
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
        let write = |entry: &&FoldEntry, row: &mut dyn RowWriter| write_record(&entry.charge.record, row);
        transaction.insert_rows("usage_records", &RECORD_COLUMNS, &self.entries, write).await?;
        let evidence = |entry: &&'a FoldEntry| {
            let FoldEntry { charge: UsageCharge { record, evidence, .. }, .. } = *entry;
            evidence.iter().map(move |answer| (record, answer))
        };
        let evidence: Vec<_> = self.entries.iter().flat_map(evidence).collect();
        insert_evidence(transaction, &evidence).await?;
        insert_messages(transaction, self.entries.iter().flat_map(|entry| &entry.charge.messages), now).await?;
        self.sums.write(transaction).await?;
        self.add_bytes(transaction, now).await
    }

    /// Adds the bytes of the records to the current day of their workspaces. A later day starts at zero; an earlier one
    /// counts towards the later.
    async fn add_bytes(&self, transaction: &impl ConnectionTrait, now: DateTime<Utc>) -> Result<(), StoreError> {
        let mut added: BTreeMap<WorkspaceId, u64> = BTreeMap::new();
        for entry in &self.entries {
            let sum = added.entry(entry.charge.record.workspace_id).or_default();
            *sum = sum.saturating_add(entry.charge.stored_bytes());
        }
        let today = millis(ResetInterval::Daily.start_of(now));
        let rows: Vec<[Value; 3]> = added
            .into_iter()
            .map(|(id, bytes)| [id.to_string().into(), today.into(), i64::try_from(bytes).unwrap_or(i64::MAX).into()])
            .collect();
        for piece in pieces(&rows) {
            let text = format!(
                "INSERT INTO record_bytes (workspace_id, day, bytes) VALUES {} ON CONFLICT (workspace_id) DO UPDATE SET \
                 day = CASE WHEN record_bytes.day > excluded.day THEN record_bytes.day ELSE excluded.day END, \
                 bytes = excluded.bytes + CASE WHEN record_bytes.day < excluded.day THEN 0 ELSE record_bytes.bytes END",
                places(piece.len(), 3)
            );
            run(transaction, &text, piece.iter().flatten().cloned().collect()).await?;
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

/// Returns the known ids among the entries, with the cost to remove and the row if the record is abandoned.
async fn read_known(
    connection: &impl ConnectionTrait,
    entries: &[&FoldEntry],
) -> Result<HashMap<Vec<u8>, Option<(Cost, QueryResult)>>, StoreError> {
    let mut ids: Vec<Vec<u8>> = entries.iter().map(|entry| ids::decision_column(&entry.charge.record.id)).collect();
    let is_postgres = connection.get_database_backend() == DbBackend::Postgres;
    if !is_postgres {
        // Ids increase with time: most are above all stored ones. PostgreSQL would search every month for the highest.
        let rows = read(connection, "SELECT MAX(id) FROM usage_records", Vec::new()).await?;
        let highest: Option<Vec<u8>> = rows.first().map(|row| column(row, 0)).transpose()?.flatten();
        ids.retain(|id| highest.as_ref().is_some_and(|highest| id <= highest));
    }
    let mut known = HashMap::new();
    for piece in pieces(&ids) {
        let mut text = format!(
            "SELECT {CHARGE_COLUMNS}, outcome, {SUM_COLUMNS} FROM usage_records WHERE id IN ({})",
            list(piece.len())
        );
        // PostgreSQL does not look into the months outside of this range.
        let range = [piece.iter().min(), piece.iter().max()].into_iter().flatten().filter(|_| is_postgres);
        let values = piece.iter().chain(range).map(|id| id.as_slice().into()).collect();
        if is_postgres {
            text += " AND id >= ? AND id <= ?";
        }
        for row in read(connection, &text, values).await? {
            let id: Vec<u8> = column(&row, 0)?;
            let outcome: String = column(&row, 6)?;
            let abandoned = outcome == UsageOutcome::Abandoned.as_str();
            let removed = if abandoned { Some(ChargedRecord::read(&row)?) } else { None };
            let cost =
                |record: ChargedRecord| Cost { pico: -i128::from(record.pico), payer: record.payer, at: record.at };
            known.insert(id, removed.map(|record| (cost(record), row)));
        }
    }
    Ok(known)
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
