//! The ledger.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "usage_records")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub workspace_id: String,
    pub api_key: Vec<u8>,
    pub request_id: String,
    pub requested_model: String,
    pub model: String,
    pub provider: String,
    pub outcome: String,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub token_source: String,
    pub cost_pico: i64,
    pub prompt_price: String,
    pub completion_price: String,
    pub attempts: String,
    pub session_id: Option<String>,
    pub trace: Option<String>,
    pub user: Option<String>,
    pub created_at: i64,
    pub latency_us: i64,
    pub share_index: i64,
    pub share_of: i64,
    pub guardrails: String,
    pub charged_at: i64,
    pub findings: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
