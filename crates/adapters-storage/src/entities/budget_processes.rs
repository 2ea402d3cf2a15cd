//! The processes that draw allowances.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "budget_processes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// The number of its last draw or return.
    pub number: i64,
    /// The number of its last folded journal entry.
    pub folded_sequence: i64,
    pub state: String,
    /// The reply to the last call if it was a draw.
    pub last_reply: Option<String>,
    pub registered_at: i64,
    /// The time of its last answer to recalls; initially `registered_at`.
    pub seen_at: i64,
    /// True if its journal is in the store.
    pub has_store_journal: bool,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
