//! The beginning and the end of the audit log, and the sums of the rows that it accounts for.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "audit_state")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i32,
    pub newest_seq: i64,
    pub newest_hash: Vec<u8>,
    pub removed_seq: i64,
    pub removed_hash: Vec<u8>,
    pub removed_count: i64,
    pub keys_sum: Vec<u8>,
    pub assignments_sum: Vec<u8>,
    pub guardrails_sum: Vec<u8>,
    pub workspaces_sum: Vec<u8>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
