//! The audit log: changes with their actors.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "audit_log")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub seq: i64,
    pub at: i64,
    pub actor: String,
    pub source: Option<String>,
    pub action: String,
    pub subject: String,
    pub outcome: String,
    pub details: String,
    pub previous_hash: Vec<u8>,
    pub hash: Vec<u8>,
    /// The version of the hash format.
    pub version: i64,
    /// The digest of the managed rows after the change.
    pub state: Option<Vec<u8>>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
