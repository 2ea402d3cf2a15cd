//! Migrations on both databases, with one of a later release.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use adapters_storage::{Database, SeaOrmWorkspaceRepository, StorageSettings};
use common::{Folder, audit, clock, workspace, workspace_id};
use domain::error::StoreError;
use domain::system::HealthProbe;
use domain::workspace::WorkspaceRepository;
use migrations::{INCOMPATIBLE_MIGRATIONS, Migrator, MigratorTrait};
use rstest::rstest;
use sea_orm::{ConnectionTrait, DatabaseConnection};
use sea_orm_migration::prelude::{ColumnDef, DbErr, Query, Table};
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

/// A migration of a later release, which adds a column.
struct Planted;

impl MigrationName for Planted {
    fn name(&self) -> &'static str {
        "m20990101_000001_planted"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Planted {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = ColumnDef::new("planted").text().take();
        manager.alter_table(Table::alter().table("workspaces").add_column(column).to_owned()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.alter_table(Table::alter().table("workspaces").drop_column("planted").to_owned()).await
    }
}

/// A migration of a later release that older ones cannot work beside.
struct Incompatible;

impl MigrationName for Incompatible {
    fn name(&self) -> &'static str {
        "m20990101_000002_incompatible"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Incompatible {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let values = [self.name().into(), "columns split".into()];
        let mut insert = Query::insert();
        insert.into_table(INCOMPATIBLE_MIGRATIONS).columns(["name", "reason"]).values_panic(values);
        manager.execute(insert).await
    }
}

/// The migrations of a later release.
struct LaterRelease;

impl MigratorTrait for LaterRelease {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        let mut all = Migrator::migrations();
        all.push(Box::new(Planted));
        all
    }
}

/// The migrations of a release after that one.
struct IncompatibleRelease;

impl MigratorTrait for IncompatibleRelease {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        let mut all = LaterRelease::migrations();
        all.push(Box::new(Incompatible));
        all
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Sqlite,
    Postgres,
}

/// An empty database, and a connection of another program to it.
struct Store {
    database: Database,
    raw: DatabaseConnection,
    _files: (Folder, Option<test_servers::Postgres>),
}

impl Store {
    async fn empty(kind: Kind) -> Self {
        let folder = Folder::new();
        let server = matches!(kind, Kind::Postgres).then(|| test_servers::Postgres::start().unwrap());
        let settings = match &server {
            Some(server) => StorageSettings::new(server.create_database().unwrap()),
            None => folder.settings(),
        };
        let database = Database::open(&settings, clock()).await.unwrap();
        let raw = sea_orm::Database::connect(&settings.url).await.unwrap();
        Self { database, raw, _files: (folder, server) }
    }

    async fn migrated(kind: Kind) -> Self {
        let store = Self::empty(kind).await;
        store.database.migrate().await.unwrap();
        store
    }

    /// Returns the names of the migrations that are applied.
    async fn applied(&self) -> Vec<String> {
        let steps = self.database.migration_status().await.unwrap();
        steps.into_iter().filter(|step| step.applied).map(|step| step.name).collect()
    }

    async fn insert_workspace(&self, number: u128) {
        SeaOrmWorkspaceRepository::new(self.database.clone())
            .insert(&workspace(number), false, &audit())
            .await
            .unwrap();
    }

    async fn has_workspace(&self, number: u128) -> bool {
        let workspaces = SeaOrmWorkspaceRepository::new(self.database.clone());
        workspaces.find(workspace_id(number)).await.unwrap().is_some()
    }
}

const INITIAL: &str = "m20261126_000001_initial";

#[rstest]
#[tokio::test]
async fn every_migration_applies_and_reverts(#[values(Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = Store::empty(kind).await;
    assert_eq!(store.applied().await, [""; 0]);
    assert!(store.database.probe().await.is_err(), "there is no schema yet");
    store.database.migrate().await.unwrap();
    store.database.migrate().await.unwrap();
    store.database.probe().await.unwrap();
    Migrator::down(&store.raw, None).await.unwrap();
    assert_eq!(store.applied().await, [""; 0]);
    store.database.migrate().await.unwrap();
    assert_eq!(store.applied().await, [INITIAL]);
    store.insert_workspace(1).await;
}

#[rstest]
#[tokio::test]
async fn migrate_accepts_later_migration_before_and_after_it_is_reverted(
    #[values(Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Store::migrated(kind).await;
    store.insert_workspace(1).await;
    for number in [2, 3] {
        LaterRelease::up(&store.raw, None).await.unwrap();
        store.database.migrate().await.unwrap();
        let steps = store.database.migration_status().await.unwrap();
        let steps: Vec<_> = steps.iter().map(|step| (step.name.as_str(), step.applied, step.known)).collect();
        assert_eq!(steps, [(INITIAL, true, true), ("m20990101_000001_planted", true, false)]);
        store.insert_workspace(number).await;
        store.raw.execute_unprepared("UPDATE workspaces SET planted = 'x'").await.unwrap();
        LaterRelease::down(&store.raw, Some(1)).await.unwrap();
        assert!(store.raw.execute_unprepared("UPDATE workspaces SET planted = 'x'").await.is_err());
        assert_eq!(store.applied().await, [INITIAL]);
    }
    assert!(store.has_workspace(1).await && store.has_workspace(3).await);
}

#[rstest]
#[tokio::test]
async fn migrate_refuses_incompatible_migration(#[values(Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = Store::migrated(kind).await;
    let mark = "INSERT INTO incompatible_migrations (name, reason) VALUES ('m20990101_000003_other', 'not applied')";
    store.raw.execute_unprepared(mark).await.unwrap();
    store.database.migrate().await.unwrap();
    IncompatibleRelease::up(&store.raw, None).await.unwrap();
    for error in [store.database.migrate().await.unwrap_err(), store.database.migration_status().await.unwrap_err()] {
        assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
        assert!(error.to_string().contains("m20990101_000002_incompatible: columns split"), "{error}");
    }
}

#[rstest]
#[tokio::test]
async fn migrate_refuses_schema_with_later_and_without_own_migration(
    #[values(Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Store::migrated(kind).await;
    LaterRelease::up(&store.raw, None).await.unwrap();
    store.raw.execute_unprepared(&format!("DELETE FROM seaql_migrations WHERE version = '{INITIAL}'")).await.unwrap();
    for result in [store.database.migration_status().await.map(drop), store.database.migrate().await] {
        assert!(matches!(result, Err(StoreError::Corrupt(_))), "{result:?}");
    }
}
