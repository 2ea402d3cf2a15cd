//! Budget alerts: the thresholds of limits that spend has crossed.
//!
//! The key makes an alert unique per limit, period and threshold. A changed limit is another limit; `base_pico` tells
//! credits of one amount apart.

use sea_orm_migration::prelude::*;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const TABLE: &str = "budget_alerts";

/// The columns of the key, in order.
const KEY: [&str; 8] =
    ["scope", "subject", "interval", "period_start", "is_credit", "base_pico", "limit_pico", "threshold"];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut table = Table::create();
        table.table(TABLE);
        for column in KEY {
            let mut definition = ColumnDef::new(column);
            let is_text = matches!(column, "scope" | "subject" | "interval");
            let definition = if is_text { definition.text() } else { definition.big_integer() };
            table.col(definition.not_null());
        }
        let mut key = Index::create();
        for column in KEY {
            key.col(column);
        }
        let table = table
            .col(ColumnDef::new("workspace_id").text().not_null())
            .col(ColumnDef::new("spent_pico").big_integer().not_null())
            .col(ColumnDef::new("created_at").big_integer().not_null())
            .col(ColumnDef::new("published_at").big_integer())
            .primary_key(&mut key)
            .to_owned();
        manager.create_table(table).await?;
        let index = Index::create()
            .name("budget_alerts_by_publication")
            .table(TABLE)
            .col("published_at")
            .col("created_at")
            .to_owned();
        manager.create_index(index).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(TABLE).to_owned()).await
    }
}
