//! At most one row: an unfinished copy of another store into this one.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "store_copies")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i32,
    /// The identity of the source.
    pub source_id: String,
    /// A digest of the source's state at the start of the copy.
    pub fingerprint: String,
    /// JSON: the current table and the key of its last copied row.
    pub position: String,
    pub started_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
