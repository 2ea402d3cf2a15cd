//! One row: the numbers of the newest changes.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "change_feed")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i32,
    /// The newest change.
    pub number: i64,
    /// The newest change of the catalogue.
    pub catalogue: i64,
    /// The newest change of limits.
    pub limits: i64,
    /// The time at which a process found that the store is older than itself.
    pub declared_older_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
