//! The processes that draw allowances.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "budget_processes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Of its last draw or return.
    pub number: i64,
    /// Of its last folded journal entry.
    pub folded_sequence: i64,
    pub state: String,
    /// The reply to the last call where it was a draw.
    pub last_reply: Option<String>,
    pub registered_at: i64,
    /// When it last answered recalls, at first `registered_at`.
    pub seen_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
