//! The tenants.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "workspaces")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub name: String,
    pub owner_id: Option<String>,
    pub is_default: bool,
    pub suspended: bool,
    pub credit_pico: Option<i64>,
    pub storage_used_bytes: i64,
    pub created_at: i64,
    /// The total spend at the start of the credit.
    pub credit_base_pico: Option<i64>,
    pub budget_daily_pico: Option<i64>,
    pub budget_weekly_pico: Option<i64>,
    pub budget_monthly_pico: Option<i64>,
    pub budget_lifetime_pico: Option<i64>,
    pub requests_per_minute: Option<i64>,
    pub tokens_per_minute: Option<i64>,
    pub default_guardrail_id: Option<String>,
    /// The number of documents, including pending ones.
    pub document_count: i64,
    /// The time at which the workspace got credit after having none.
    pub credit_began_at: Option<i64>,
    /// Charges before that time that were folded after it. They are added to the base of the credit.
    pub credit_late_pico: i64,
    /// The time of the deletion. The row stays for usage records, counters and deleted keys.
    pub deleted_at: Option<i64>,
    /// The hash of the managed columns after the last change.
    pub audit_hash: Option<Vec<u8>>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
