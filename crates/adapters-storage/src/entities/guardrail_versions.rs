//! Every version of every guardrail.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "guardrail_versions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub guardrail_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub version: i64,
    pub name: String,
    pub rules: String,
    pub limit_pico: Option<i64>,
    pub limit_reset: Option<String>,
    pub changed_at: i64,
    pub changed_by: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
