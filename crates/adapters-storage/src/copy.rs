//! Copies of a database that is in use.

use std::path::Path;
use std::sync::Arc;

use domain::error::StoreError;
use sea_orm::sqlx::{self, Connection};
use sea_orm::{DbErr, RuntimeErr};

use crate::errors::store_error;
use crate::location::{Location, private_file};
use crate::settings::StorageSettings;
use crate::sqlite;

/// Writes one consistent state of the database into a new file that only its owner may read.
///
/// `VACUUM INTO` reads in a single transaction, so it ends regardless of concurrent writes; SQLite's online backup
/// restarts after each write of another connection. The write-ahead log grows until the copy is complete.
///
/// # Errors
/// [`StoreError::Unavailable`] if the database cannot be read, or `target` exists or cannot be written.
pub async fn copy_database(settings: &StorageSettings, target: &Path) -> Result<(), StoreError> {
    let location = Location::parse(&settings.url).map_err(StoreError::unavailable)?;
    let name = target.to_str().ok_or_else(|| StoreError::unavailable("the path of the copy is not UTF-8"))?;
    private_file().open(target).map_err(StoreError::unavailable)?;
    let copied = async {
        let mut connection = sqlite::copier(settings, &location).await?;
        sqlx::query("VACUUM INTO ?").bind(name).execute(&mut connection).await?;
        connection.close().await
    };
    copied.await.map_err(|error| store_error(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error)))))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use domain::testing::FixedClock;
    use sea_orm::{ConnectionTrait, Statement};
    use tempfile::TempDir;

    use super::*;
    use crate::Database;

    async fn open(path: &Path) -> Database {
        Database::open(&settings(path), Arc::new(FixedClock::default())).await.unwrap()
    }

    fn settings(path: &Path) -> StorageSettings {
        StorageSettings::new(format!("sqlite://{}", path.display()))
    }

    async fn count(database: &Database) -> i64 {
        let query = Statement::from_string(sea_orm::DbBackend::Sqlite, "SELECT count(*) AS n FROM t");
        let row = database.readers().unwrap().query_one_raw(query).await.unwrap().unwrap();
        row.try_get("", "n").unwrap()
    }

    #[tokio::test]
    async fn copy_holds_one_committed_state_and_is_private() {
        let folder = TempDir::new().unwrap();
        let (source, target) = (folder.path().join("it's.db"), folder.path().join("it's a copy.db"));
        let database = open(&source).await;
        let write = async |sql: &str| {
            database.writer().unwrap().execute_unprepared(sql).await.unwrap();
        };
        write("CREATE TABLE t (n INTEGER)").await;
        write("INSERT INTO t VALUES (1), (2)").await;
        let open_transaction = database.begin().await.unwrap();
        open_transaction.execute_unprepared("INSERT INTO t VALUES (3)").await.unwrap();
        copy_database(&settings(&source), &target).await.unwrap();
        open_transaction.commit().await.unwrap();

        assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        let copy = open(&target).await;
        assert_eq!((count(&copy).await, count(&database).await), (2, 3));
    }

    #[tokio::test]
    async fn copy_never_replaces_a_file() {
        let folder = TempDir::new().unwrap();
        let (source, target) = (folder.path().join("a.db"), folder.path().join("b.db"));
        open(&source).await;
        std::fs::write(&target, "precious").unwrap();
        assert!(matches!(copy_database(&settings(&source), &target).await, Err(StoreError::Unavailable(_))));
        assert_eq!(std::fs::read(&target).unwrap(), b"precious");
        let absent = folder.path().join("absent.db");
        assert!(copy_database(&settings(&absent), &folder.path().join("c.db")).await.is_err());
        assert!(!absent.exists(), "a copy creates no source");
    }

    #[tokio::test]
    async fn copy_ends_beside_a_steady_writer() {
        let folder = TempDir::new().unwrap();
        let (source, target) = (folder.path().join("a.db"), folder.path().join("b.db"));
        let database = open(&source).await;
        database.writer().unwrap().execute_unprepared("CREATE TABLE t (n INTEGER, filler BLOB)").await.unwrap();
        let fill = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000) \
                    INSERT INTO t SELECT n, randomblob(1000) FROM c";
        database.writer().unwrap().execute_unprepared(fill).await.unwrap();
        let write = async {
            loop {
                database.writer().unwrap().execute_unprepared("INSERT INTO t VALUES (0, x'00')").await.unwrap();
            }
        };
        let settings = settings(&source);
        tokio::select! {
            copied = copy_database(&settings, &target) => copied.unwrap(),
            () = write => unreachable!("the writer never ends"),
        }
        let copied = count(&open(&target).await).await;
        assert!((5000..=count(&database).await).contains(&copied), "{copied}");
    }
}
