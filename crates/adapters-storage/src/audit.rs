//! The audit log.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::audit::{
    Actor, AuditDraft, AuditEntry, AuditHash, AuditLog, AuditOutcome, AuditState, RowViolation, StoredAuditEntry,
};
use domain::error::StoreError;
use domain::json::Json;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect, Select,
};

pub(crate) use crate::audit_append::append;
use crate::audit_append::to_stored;
use crate::audit_check::check;
use crate::audit_rows::RowChanges;
use crate::audit_state;
use crate::convert::{millis, moment, signed, unsigned};
use crate::database::Database;
use crate::entities::audit_log::{Column, Entity, Model};
use crate::errors::{corrupt, store_error};

/// Stores the audit log in the database.
#[derive(Clone)]
pub struct SeaOrmAuditLog {
    database: Database,
}

impl SeaOrmAuditLog {
    /// Creates the repository over an open database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[async_trait]
impl AuditLog for SeaOrmAuditLog {
    async fn append(&self, draft: &AuditDraft) -> Result<AuditEntry, StoreError> {
        let transaction = self.database.begin().await?;
        let entry = append(&transaction, draft, self.database.now(), &RowChanges::default()).await?;
        transaction.commit().await.map_err(store_error)?;
        Ok(entry)
    }

    async fn read(&self, from: u64, limit: u64) -> Result<Vec<AuditEntry>, StoreError> {
        let rows = Entity::find()
            .filter(Column::Seq.gte(signed(from, "audit_log.seq", from)?))
            .order_by_asc(Column::Seq)
            .limit(limit.min(u64::from(u32::MAX)))
            .all(self.database.report_readers()?)
            .await
            .map_err(store_error)?;
        rows.into_iter().map(to_entry).collect()
    }

    async fn newest(&self, limit: u64) -> Result<Vec<AuditEntry>, StoreError> {
        let rows = Entity::find()
            .order_by_desc(Column::Seq)
            .limit(limit.min(u64::from(u32::MAX)))
            .all(self.database.report_readers()?)
            .await
            .map_err(store_error)?;
        rows.into_iter().map(to_entry).collect()
    }

    async fn read_stored(&self, after: Option<i64>, limit: u64) -> Result<Vec<StoredAuditEntry>, StoreError> {
        let mut query = Entity::find().order_by_asc(Column::Seq).limit(limit.min(u64::from(u32::MAX)));
        if let Some(after) = after {
            query = query.filter(Column::Seq.gt(after));
        }
        let rows = query.all(self.database.report_readers()?).await.map_err(store_error)?;
        Ok(rows.into_iter().map(to_stored).collect())
    }

    async fn state(&self) -> Result<Option<AuditState>, StoreError> {
        Ok(audit_state::load(self.database.readers()?).await?.map(|state| state.log))
    }

    async fn check_rows(&self, limit: usize) -> Result<Vec<RowViolation>, StoreError> {
        let snapshot = self.database.report_snapshot().await?;
        check(&snapshot, limit).await
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        let transaction = self.database.begin().await?;
        // Rows with impossible numbers are not entries: they stay, so that the verification finds them.
        let entries = || Entity::find().filter(Column::Seq.gt(0));
        // Times may not increase with the numbers: remove the entries before the first one that stays.
        let stays = place(&transaction, entries().filter(Column::At.gte(millis(before))), Order::Asc).await?;
        let last = place(&transaction, entries(), Order::Desc).await?;
        let first = place(&transaction, entries(), Order::Asc).await?;
        let (Some(last), Some(first)) = (last, first) else { return Ok(0) };
        let most = first.saturating_add(i64::try_from(limit).unwrap_or(i64::MAX));
        let end = stays.unwrap_or(last).min(last).min(most);
        let going = Condition::all().add(Column::Seq.gt(0)).add(Column::Seq.lt(end));
        let last_gone: Option<(i64, Vec<u8>)> = Entity::find()
            .select_only()
            .columns([Column::Seq, Column::Hash])
            .filter(going.clone())
            .order_by_desc(Column::Seq)
            .into_tuple()
            .one(&transaction)
            .await
            .map_err(store_error)?;
        let Some(last_gone) = last_gone else { return Ok(0) };
        let gone = Entity::delete_many().filter(going).exec(&transaction).await.map_err(store_error)?;
        audit_state::note_removed(&transaction, last_gone, gone.rows_affected).await?;
        transaction.commit().await.map_err(store_error)?;
        Ok(gone.rows_affected)
    }
}

/// Returns the number of the first entry in that order. Reads only the number, so that an unreadable entry does not
/// block the removal of others.
async fn place(
    connection: &impl ConnectionTrait,
    entries: Select<Entity>,
    order: Order,
) -> Result<Option<i64>, StoreError> {
    let places = entries.select_only().column(Column::Seq).order_by(Column::Seq, order);
    places.into_tuple().one(connection).await.map_err(store_error)
}

fn to_entry(row: Model) -> Result<AuditEntry, StoreError> {
    let seq = unsigned(row.seq, "audit_log.seq", row.seq)?;
    Ok(AuditEntry {
        seq,
        at: moment(row.at, "audit_log.at", seq)?,
        actor: Actor { name: row.actor, source: row.source },
        action: row.action,
        subject: row.subject,
        outcome: AuditOutcome::from_name(&row.outcome).ok_or_else(|| corrupt("audit_log.outcome", seq))?,
        details: Json::parse(&row.details).map_err(|_| corrupt("audit_log.details", seq))?,
        state: to_hash(row.state.as_deref().unwrap_or_default(), "audit_log.state", seq)?,
        previous_hash: to_hash(&row.previous_hash, "audit_log.previous_hash", seq)?,
        hash: to_hash(&row.hash, "audit_log.hash", seq)?,
    })
}

fn to_hash(bytes: &[u8], column: &'static str, seq: u64) -> Result<AuditHash, StoreError> {
    bytes.try_into().map(AuditHash).map_err(|_| corrupt(column, seq))
}
