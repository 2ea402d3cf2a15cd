//! Word that a text of several statements has come to its end, from the thread that runs it.

use std::cmp::Ordering;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::Notify;

/// The bell of the connection that writes, which the last statement of a text rings.
///
/// Whoever waits for the rows of a text is woken by each of its statements, on a processor that the next statement needs:
/// more switches from thread to thread than statements. Who waits for the bell is woken once.
#[derive(Default)]
pub(crate) struct Bell(Notify);

/// The order of text that nothing is ever sorted by: comparing rings the bell.
pub(crate) const ORDER: &str = "bell";
/// The statement that rings the bell. It returns no row.
pub(crate) const RING: &str = "SELECT 0 WHERE 'a' < 'b' COLLATE bell";

impl Bell {
    /// What compares by [`ORDER`]: to it, all texts are the same.
    pub(crate) fn order(self: &Arc<Self>) -> impl Fn(&str, &str) -> Ordering + Send + Sync + 'static {
        let bell = Arc::clone(self);
        move |_, _| {
            bell.0.notify_one();
            Ordering::Equal
        }
    }

    /// Forgets that it has been rung: by a text whose end was noticed otherwise.
    pub(crate) fn silence(&self) {
        let _ = self.rung().now_or_never();
    }

    /// Returns when the bell has been rung since this last returned, or since it was silenced.
    pub(crate) async fn rung(&self) {
        self.0.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::testing::FixedClock;
    use sea_orm::ConnectionTrait;

    use super::*;
    use crate::database::Database;
    use crate::settings::StorageSettings;

    #[tokio::test]
    async fn the_bell_rings_once_for_each_statement_that_rings_it() {
        let folder = tempfile::TempDir::new().unwrap();
        let url = format!("sqlite://{}", folder.path().join("a.db").display());
        let clock = Arc::new(FixedClock::at(chrono::DateTime::UNIX_EPOCH));
        let database = Database::open(&StorageSettings::new(url), clock).await.unwrap();
        let rung = || tokio::time::timeout(Duration::from_millis(20), database.bell().rung());
        assert!(rung().await.is_err(), "opening it rings nothing");
        for _ in 0..3 {
            let statement = sea_orm::Statement::from_string(sea_orm::DbBackend::Sqlite, RING);
            assert_eq!(database.writer().unwrap().query_all_raw(statement).await.unwrap().len(), 0);
            assert!(rung().await.is_ok());
            assert!(rung().await.is_err());
        }
        database.writer().unwrap().execute_unprepared(RING).await.unwrap();
        database.bell().silence();
        assert!(rung().await.is_err(), "what was rung before is forgotten");
    }
}
