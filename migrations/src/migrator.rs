//! The list of migrations.

use sea_orm_migration::{MigrationTrait, MigratorTrait};

use crate::{
    m20261121_000001_initial, m20261121_000002_usage_share, m20261121_000003_limits, m20261122_000004_files_and_audit,
    m20261122_000005_record_bytes, m20261122_000006_allowances, m20261122_000007_compact_records,
    m20261122_000008_store_identity, m20261123_000009_recall_answers, m20261123_000010_changes,
    m20261123_000011_key_ids, m20261123_000012_outcome_names, m20261123_000013_incompatible_migrations,
    m20261123_000014_rejections, m20261123_000015_budget_alerts, m20261123_000020_deleted_workspaces,
    m20261123_000021_client_addresses, m20261123_000024_store_copies, m20261125_000025_store_journals,
    m20261126_000026_usage_months, m20261126_000027_promoting_processes, m20261126_000028_configured_endpoints,
};

/// All migrations, oldest first. New ones are only added at the end.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m20261121_000001_initial::Migration),
            Box::new(m20261121_000002_usage_share::Migration),
            Box::new(m20261121_000003_limits::Migration),
            Box::new(m20261122_000004_files_and_audit::Migration),
            Box::new(m20261122_000005_record_bytes::Migration),
            Box::new(m20261122_000006_allowances::Migration),
            Box::new(m20261122_000007_compact_records::Migration),
            Box::new(m20261122_000008_store_identity::Migration),
            Box::new(m20261123_000009_recall_answers::Migration),
            Box::new(m20261123_000010_changes::Migration),
            Box::new(m20261123_000011_key_ids::Migration),
            Box::new(m20261123_000012_outcome_names::Migration),
            Box::new(m20261123_000013_incompatible_migrations::Migration),
            Box::new(m20261123_000014_rejections::Migration),
            Box::new(m20261123_000015_budget_alerts::Migration),
            Box::new(m20261123_000020_deleted_workspaces::Migration),
            Box::new(m20261123_000021_client_addresses::Migration),
            Box::new(m20261123_000024_store_copies::Migration),
            Box::new(m20261125_000025_store_journals::Migration),
            Box::new(m20261126_000026_usage_months::Migration),
            Box::new(m20261126_000027_promoting_processes::Migration),
            Box::new(m20261126_000028_configured_endpoints::Migration),
        ]
    }
}
