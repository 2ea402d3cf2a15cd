//! Durable files, including pending ones.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "documents")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub workspace_id: String,
    pub state: String,
    pub filename: String,
    pub size_bytes: i64,
    pub sha256: Option<String>,
    pub media_type: Option<String>,
    pub created_at: i64,
    /// The bytes charged against the quota.
    pub charged_bytes: i64,
    /// The process that promotes a pending document.
    pub process: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
