//! The managed rows of the audit log: API keys, guardrails and workspaces.
//!
//! Each row stores the hash of its managed columns after the last change, so that a row changed outside the service is
//! identified. Each entry of the log accounts for the sums of these hashes, so that forged hashes and inserted or
//! deleted rows are detected, too.

use domain::audit::{AuditHash, RowHasher, RowSum, RowSums};
use domain::error::StoreError;
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter};
use uuid::Uuid;

use crate::entities::{api_keys, guardrails, workspaces};
use crate::errors::store_error;

/// A row with a hash of its managed columns.
pub(crate) trait ManagedRow: Sized + Send + Sync {
    /// The entity of the row.
    type Entity: EntityTrait<Model = Self>;
    /// The table.
    const TABLE: &'static str;

    /// Returns the sum of the hashes of the table.
    fn sum(sums: &mut RowSums) -> &mut RowSum;

    /// Returns the condition that selects the row.
    fn is_row(&self) -> SimpleExpr;

    /// Returns the id, for reports.
    fn id(&self) -> String;

    /// Returns the guardrail of a key, with the key.
    fn assignment(&self) -> Option<(&[u8], &str)> {
        None
    }

    /// Computes the hash of the current managed columns.
    fn managed_hash(&self) -> AuditHash;

    /// Returns the column of the stored hash.
    fn stored_hash(&mut self) -> &mut Option<Vec<u8>>;

    /// Sets the correct hash.
    fn sealed(mut self) -> Self {
        let hash = self.managed_hash().0.to_vec();
        *self.stored_hash() = Some(hash);
        self
    }

    /// Returns true if the stored hash is correct.
    fn is_sealed(&mut self) -> bool {
        let hash = self.managed_hash();
        self.stored_hash().as_deref() == Some(&hash.0)
    }
}

impl ManagedRow for api_keys::Model {
    type Entity = api_keys::Entity;
    const TABLE: &'static str = "api_keys";

    fn sum(sums: &mut RowSums) -> &mut RowSum {
        &mut sums.keys
    }

    fn is_row(&self) -> SimpleExpr {
        api_keys::Column::Id.eq(self.id.clone())
    }

    fn assignment(&self) -> Option<(&[u8], &str)> {
        Some((&self.id, self.guardrail_id.as_deref()?))
    }

    fn id(&self) -> String {
        Uuid::from_slice(&self.id).map_or_else(|_| "(malformed id)".to_owned(), |id| id.to_string())
    }

    /// Computes the hash without the guardrail: assignments have separate sums, so that many can change at once.
    fn managed_hash(&self) -> AuditHash {
        RowHasher::new(Self::TABLE)
            .bytes(self.id.as_slice())
            .bytes(self.hash.as_slice())
            .text(self.label.as_str())
            .text(self.name.as_str())
            .text(self.scope.as_str())
            .text(self.workspace_id.as_deref())
            .text(self.management_access.as_deref())
            .text(self.management_workspaces.as_deref())
            .number(i64::from(self.disabled))
            .number(i64::from(self.deleted))
            .number(self.expires_at)
            .number(self.limit_pico)
            .text(self.limit_reset.as_deref())
            .number(self.created_at)
            .number(self.requests_per_minute)
            .number(self.tokens_per_minute)
            .text(self.creator_user_id.as_deref())
            .text(self.external_user.as_deref())
            .number(self.updated_at)
            .bytes(self.previous_hash.as_deref())
            .number(self.previous_expires_at)
            .finish()
    }

    fn stored_hash(&mut self) -> &mut Option<Vec<u8>> {
        &mut self.audit_hash
    }
}

impl ManagedRow for guardrails::Model {
    type Entity = guardrails::Entity;
    const TABLE: &'static str = "guardrails";

    fn sum(sums: &mut RowSums) -> &mut RowSum {
        &mut sums.guardrails
    }

    fn is_row(&self) -> SimpleExpr {
        guardrails::Column::Id.eq(self.id.as_str())
    }

    fn id(&self) -> String {
        self.id.clone()
    }

    fn managed_hash(&self) -> AuditHash {
        RowHasher::new(Self::TABLE)
            .text(self.id.as_str())
            .text(self.workspace_id.as_str())
            .text(self.name.as_str())
            .number(self.created_at)
            .number(self.updated_at)
            .number(self.limit_pico)
            .text(self.limit_reset.as_deref())
            .number(self.version)
            .text(self.rules.as_str())
            .finish()
    }

    fn stored_hash(&mut self) -> &mut Option<Vec<u8>> {
        &mut self.audit_hash
    }
}

impl ManagedRow for workspaces::Model {
    type Entity = workspaces::Entity;
    const TABLE: &'static str = "workspaces";

    fn sum(sums: &mut RowSums) -> &mut RowSum {
        &mut sums.workspaces
    }

    fn is_row(&self) -> SimpleExpr {
        workspaces::Column::Id.eq(self.id.as_str())
    }

    fn id(&self) -> String {
        self.id.clone()
    }

    /// Computes the hash without usage, which changes with every promotion.
    fn managed_hash(&self) -> AuditHash {
        RowHasher::new(Self::TABLE)
            .text(self.id.as_str())
            .text(self.name.as_str())
            .text(self.slug.as_str())
            .text(self.description.as_deref())
            .text(self.owner_id.as_deref())
            .number(i64::from(self.is_default))
            .number(i64::from(self.suspended))
            .number(self.credit_pico)
            .number(self.created_at)
            .number(self.credit_base_pico)
            .number(self.budget_daily_pico)
            .number(self.budget_weekly_pico)
            .number(self.budget_monthly_pico)
            .number(self.budget_lifetime_pico)
            .number(self.requests_per_minute)
            .number(self.tokens_per_minute)
            .text(self.default_guardrail_id.as_deref())
            .number(self.updated_at)
            .number(self.deleted_at)
            .finish()
    }

    fn stored_hash(&mut self) -> &mut Option<Vec<u8>> {
        &mut self.audit_hash
    }
}

/// Computes the hash of a key's assignment; the key is given by its id.
pub(crate) fn assignment_hash(key: &[u8], guardrail_id: &str) -> AuditHash {
    RowHasher::new("assignments").bytes(key).text(guardrail_id).finish()
}

/// The managed rows that a transaction changes.
#[derive(Debug, Default)]
pub(crate) struct RowChanges {
    /// The sums to add to those of the record.
    pub(crate) sums: RowSums,
}

impl RowChanges {
    /// Records a row, before and after; a key with its guardrail.
    pub(crate) fn record_row<R: ManagedRow>(&mut self, before: Option<&R>, after: Option<&R>) {
        if let Some(row) = before {
            R::sum(&mut self.sums).subtract(row.managed_hash());
            if let Some((key, guardrail)) = row.assignment() {
                self.record_assignment(key, Some(guardrail), None);
            }
        }
        if let Some(row) = after {
            R::sum(&mut self.sums).add(row.managed_hash());
            if let Some((key, guardrail)) = row.assignment() {
                self.record_assignment(key, None, Some(guardrail));
            }
        }
    }

    /// Records a key's guardrail, before and after.
    pub(crate) fn record_assignment(&mut self, key: &[u8], before: Option<&str>, after: Option<&str>) {
        if let Some(guardrail) = before {
            self.sums.assignments.subtract(assignment_hash(key, guardrail));
        }
        if let Some(guardrail) = after {
            self.sums.assignments.add(assignment_hash(key, guardrail));
        }
    }

    /// Reads a row after its change and seals it.
    pub(crate) async fn record_change<R: ManagedRow>(
        &mut self,
        transaction: &impl ConnectionTrait,
        before: &R,
    ) -> Result<(), StoreError> {
        let found = R::Entity::find().filter(before.is_row()).one(transaction).await.map_err(store_error)?;
        let Some(after) = found else { return Ok(()) };
        self.record_row(Some(before), Some(&after));
        let seal = R::Entity::update_many().col_expr("audit_hash", Expr::value(after.managed_hash().0.to_vec()));
        seal.filter(before.is_row()).exec(transaction).await.map_err(store_error).map(drop)
    }
}

/// Reads a workspace before its change.
pub(crate) async fn workspace_before(
    connection: &impl ConnectionTrait,
    id: &str,
) -> Result<Option<workspaces::Model>, StoreError> {
    workspaces::Entity::find_by_id(id).one(connection).await.map_err(store_error)
}
