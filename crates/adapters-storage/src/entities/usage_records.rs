//! The ledger. Ids are bytes; null represents the usual value.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "usage_records")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Vec<u8>,
    pub workspace_id: Vec<u8>,
    pub api_key: Vec<u8>,
    pub request_id: Vec<u8>,
    /// Null if equal to `model`.
    pub requested_model: Option<String>,
    pub model: String,
    pub provider: String,
    pub outcome: String,
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// Null if `reported`.
    pub usage_source: Option<String>,
    pub cost_pico: i64,
    pub prompt_price: String,
    pub completion_price: String,
    pub attempts: String,
    pub session_id: Option<String>,
    pub trace: Option<String>,
    pub user: Option<String>,
    pub created_at: i64,
    pub latency_us: i64,
    /// Null if the record bears the whole cost.
    pub share_index: Option<i64>,
    pub share_of: Option<i64>,
    /// 16 bytes each.
    pub guardrails: Option<Vec<u8>>,
    pub charged_at: i64,
    pub findings: Option<String>,
    /// 4 or 16 bytes; null if unknown or not recorded.
    pub client_address: Option<Vec<u8>>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
