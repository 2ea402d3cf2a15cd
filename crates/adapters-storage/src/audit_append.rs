//! Appending to the audit log.

use chrono::{DateTime, Utc};
use domain::audit::{AuditDraft, AuditEntry, AuditHash, StoredAuditEntry};
use domain::error::StoreError;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};

use crate::audit_rows::RowChanges;
use crate::audit_state::{self, StateRecord};
use crate::convert::unsigned;
use crate::entities::audit_log::{Column, Entity, Model};
use crate::errors::{corrupt, store_error};

/// Appends an entry in the transaction of the change that it describes, with the changed managed rows. The transaction
/// holds the write lock, so that no other entry can follow the same one.
pub(crate) async fn append(
    transaction: &impl ConnectionTrait,
    draft: &AuditDraft,
    at: DateTime<Utc>,
    changes: &RowChanges,
) -> Result<AuditEntry, StoreError> {
    let state = audit_state::load_for_change(transaction).await?;
    let sums = state.map(|state| state.sums).unwrap_or_default().with(&changes.sums);
    let previous = previous(transaction, state.as_ref()).await?;
    let entry = AuditEntry::following(previous, at, draft, sums.digest());
    let row = to_row(&entry).into_active_model();
    Entity::insert(row).exec_without_returning(transaction).await.map_err(store_error)?;
    audit_state::note_appended(transaction, &entry, &sums).await?;
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
        (Some(state), Some((seq, _))) => Some((seq.max(state.log.newest.seq), state.log.newest.hash)),
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
