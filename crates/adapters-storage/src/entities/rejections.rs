//! The number of rejected requests per key, status, reason and hour.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "rejections")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub api_key: Vec<u8>,
    /// The start of the hour in Unix milliseconds.
    #[sea_orm(primary_key, auto_increment = false)]
    pub hour: i64,
    /// The HTTP status.
    #[sea_orm(primary_key, auto_increment = false)]
    pub status: i32,
    #[sea_orm(primary_key, auto_increment = false)]
    pub reason: String,
    pub workspace_id: Option<Vec<u8>>,
    pub requests: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
