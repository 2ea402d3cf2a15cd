//! The audit log, and its verification against the managed rows.

mod record;
pub(crate) mod repetitions;
mod rows;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::audit::{
    Actor, AuditDraft, AuditEntry, AuditHash, AuditLog, AuditOutcome, AuditState, RowSum, RowSums, RowViolation,
    StoredAuditEntry,
};
use domain::error::StoreError;
use domain::json::Json;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect, Select,
};

use self::record::{StateRecord, to_stored};
use self::rows::assignment_hash;
use crate::convert::{millis, moment, signed, unsigned};
use crate::entities::audit_log::{self, Column, Entity, Model};
use crate::entities::{api_keys, guardrails, workspaces};
use crate::errors::{corrupt, store_error};

pub(crate) use self::record::append;
pub use self::repetitions::SeaOrmIdempotentRequests;
pub(crate) use self::rows::{ManagedRow, RowChanges, workspace_before};

repository! {
    /// Stores the audit log in the database.
    SeaOrmAuditLog
}

#[async_trait]
impl AuditLog for SeaOrmAuditLog {
    async fn append(&self, draft: &AuditDraft) -> Result<AuditEntry, StoreError> {
        let transaction = self.database.begin().await?;
        let entry = append(&transaction, draft, self.database.now(), &RowChanges::default()).await?;
        transaction.commit().await?;
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

    async fn read_before(&self, before: u64, limit: u64) -> Result<Vec<AuditEntry>, StoreError> {
        let rows = Entity::find()
            .filter(Column::Seq.lt(i64::try_from(before).unwrap_or(i64::MAX)))
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
        Ok(record::load(self.database.readers()?).await?.map(|state| state.log))
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
        record::note_removed(&transaction, last_gone, gone.rows_affected).await?;
        transaction.commit().await?;
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

/// The number of rows per read.
const PAGE: u64 = 1000;

const CHANGED: &str = "changed or added without an entry in the audit log";
const UNKNOWN: &str = "rows were added, changed or removed without an entry in the audit log";
const ASSIGNMENTS: &str = "guardrails of keys were changed without an entry in the audit log";
const STATE: &str = "its sums are not those that the newest entry of the audit log accounts for";
const GONE: &str = "the row is missing";
/// The name of an unidentifiable row.
const UNKNOWN_ROW: &str = "(not known which)";

/// Returns the rows that the log does not account for, as of `snapshot`.
pub(crate) async fn check(snapshot: &impl ConnectionTrait, limit: usize) -> Result<Vec<RowViolation>, StoreError> {
    let fault = |table, row: &str, problem| RowViolation { table, row: row.to_owned(), problem };
    let Some(state) = record::load(snapshot).await? else {
        return Ok(vec![fault("audit_state", "1", GONE)]);
    };
    let mut faults = Vec::new();
    if !is_accounted_for(snapshot, &state).await? {
        faults.push(fault("audit_state", "1", STATE));
    }
    let found = RowScan::read(snapshot).await?;
    for (table, sum, own, named) in [
        (api_keys::Model::TABLE, found.sums.keys, state.sums.keys, found.keys),
        (guardrails::Model::TABLE, found.sums.guardrails, state.sums.guardrails, found.guardrails),
        (workspaces::Model::TABLE, found.sums.workspaces, state.sums.workspaces, found.workspaces),
    ] {
        if named.is_empty() && sum != own {
            faults.push(fault(table, UNKNOWN_ROW, UNKNOWN));
        }
        faults.extend(named.iter().map(|row| fault(table, row, CHANGED)));
    }
    if found.sums.assignments != state.sums.assignments {
        faults.push(fault("api_keys", UNKNOWN_ROW, ASSIGNMENTS));
    }
    faults.truncate(limit);
    Ok(faults)
}

/// Returns true if the newest entry has the digest of these sums. Without an entry only an empty database is accounted
/// for.
async fn is_accounted_for(connection: &impl ConnectionTrait, state: &StateRecord) -> Result<bool, StoreError> {
    use audit_log::{Column, Entity};
    let newest = i64::try_from(state.log.newest.seq).unwrap_or(i64::MAX);
    let entry: Option<(i64, Option<Vec<u8>>)> = Entity::find()
        .select_only()
        .columns([Column::Seq, Column::State])
        .filter(Column::Seq.eq(newest))
        .into_tuple()
        .one(connection)
        .await
        .map_err(store_error)?;
    Ok(match entry {
        Some((_, digest)) => digest.as_deref() == Some(&state.sums.digest().0),
        None => state.sums == RowSums::default(),
    })
}

/// The current managed rows.
#[derive(Default)]
struct RowScan {
    sums: RowSums,
    /// Ids of rows with a wrong stored hash.
    keys: Vec<String>,
    guardrails: Vec<String>,
    workspaces: Vec<String>,
}

impl RowScan {
    async fn read(connection: &impl ConnectionTrait) -> Result<Self, StoreError> {
        let mut found = Self::default();
        let mut after = Vec::new();
        loop {
            let page = keys_after(connection, &after).await?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.id);
            for mut key in page {
                if let Some(guardrail) = &key.guardrail_id {
                    found.sums.assignments.add(assignment_hash(&key.id, guardrail));
                }
                note(&mut key, &mut found.sums.keys, &mut found.keys);
            }
        }
        for mut row in guardrails::Entity::find().all(connection).await.map_err(store_error)? {
            note(&mut row, &mut found.sums.guardrails, &mut found.guardrails);
        }
        for mut row in workspaces::Entity::find().all(connection).await.map_err(store_error)? {
            note(&mut row, &mut found.sums.workspaces, &mut found.workspaces);
        }
        Ok(found)
    }
}

fn note<R: ManagedRow>(row: &mut R, sum: &mut RowSum, unsealed: &mut Vec<String>) {
    sum.add(row.managed_hash());
    if !row.is_sealed() {
        unsealed.push(row.id());
    }
}

async fn keys_after(connection: &impl ConnectionTrait, after: &[u8]) -> Result<Vec<api_keys::Model>, StoreError> {
    api_keys::Entity::find()
        .filter(api_keys::Column::Id.gt(after.to_vec()))
        .order_by_asc(api_keys::Column::Id)
        .limit(PAGE)
        .all(connection)
        .await
        .map_err(store_error)
}
