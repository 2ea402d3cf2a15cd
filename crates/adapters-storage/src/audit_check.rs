//! Verification of managed rows against the newest audit entry.

use domain::audit::{RowSum, RowSums, RowViolation};
use domain::error::StoreError;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::audit_rows::{ManagedRow, assignment_hash};
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
