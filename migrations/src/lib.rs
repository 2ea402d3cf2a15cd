//! The migrations of Tollgate's database schema. See this crate's README.md for how to add one.

mod m20261121_000001_initial;
mod m20261121_000002_usage_share;
mod m20261121_000003_limits;
mod m20261122_000004_files_and_audit;
mod m20261122_000005_record_bytes;
mod m20261122_000006_allowances;
mod m20261122_000007_compact_records;
mod m20261122_000008_store_identity;
mod m20261123_000009_recall_answers;
mod m20261123_000010_changes;
mod m20261123_000011_key_ids;
mod m20261123_000012_outcome_names;
mod m20261123_000013_incompatible_migrations;
mod m20261123_000014_rejections;
mod m20261123_000015_budget_alerts;
mod m20261123_000020_deleted_workspaces;
mod m20261123_000021_client_addresses;
mod m20261123_000024_store_copies;
mod m20261125_000025_store_journals;
mod m20261126_000026_usage_months;
mod m20261126_000027_promoting_processes;
mod m20261126_000028_configured_endpoints;

mod migrator;
mod older_data;

pub use m20261123_000013_incompatible_migrations::INCOMPATIBLE_MIGRATIONS;
pub use migrator::Migrator;
/// The trait to run [`Migrator`].
pub use sea_orm_migration::MigratorTrait;
