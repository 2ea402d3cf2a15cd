//! The audit log.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::audit::{Actor, AuditDraft, AuditEntry, AuditHash, AuditLog, AuditOutcome};
use domain::error::StoreError;
use domain::json::Json;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, IntoActiveModel, Order, QueryFilter, QueryOrder,
    QuerySelect, Select,
};

use crate::convert::{millis, moment, signed, unsigned};
use crate::database::Database;
use crate::entities::audit_log::{Column, Entity, Model};
use crate::errors::{corrupt, store_error};

/// Keeps the audit log in the database.
#[derive(Clone)]
pub struct SeaOrmAuditLog {
    database: Database,
}

impl SeaOrmAuditLog {
    /// Over an open database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// Adds an entry in the transaction of the change that it tells of. The transaction holds the write lock, so nobody
/// else can follow the same entry.
pub(crate) async fn append(
    transaction: &DatabaseTransaction,
    draft: &AuditDraft,
    at: DateTime<Utc>,
) -> Result<AuditEntry, StoreError> {
    // No more than that: an entry that somebody tampered with must not stand in the way of every change.
    let last: Option<(i64, Vec<u8>)> = Entity::find()
        .select_only()
        .columns([Column::Seq, Column::Hash])
        .order_by_desc(Column::Seq)
        .into_tuple()
        .one(transaction)
        .await
        .map_err(store_error)?;
    let previous = match last {
        Some((seq, hash)) => {
            let seq = unsigned(seq, "audit_log.seq", seq)?;
            Some((seq, to_hash(&hash, "audit_log.hash", seq)?))
        }
        None => None,
    };
    let entry = AuditEntry::following(previous, at, draft);
    let row = to_row(&entry)?.into_active_model();
    Entity::insert(row).exec_without_returning(transaction).await.map_err(store_error)?;
    Ok(entry)
}

#[async_trait]
impl AuditLog for SeaOrmAuditLog {
    async fn append(&self, draft: &AuditDraft) -> Result<AuditEntry, StoreError> {
        let transaction = self.database.begin().await?;
        let entry = append(&transaction, draft, self.database.now()).await?;
        transaction.commit().await.map_err(store_error)?;
        Ok(entry)
    }

    async fn read(&self, from: u64, limit: u64) -> Result<Vec<AuditEntry>, StoreError> {
        let rows = Entity::find()
            .filter(Column::Seq.gte(signed(from, "audit_log.seq", from)?))
            .order_by_asc(Column::Seq)
            .limit(limit.min(u64::from(u32::MAX)))
            .all(self.database.readers()?)
            .await
            .map_err(store_error)?;
        rows.into_iter().map(to_entry).collect()
    }

    async fn newest(&self, limit: u64) -> Result<Vec<AuditEntry>, StoreError> {
        let rows = Entity::find()
            .order_by_desc(Column::Seq)
            .limit(limit.min(u64::from(u32::MAX)))
            .all(self.database.readers()?)
            .await
            .map_err(store_error)?;
        rows.into_iter().map(to_entry).collect()
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        let transaction = self.database.begin().await?;
        // Times need not rise with the places: what goes is what stands before the first entry that stays.
        let stays = place(&transaction, Entity::find().filter(Column::At.gte(millis(before))), Order::Asc).await?;
        let last = place(&transaction, Entity::find(), Order::Desc).await?;
        let first = place(&transaction, Entity::find(), Order::Asc).await?;
        let (Some(last), Some(first)) = (last, first) else { return Ok(0) };
        let most = first.saturating_add(i64::try_from(limit).unwrap_or(i64::MAX));
        let end = stays.unwrap_or(last).min(last).min(most);
        let gone = Entity::delete_many().filter(Column::Seq.lt(end)).exec(&transaction).await.map_err(store_error)?;
        transaction.commit().await.map_err(store_error)?;
        Ok(gone.rows_affected)
    }
}

/// The place of the first entry in that order. Nothing else of it is read, so that one that cannot be read keeps no other.
async fn place(
    connection: &impl ConnectionTrait,
    entries: Select<Entity>,
    order: Order,
) -> Result<Option<i64>, StoreError> {
    let places = entries.select_only().column(Column::Seq).order_by(Column::Seq, order);
    places.into_tuple().one(connection).await.map_err(store_error)
}

fn to_row(entry: &AuditEntry) -> Result<Model, StoreError> {
    Ok(Model {
        seq: signed(entry.seq, "audit_log.seq", entry.seq)?,
        at: millis(entry.at),
        actor: entry.actor.name.clone(),
        source: entry.actor.source.clone(),
        action: entry.action.clone(),
        subject: entry.subject.clone(),
        outcome: entry.outcome.as_str().to_owned(),
        details: entry.details.text().to_owned(),
        previous_hash: entry.previous_hash.0.to_vec(),
        hash: entry.hash.0.to_vec(),
    })
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
        previous_hash: to_hash(&row.previous_hash, "audit_log.previous_hash", seq)?,
        hash: to_hash(&row.hash, "audit_log.hash", seq)?,
    })
}

fn to_hash(bytes: &[u8], column: &'static str, seq: u64) -> Result<AuditHash, StoreError> {
    bytes.try_into().map(AuditHash).map_err(|_| corrupt(column, seq))
}
