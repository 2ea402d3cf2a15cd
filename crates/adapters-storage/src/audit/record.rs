//! The entries of the audit log and the record of its state: the beginning, the end, and the sums of the rows that it
//! accounts for.
//!
//! The record changes in the transactions that add or remove entries. An attacker with access to the database can
//! change it, so it is trusted only as far as the log's hashes confirm it. No content of it can block a change.

use chrono::{DateTime, Utc};
use domain::audit::{AuditAnchor, AuditDraft, AuditEntry, AuditHash, AuditState, RowSum, RowSums, StoredAuditEntry};
use domain::error::StoreError;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};

use super::repetitions;
use super::rows::RowChanges;
use crate::convert::{signed, unsigned};
use crate::entities::audit_log::{Column, Entity, Model};
use crate::entities::audit_state::{self, Column as StateColumn};
use crate::errors::{corrupt, store_error};

/// Appends an entry in the transaction of the change that it describes, with the changed managed rows and the request
/// of the change. The transaction
/// holds the write lock, so that no other entry can follow the same one.
pub(crate) async fn append(
    transaction: &impl ConnectionTrait,
    draft: &AuditDraft,
    at: DateTime<Utc>,
    changes: &RowChanges,
) -> Result<AuditEntry, StoreError> {
    if let Some(stored) = &draft.repetition {
        repetitions::store(transaction, stored, at).await?;
    }
    let state = load_for_change(transaction).await?;
    let sums = state.map(|state| state.sums).unwrap_or_default().with(&changes.sums);
    let previous = previous(transaction, state.as_ref()).await?;
    let entry = AuditEntry::following(previous, at, draft, sums.digest());
    let row = to_row(&entry).into_active_model();
    Entity::insert(row).exec_without_returning(transaction).await.map_err(store_error)?;
    note_appended(transaction, &entry, &sums).await?;
    Ok(entry)
}

/// Returns the number and hash that the next entry follows: those of the last written entry, even if that was removed,
/// so that a removed entry stays detectable. Foreign rows cause a gap and never block a change.
async fn previous(
    transaction: &impl ConnectionTrait,
    state: Option<&StateRecord>,
) -> Result<Option<(u64, AuditHash)>, StoreError> {
    // Read only these columns: a manipulated entry must not block every change.
    let last: Option<(i64, Vec<u8>)> = Entity::find()
        .select_only()
        .columns([Column::Seq, Column::Hash])
        .filter(Column::Seq.gt(0))
        .order_by_desc(Column::Seq)
        .into_tuple()
        .one(transaction)
        .await
        .map_err(store_error)?;
    let last = last.map(|(seq, hash)| Ok::<_, StoreError>((unsigned(seq, "audit_log.seq", seq)?, hash))).transpose()?;
    Ok(match (state, last) {
        (Some(state), None) => Some((state.log.newest.seq, state.log.newest.hash)),
        (Some(state), Some((seq, _))) => Some((Ord::max(seq, state.log.newest.seq), state.log.newest.hash)),
        (None, Some((seq, hash))) => {
            let hash = hash.as_slice().try_into().map_err(|_| corrupt("audit_log.hash", seq))?;
            Some((seq, AuditHash(hash)))
        }
        (None, None) => None,
    })
}

fn to_row(entry: &AuditEntry) -> Model {
    let stored = StoredAuditEntry::from(entry);
    Model {
        seq: stored.seq,
        at: stored.at,
        actor: stored.actor,
        source: stored.source,
        action: stored.action,
        subject: stored.subject,
        outcome: stored.outcome,
        details: stored.details,
        previous_hash: stored.previous_hash,
        hash: stored.hash,
        version: stored.version,
        state: stored.state,
    }
}

/// Converts a row for the verification.
pub(crate) fn to_stored(row: Model) -> StoredAuditEntry {
    StoredAuditEntry {
        version: row.version,
        seq: row.seq,
        at: row.at,
        actor: row.actor,
        source: row.source,
        action: row.action,
        subject: row.subject,
        outcome: row.outcome,
        details: row.details,
        state: row.state,
        previous_hash: row.previous_hash,
        hash: row.hash,
    }
}

/// The id of the only row.
const ROW_ID: i32 = 1;

/// The parsed record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateRecord {
    pub(crate) log: AuditState,
    pub(crate) sums: RowSums,
}

/// Loads the record; `None` if it is missing.
pub(crate) async fn load(connection: &impl ConnectionTrait) -> Result<Option<StateRecord>, StoreError> {
    let row = audit_state::Entity::find_by_id(ROW_ID).one(connection).await.map_err(store_error)?;
    row.as_ref().map(to_record).transpose()
}

/// Loads the record for a change; `None` if it is missing or unreadable.
pub(crate) async fn load_for_change(transaction: &impl ConnectionTrait) -> Result<Option<StateRecord>, StoreError> {
    match load(transaction).await {
        Err(StoreError::Corrupt(_)) => Ok(None),
        loaded => loaded,
    }
}

/// Stores the newest entry and the sums after its change.
pub(crate) async fn note_appended(
    transaction: &impl ConnectionTrait,
    entry: &AuditEntry,
    sums: &RowSums,
) -> Result<(), StoreError> {
    audit_state::Entity::update_many()
        .col_expr(StateColumn::NewestSeq, Expr::value(signed(entry.seq, "audit_log.seq", entry.seq)?))
        .col_expr(StateColumn::NewestHash, Expr::value(entry.hash.0.to_vec()))
        .col_expr(StateColumn::KeysSum, Expr::value(sums.keys.0.to_vec()))
        .col_expr(StateColumn::AssignmentsSum, Expr::value(sums.assignments.0.to_vec()))
        .col_expr(StateColumn::GuardrailsSum, Expr::value(sums.guardrails.0.to_vec()))
        .col_expr(StateColumn::WorkspacesSum, Expr::value(sums.workspaces.0.to_vec()))
        .filter(StateColumn::Id.eq(ROW_ID))
        .exec(transaction)
        .await
        .map_err(store_error)
        .map(drop)
}

/// Stores the number of entries that retention removed, and the last of them.
pub(crate) async fn note_removed(
    transaction: &impl ConnectionTrait,
    (seq, hash): (i64, Vec<u8>),
    count: u64,
) -> Result<(), StoreError> {
    let count = signed(count, "audit_state.removed_count", ROW_ID)?;
    audit_state::Entity::update_many()
        .col_expr(StateColumn::RemovedSeq, Expr::value(seq))
        .col_expr(StateColumn::RemovedHash, Expr::value(hash))
        .col_expr(StateColumn::RemovedCount, Expr::col(StateColumn::RemovedCount).add(count))
        .filter(StateColumn::Id.eq(ROW_ID))
        .exec(transaction)
        .await
        .map_err(store_error)
        .map(drop)
}

fn to_record(row: &audit_state::Model) -> Result<StateRecord, StoreError> {
    Ok(StateRecord {
        log: AuditState {
            newest: anchor(row.newest_seq, &row.newest_hash, "audit_state.newest_hash")?,
            removed: anchor(row.removed_seq, &row.removed_hash, "audit_state.removed_hash")?,
            removed_count: number(row.removed_count, "audit_state.removed_count")?,
        },
        sums: RowSums {
            keys: RowSum(bytes(&row.keys_sum, "audit_state.keys_sum")?),
            assignments: RowSum(bytes(&row.assignments_sum, "audit_state.assignments_sum")?),
            guardrails: RowSum(bytes(&row.guardrails_sum, "audit_state.guardrails_sum")?),
            workspaces: RowSum(bytes(&row.workspaces_sum, "audit_state.workspaces_sum")?),
        },
    })
}

fn anchor(seq: i64, hash: &[u8], column: &str) -> Result<AuditAnchor, StoreError> {
    Ok(AuditAnchor { seq: number(seq, column)?, hash: AuditHash(bytes(hash, column)?) })
}

fn number(value: i64, column: &str) -> Result<u64, StoreError> {
    u64::try_from(value).map_err(|_| corrupt(column, ROW_ID))
}

fn bytes(value: &[u8], column: &str) -> Result<[u8; 32], StoreError> {
    value.try_into().map_err(|_| corrupt(column, ROW_ID))
}
