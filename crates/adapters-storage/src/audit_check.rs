//! Verification of managed rows against the newest audit entry, and accounting of rows that predate it.

use chrono::{DateTime, Utc};
use domain::audit::{Actor, AuditDraft, AuditHash, RowSum, RowSums, RowViolation};
use domain::error::StoreError;
use domain::json::Json;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::audit::append;
use crate::audit_rows::{ManagedRow, RowChanges, assignment_hash};
use crate::audit_state::{self, StateRecord};
use crate::entities::{api_keys, audit_log, guardrails, workspaces};
use crate::errors::store_error;

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
    let Some(state) = audit_state::load(snapshot).await? else {
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

/// Returns true if the newest entry has the digest of these sums. Without such an entry only an empty database is
/// accounted for.
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
        Some((_, Some(digest))) => digest == state.sums.digest().0,
        _ => state.sums == RowSums::default(),
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

/// Accounts for the rows of a database that predates the accounting, and appends an entry about it.
pub(crate) async fn adopt(transaction: &impl ConnectionTrait, at: DateTime<Utc>) -> Result<(), StoreError> {
    let mut changes = RowChanges::default();
    let mut keys = 0_u64;
    let mut after = Vec::new();
    loop {
        let page = keys_after(transaction, &after).await?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.id);
        for key in page {
            // Sealing changes no sum; the row is added.
            changes.key_changed(transaction, &key).await?;
            changes.key(None, Some(&key));
            keys += 1;
        }
    }
    let guardrails = guardrails::Entity::find().all(transaction).await.map_err(store_error)?;
    for row in &guardrails {
        changes.guardrail_changed(transaction, row).await?;
        changes.guardrail(None, Some(row));
    }
    let workspaces = workspaces::Entity::find().all(transaction).await.map_err(store_error)?;
    for row in &workspaces {
        changes.workspace_changed(transaction, row).await?;
        changes.workspace(None, Some(row));
    }
    if keys == 0 && guardrails.is_empty() && workspaces.is_empty() {
        return Ok(());
    }
    let counts = [keys, guardrails.len() as u64, workspaces.len() as u64].map(|count| count.to_string());
    let [keys, guardrails, workspaces] = counts.each_ref().map(String::as_str);
    let details = Json::object([("keys", keys), ("guardrails", guardrails), ("workspaces", workspaces)]);
    let draft = AuditDraft::done(&Actor::system(), "audit.baseline", "managed rows", details);
    append(transaction, &draft, at, &changes).await.map(drop)
}

/// Accounts for keys that just got their ids, and appends an entry about it. The sums change by the difference of each
/// row, and only rows with a correct hash are sealed again, so that earlier manipulations stay detectable.
pub(crate) async fn adopt_key_ids(transaction: &impl ConnectionTrait, at: DateTime<Utc>) -> Result<(), StoreError> {
    let mut changes = RowChanges::default();
    let mut keys = 0_u64;
    let mut after = Vec::new();
    loop {
        let page = keys_after(transaction, &after).await?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.id);
        for key in page {
            let (before, now) = (key.managed_hash_without_id(), key.managed_hash());
            changes.sums.keys.subtract(before);
            changes.sums.keys.add(now);
            if let Some(guardrail) = &key.guardrail_id {
                changes.sums.assignments.subtract(assignment_hash(&key.hash, guardrail));
                changes.sums.assignments.add(assignment_hash(&key.id, guardrail));
            }
            if key.audit_hash.as_deref() == Some(&before.0) {
                seal_key(transaction, key.id, now).await?;
            }
            keys += 1;
        }
    }
    if keys == 0 {
        return Ok(());
    }
    let details = Json::object([("keys", keys.to_string().as_str())]);
    let draft = AuditDraft::done(&Actor::system(), "key.assign_ids", "keys", details);
    append(transaction, &draft, at, &changes).await.map(drop)
}

async fn seal_key(transaction: &impl ConnectionTrait, id: Vec<u8>, hash: AuditHash) -> Result<(), StoreError> {
    api_keys::Entity::update_many()
        .col_expr(api_keys::Column::AuditHash, Expr::value(hash.0.to_vec()))
        .filter(api_keys::Column::Id.eq(id))
        .exec(transaction)
        .await
        .map_err(store_error)
        .map(drop)
}
