//! The managed rows of the audit log: API keys, guardrails and workspaces.
//!
//! Each row stores the hash of its managed columns after the last change, so that a row changed outside the service is
//! identified. Each entry of the log accounts for the sums of these hashes, so that forged hashes and inserted or
//! deleted rows are detected, too.

use domain::audit::{AuditHash, RowHasher, RowSums};
use domain::error::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter};
use uuid::Uuid;

use crate::entities::{api_keys, guardrails, workspaces};
use crate::errors::store_error;

/// A row with a hash of its managed columns.
pub(crate) trait ManagedRow: Sized {
    /// The table.
    const TABLE: &'static str;

    /// Returns the id, for reports.
    fn id(&self) -> String;

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
    const TABLE: &'static str = "api_keys";

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
            .number(i64::from(self.disabled))
            .number(i64::from(self.deleted))
            .number(self.expires_at)
            .number(self.limit_pico)
            .text(self.limit_reset.as_deref())
            .number(self.created_at)
            .number(self.requests_per_minute)
            .number(self.tokens_per_minute)
            .finish()
    }

    fn stored_hash(&mut self) -> &mut Option<Vec<u8>> {
        &mut self.audit_hash
    }
}

impl ManagedRow for guardrails::Model {
    const TABLE: &'static str = "guardrails";

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
    const TABLE: &'static str = "workspaces";

    fn id(&self) -> String {
        self.id.clone()
    }

    /// Computes the hash without usage, which changes with every promotion.
    fn managed_hash(&self) -> AuditHash {
        RowHasher::new(Self::TABLE)
            .text(self.id.as_str())
            .text(self.name.as_str())
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
    /// Records a key with its guardrail, before and after.
    pub(crate) fn key(&mut self, before: Option<&api_keys::Model>, after: Option<&api_keys::Model>) {
        if let Some(row) = before {
            self.sums.keys.subtract(row.managed_hash());
        }
        if let Some(row) = after {
            self.sums.keys.add(row.managed_hash());
        }
        let guardrail = |row: Option<&api_keys::Model>| row.and_then(|row| row.guardrail_id.clone());
        if let Some(key) = after.or(before) {
            self.assignment(&key.id, guardrail(before).as_deref(), guardrail(after).as_deref());
        }
    }

    /// Records a key's guardrail, before and after.
    pub(crate) fn assignment(&mut self, key: &[u8], before: Option<&str>, after: Option<&str>) {
        if let Some(guardrail) = before {
            self.sums.assignments.subtract(assignment_hash(key, guardrail));
        }
        if let Some(guardrail) = after {
            self.sums.assignments.add(assignment_hash(key, guardrail));
        }
    }

    /// Records a guardrail, before and after.
    pub(crate) fn guardrail(&mut self, before: Option<&guardrails::Model>, after: Option<&guardrails::Model>) {
        if let Some(row) = before {
            self.sums.guardrails.subtract(row.managed_hash());
        }
        if let Some(row) = after {
            self.sums.guardrails.add(row.managed_hash());
        }
    }

    /// Records a workspace, before and after.
    pub(crate) fn workspace(&mut self, before: Option<&workspaces::Model>, after: Option<&workspaces::Model>) {
        if let Some(row) = before {
            self.sums.workspaces.subtract(row.managed_hash());
        }
        if let Some(row) = after {
            self.sums.workspaces.add(row.managed_hash());
        }
    }

    /// Reads a key after its change and seals it.
    pub(crate) async fn key_changed(
        &mut self,
        transaction: &impl ConnectionTrait,
        before: &api_keys::Model,
    ) -> Result<(), StoreError> {
        let found = api_keys::Entity::find_by_id(before.id.clone()).one(transaction).await.map_err(store_error)?;
        let Some(after) = found else { return Ok(()) };
        self.key(Some(before), Some(&after));
        api_keys::Entity::update_many()
            .col_expr(api_keys::Column::AuditHash, Expr::value(after.managed_hash().0.to_vec()))
            .filter(api_keys::Column::Id.eq(before.id.clone()))
            .exec(transaction)
            .await
            .map_err(store_error)
            .map(drop)
    }

    /// Reads a guardrail after its change and seals it.
    pub(crate) async fn guardrail_changed(
        &mut self,
        transaction: &impl ConnectionTrait,
        before: &guardrails::Model,
    ) -> Result<(), StoreError> {
        let found = guardrails::Entity::find_by_id(before.id.as_str()).one(transaction).await.map_err(store_error)?;
        let Some(after) = found else { return Ok(()) };
        self.guardrail(Some(before), Some(&after));
        guardrails::Entity::update_many()
            .col_expr(guardrails::Column::AuditHash, Expr::value(after.managed_hash().0.to_vec()))
            .filter(guardrails::Column::Id.eq(before.id.as_str()))
            .exec(transaction)
            .await
            .map_err(store_error)
            .map(drop)
    }

    /// Reads a workspace after its change and seals it.
    pub(crate) async fn workspace_changed(
        &mut self,
        transaction: &impl ConnectionTrait,
        before: &workspaces::Model,
    ) -> Result<(), StoreError> {
        let found = workspaces::Entity::find_by_id(before.id.as_str()).one(transaction).await.map_err(store_error)?;
        let Some(after) = found else { return Ok(()) };
        self.workspace(Some(before), Some(&after));
        workspaces::Entity::update_many()
            .col_expr(workspaces::Column::AuditHash, Expr::value(after.managed_hash().0.to_vec()))
            .filter(workspaces::Column::Id.eq(before.id.as_str()))
            .exec(transaction)
            .await
            .map_err(store_error)
            .map(drop)
    }
}

/// Reads a workspace before its change.
pub(crate) async fn workspace_before(
    connection: &impl ConnectionTrait,
    id: &str,
) -> Result<Option<workspaces::Model>, StoreError> {
    workspaces::Entity::find_by_id(id).one(connection).await.map_err(store_error)
}
