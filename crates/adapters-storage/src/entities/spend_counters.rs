//! Spent and allotted amounts by account and period.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "spend_counters")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub scope: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub subject: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub interval: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub period_start: i64,
    pub spent_pico: i64,
    /// The sum of its allowances.
    pub allotted_pico: i64,
    /// The time at which a process last lacked allowance that others hold.
    pub recalled_at: Option<i64>,
    /// The start of the recall that `recalled_at` renewed.
    pub recall_began_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
