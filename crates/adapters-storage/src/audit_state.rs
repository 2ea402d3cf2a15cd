//! The beginning and the end of the audit log, and the sums of the rows that it accounts for.
//!
//! The record changes in the transactions that add or remove entries. An attacker with access to the database can
//! change it, so it is trusted only as far as the log's hashes confirm it. No content of it can block a change.

use domain::audit::{AuditAnchor, AuditEntry, AuditHash, AuditState, RowSum, RowSums};
use domain::error::StoreError;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter};

use crate::convert::signed;
use crate::entities::audit_state::{Column, Entity, Model};
use crate::errors::{corrupt, store_error};

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
    let row = Entity::find_by_id(ROW_ID).one(connection).await.map_err(store_error)?;
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
    Entity::update_many()
        .col_expr(Column::NewestSeq, Expr::value(signed(entry.seq, "audit_log.seq", entry.seq)?))
        .col_expr(Column::NewestHash, Expr::value(entry.hash.0.to_vec()))
        .col_expr(Column::KeysSum, Expr::value(sums.keys.0.to_vec()))
        .col_expr(Column::AssignmentsSum, Expr::value(sums.assignments.0.to_vec()))
        .col_expr(Column::GuardrailsSum, Expr::value(sums.guardrails.0.to_vec()))
        .col_expr(Column::WorkspacesSum, Expr::value(sums.workspaces.0.to_vec()))
        .filter(Column::Id.eq(ROW_ID))
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
    Entity::update_many()
        .col_expr(Column::RemovedSeq, Expr::value(seq))
        .col_expr(Column::RemovedHash, Expr::value(hash))
        .col_expr(Column::RemovedCount, Expr::col(Column::RemovedCount).add(count))
        .filter(Column::Id.eq(ROW_ID))
        .exec(transaction)
        .await
        .map_err(store_error)
        .map(drop)
}

fn to_record(row: &Model) -> Result<StateRecord, StoreError> {
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
