//! API keys, including deleted ones.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "api_keys")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Vec<u8>,
    #[sea_orm(unique)]
    pub hash: Vec<u8>,
    pub label: String,
    pub name: String,
    pub scope: String,
    pub workspace_id: Option<String>,
    pub disabled: bool,
    pub deleted: bool,
    pub expires_at: Option<i64>,
    pub limit_pico: Option<i64>,
    pub limit_reset: Option<String>,
    pub guardrail_id: Option<String>,
    pub created_at: i64,
    pub requests_per_minute: Option<i64>,
    pub tokens_per_minute: Option<i64>,
    pub guardrail_assigned_at: Option<i64>,
    pub guardrail_assigned_by: Option<String>,
    /// The hash of the managed columns after the last change.
    pub audit_hash: Option<Vec<u8>>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "super::workspaces::Entity",
        from = "Column::WorkspaceId",
        to = "super::workspaces::Column::Id"
    )]
    Workspace,
}

impl Related<super::workspaces::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Workspace.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
