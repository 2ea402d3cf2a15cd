//! The connection that writes, kept by whoever writes often.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use domain::error::StoreError;
use futures_util::{StreamExt, TryStreamExt};
use sea_orm::sqlx::pool::PoolConnection;
use sea_orm::sqlx::sqlite::SqliteArguments;
use sea_orm::sqlx::{self, Arguments, AssertSqlSafe, Either, Executor, Sqlite};
use sea_orm::{DbErr, QueryResult, RuntimeErr, SqlxError, Value};

use crate::database::Database;
use crate::errors::store_error;

/// What a statement that must not be committed calls: SQLite says that it raises this error.
pub(crate) const FAIL: &str = "abs(-9223372036854775808)";
/// How that error reads.
const FAILED: &str = "integer overflow";
/// What SQLite says where there is nothing to undo.
const NOTHING_OPEN: &str = "no transaction is active";

/// How long is waited for the bell. A text that rings none, for it met an error or returns more rows than wait for whoever
/// asked, is heard of this much later; one that takes longer wakes us at each of its statements.
const UNTIL_RUNG: Duration = Duration::from_millis(5);

/// How long undoing may take, which is nothing to be read or written. The thread of a connection that dies at that moment
/// may never answer, and what it left open would keep everybody from writing.
const UNDONE_WITHIN: Duration = Duration::from_secs(2);

/// Runs texts of several statements on the connection that writes, each in one go: every text goes to the thread of the
/// connection and back once, whatever its number of statements.
///
/// A transaction that a text leaves open goes on with the next one, and nobody else has the connection meanwhile. One
/// that is still open when the session is dropped is undone by closing the connection, which is never given to anybody.
pub(crate) struct Session {
    database: Database,
    connection: Option<PoolConnection<Sqlite>>,
    /// A transaction may be open, also while an answer is awaited that may never be read.
    open: bool,
}

/// How a text stands to the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// It begins one or goes on with it.
    Open,
    /// Its last statement commits.
    Committed,
}

impl Session {
    /// Takes the connection when it is first needed.
    pub(crate) fn new(database: Database) -> Self {
        Self { database, connection: None, open: false }
    }

    /// Runs every statement of a text, of which there are so many and the last of which rings the [`Bell`](crate::bell),
    /// one after the other, and returns the rows of all of them. At the first error it stops, and what is open stays open:
    /// see [`Session::undo`].
    pub(crate) async fn send(
        &mut self,
        text: Arc<str>,
        statements: usize,
        values: Vec<Value>,
        leaves: Leaves,
    ) -> Result<Vec<QueryResult>, StoreError> {
        let arguments = arguments(values)?;
        if !self.open {
            self.database.check_file()?;
        }
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let _asking = self.database.turns().ask();
                none.insert(self.database.writing_pool().acquire().await.map_err(failure)?)
            }
        };
        self.open = true;
        self.database.bell().silence();
        let mut answers = connection.fetch_many(sqlx::query_with(AssertSqlSafe(text), arguments));
        // Begun, but not to be woken by what it answers.
        let mut next = answers.poll_next_unpin(&mut Context::from_waker(Waker::noop()));
        if next.is_pending() {
            // Either is as good: what is not there yet is waited for below.
            let _ = tokio::time::timeout(UNTIL_RUNG, self.database.bell().rung()).await;
        }
        let (mut done, mut rows) = (0, Vec::new());
        loop {
            let answer = match std::mem::replace(&mut next, Poll::Pending) {
                Poll::Ready(answer) => answer.transpose(),
                Poll::Pending => answers.try_next().await,
            };
            match answer.map_err(failure)? {
                Some(Either::Left(_)) => done += 1,
                Some(Either::Right(row)) => rows.push(QueryResult::from(row)),
                None => break,
            }
        }
        // A thread that dies in the middle says no more, which looks like the end.
        if done != statements {
            return Err(StoreError::unavailable("a connection ended before what it was told to do"));
        }
        self.open = leaves == Leaves::Open;
        Ok(rows)
    }

    /// Undoes what is open. Where that cannot be done the connection is closed, which undoes it as well.
    pub(crate) async fn undo(&mut self) {
        let (true, Some(connection)) = (self.open, &mut self.connection) else { return };
        let undone = tokio::time::timeout(UNDONE_WITHIN, connection.execute("ROLLBACK")).await;
        if undone.is_ok_and(|undone| undone.err().is_none_or(|error| says(&error, NOTHING_OPEN))) {
            self.open = false;
        } else if let Some(mut connection) = self.connection.take() {
            // Whatever happens meanwhile, it does not go back.
            connection.close_on_drop();
            self.open = false;
            match tokio::time::timeout(UNDONE_WITHIN, connection.close()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "a database connection did not close");
                }
                Err(_) => tracing::warn!("a database connection did not close in time: its thread may have died"),
            }
        }
    }

    /// Gives the connection back where somebody else wants it.
    pub(crate) fn give_way(&mut self) {
        if self.database.turns().is_wanted() {
            self.give_back();
        }
    }

    /// Returns when somebody else wants the connection, and never where it is not kept.
    pub(crate) async fn wanted(&self) {
        if self.connection.is_some() {
            self.database.turns().wanted().await;
        } else {
            std::future::pending::<()>().await;
        }
    }

    /// Gives the connection back, or closes it where a transaction is open.
    pub(crate) fn give_back(&mut self) {
        if let Some(mut connection) = self.connection.take()
            && std::mem::take(&mut self.open)
        {
            connection.close_on_drop();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn says(error: &SqlxError, what: &str) -> bool {
    error.as_database_error().is_some_and(|error| error.message().contains(what))
}

/// A sum that leaves the range of money is what [`FAIL`] is called for.
fn failure(error: SqlxError) -> StoreError {
    if says(&error, FAILED) {
        return StoreError::Corrupt("a sum leaves the range of money".to_owned());
    }
    store_error(DbErr::Query(RuntimeErr::SqlxError(Arc::new(error))))
}

/// Of the kinds of values that the columns of the ledger hold.
fn arguments(values: Vec<Value>) -> Result<SqliteArguments, StoreError> {
    let mut arguments = SqliteArguments::default();
    arguments.reserve(values.len(), 0);
    for value in values {
        let added = match value {
            Value::String(text) => arguments.add(text),
            Value::Bytes(bytes) => arguments.add(bytes),
            Value::BigInt(number) => arguments.add(number),
            _ => return Err(StoreError::Corrupt("a value of a kind that no column of the ledger holds".to_owned())),
        };
        added.map_err(|error| StoreError::unavailable(error.to_string()))?;
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use domain::testing::FixedClock;
    use sea_orm::ConnectionTrait;
    use sea_orm::sqlx::Connection;
    use tempfile::TempDir;

    use super::*;
    use crate::settings::StorageSettings;

    struct Fixture {
        database: Database,
        _folder: TempDir,
    }

    /// A database with an empty table of numbers, each of which is there at most once.
    async fn fixture() -> Fixture {
        let folder = TempDir::new().unwrap();
        let url = format!("sqlite://{}", folder.path().join("a.db").display());
        let settings = StorageSettings { busy_timeout: Duration::from_secs(2), ..StorageSettings::new(url) };
        let database = Database::open(&settings, Arc::new(FixedClock::at(chrono::DateTime::UNIX_EPOCH))).await.unwrap();
        database.writer().unwrap().execute_unprepared("CREATE TABLE t (n INTEGER PRIMARY KEY)").await.unwrap();
        Fixture { database, _folder: folder }
    }

    impl Fixture {
        fn session(&self) -> Session {
            Session::new(self.database.clone())
        }

        async fn numbers(&self) -> Vec<i64> {
            let rows = self.database.readers().unwrap().query_all_raw(sea_orm::Statement::from_string(
                sea_orm::DbBackend::Sqlite,
                "SELECT n FROM t ORDER BY n",
            ));
            rows.await.unwrap().iter().map(|row| row.try_get_by_index(0).unwrap()).collect()
        }

        /// Adds a number past the session, as everybody else does.
        async fn add(&self, number: i64) {
            let transaction = self.database.begin().await.unwrap();
            transaction.execute_unprepared(&format!("INSERT INTO t VALUES ({number})")).await.unwrap();
            transaction.commit().await.unwrap();
        }
    }

    async fn send(session: &mut Session, text: &str, leaves: Leaves) -> Result<Vec<i64>, StoreError> {
        let rows = session.send(text.into(), text.split(';').count(), Vec::new(), leaves).await?;
        Ok(rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect())
    }

    #[tokio::test]
    async fn the_rows_of_all_statements_come_back_and_values_go_to_each_in_turn() {
        let fixture = fixture().await;
        let mut session = fixture.session();
        let text = "BEGIN IMMEDIATE; INSERT INTO t VALUES (?), (?) RETURNING n; SELECT ? + 0; COMMIT";
        for round in 0..3_i64 {
            let values = [2 * round, 2 * round + 1, 100 + round];
            let rows = session.send(text.into(), 4, values.map(Value::from).to_vec(), Leaves::Committed).await.unwrap();
            let rows: Vec<i64> = rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect();
            assert_eq!(rows, values);
        }
        assert_eq!(fixture.numbers().await, [0, 1, 2, 3, 4, 5]);
    }

    #[tokio::test]
    async fn a_transaction_goes_on_over_several_texts_and_nobody_sees_the_half_of_it() {
        let fixture = fixture().await;
        let mut session = fixture.session();
        send(&mut session, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1)", Leaves::Open).await.unwrap();
        assert_eq!(fixture.numbers().await, [0; 0]);
        assert_eq!(send(&mut session, "SELECT n FROM t", Leaves::Open).await.unwrap(), [1]);
        send(&mut session, "INSERT INTO t VALUES (2); COMMIT", Leaves::Committed).await.unwrap();
        assert_eq!(fixture.numbers().await, [1, 2]);
    }

    #[tokio::test]
    async fn an_error_in_the_middle_of_a_text_stops_it_and_all_of_it_is_undone() {
        let fixture = fixture().await;
        fixture.add(7).await;
        let mut session = fixture.session();
        for (number, failing) in (0_i64..).zip([
            format!("SELECT {FAIL}"),
            "INSERT INTO t VALUES (7)".to_owned(),
            "SELECT nothing FROM nowhere".to_owned(),
        ]) {
            let text =
                format!("BEGIN IMMEDIATE; INSERT INTO t VALUES (1); {failing}; INSERT INTO t VALUES (2); COMMIT");
            for _ in 0..2 {
                let refused = send(&mut session, &text, Leaves::Committed).await;
                assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{failing}: {refused:?}");
                session.undo().await;
            }
            assert!(session.connection.is_some(), "the connection is as good as before");
            send(&mut session, &format!("INSERT INTO t VALUES ({})", 10 + number), Leaves::Committed).await.unwrap();
        }
        assert_eq!(fixture.numbers().await, [7, 10, 11, 12]);
    }

    #[tokio::test]
    async fn a_text_that_ends_before_its_last_statement_is_not_taken_for_done() {
        let fixture = fixture().await;
        let mut session = fixture.session();
        for _ in 0..2 {
            // As where the thread of the connection dies before the last one.
            let text = "BEGIN IMMEDIATE; INSERT INTO t VALUES (1)";
            let refused = session.send(text.into(), 3, Vec::new(), Leaves::Committed).await;
            assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
            session.undo().await;
        }
        session.give_back();
        fixture.add(2).await;
        assert_eq!(fixture.numbers().await, [2]);
    }

    #[tokio::test]
    async fn where_nothing_is_open_nothing_is_undone_and_the_connection_is_kept() {
        let fixture = fixture().await;
        let mut session = fixture.session();
        session.undo().await;
        send(&mut session, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1); COMMIT", Leaves::Committed).await.unwrap();
        session.undo().await;
        // As where the database undid it by itself, or did not begin it.
        session.open = true;
        session.undo().await;
        assert!(session.connection.is_some() && !session.open);
        assert_eq!(fixture.numbers().await, [1]);
    }

    #[tokio::test]
    async fn what_a_dropped_session_left_open_is_undone_and_given_to_nobody() {
        let fixture = fixture().await;
        let mut session = fixture.session();
        send(&mut session, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1)", Leaves::Open).await.unwrap();
        drop(session);
        fixture.add(2).await;
        let mut session = fixture.session();
        send(&mut session, "BEGIN IMMEDIATE; INSERT INTO t VALUES (3); COMMIT", Leaves::Committed).await.unwrap();
        assert_eq!(fixture.numbers().await, [2, 3]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_task_that_is_aborted_at_any_moment_leaves_nothing_half_done_and_nothing_locked() {
        let fixture = fixture().await;
        let slow =
            "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 20000) SELECT max(i) FROM c";
        for round in 0..20_i64 {
            let mut session = fixture.session();
            let (first, second) = (1000 + 2 * round, 1001 + 2 * round);
            let task = tokio_util::task::TaskTracker::new().spawn(async move {
                let text = format!("BEGIN IMMEDIATE; INSERT INTO t VALUES ({first}); {slow}");
                send(&mut session, &text, Leaves::Open).await.unwrap();
                let text = format!("{slow}; INSERT INTO t VALUES ({second}); COMMIT");
                send(&mut session, &text, Leaves::Committed).await.unwrap();
            });
            tokio::time::sleep(Duration::from_millis(u64::try_from(round).unwrap())).await;
            task.abort();
            let _ = task.await;
            fixture.add(round).await;
            let numbers = fixture.numbers().await;
            assert!(numbers.contains(&round));
            assert_eq!(numbers.contains(&first), numbers.contains(&second), "aborted after {round} ms: {numbers:?}");
        }
    }

    #[tokio::test]
    async fn whoever_waits_gets_the_connection_from_whoever_keeps_it() {
        let fixture = fixture().await;
        let mut session = fixture.session();
        for round in 0..20_i64 {
            let text = format!("BEGIN IMMEDIATE; INSERT INTO t VALUES ({}); COMMIT", 2 * round);
            send(&mut session, &text, Leaves::Committed).await.unwrap();
            let keeping = async {
                session.wanted().await;
                assert!(!fixture.database.turns().is_resting());
                session.give_way();
            };
            let (pools, ()) = tokio::join!(
                async {
                    // The other one waits by now.
                    tokio::task::yield_now().await;
                    let pools = fixture.database.pools();
                    fixture.add(2 * round + 1).await;
                    pools
                },
                keeping
            );
            assert_eq!((pools[1].busy, pools[1].idle), (0, 1), "it is kept and does nothing");
        }
        session.give_way();
        assert!(session.connection.is_none(), "nobody has taken it since");
        assert_eq!(fixture.numbers().await, (0..40).collect::<Vec<i64>>());
    }

    #[tokio::test]
    async fn a_database_closes_although_a_session_keeps_its_connection() {
        let fixture = fixture().await;
        let mut session = fixture.session();
        send(&mut session, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1); COMMIT", Leaves::Committed).await.unwrap();
        let closing = tokio::time::timeout(Duration::from_secs(10), fixture.database.close());
        let (closed, ()) = tokio::join!(closing, async {
            session.wanted().await;
            session.give_way();
        });
        closed.unwrap();
        let refused = send(&mut session, "SELECT 1", Leaves::Open).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    }

    #[tokio::test]
    async fn the_connection_keeps_a_bounded_number_of_texts() {
        let fixture = fixture().await;
        let mut session = fixture.session();
        for number in 0..300 {
            send(&mut session, &format!("SELECT {number}"), Leaves::Committed).await.unwrap();
        }
        let kept = session.connection.as_ref().unwrap().cached_statements_size();
        assert!((100..=128).contains(&kept), "{kept}");
    }

    #[tokio::test]
    async fn a_schema_that_changes_meanwhile_leaves_nothing_locked() {
        let fixture = fixture().await;
        let mut session = fixture.session();
        let text = "BEGIN IMMEDIATE; INSERT INTO t VALUES (?); COMMIT";
        let mut add = async |number: i64| {
            let sent = session.send(text.into(), 3, vec![number.into()], Leaves::Committed).await;
            tokio::time::timeout(Duration::from_secs(10), session.undo()).await.unwrap();
            session.give_back();
            sent
        };
        add(1).await.unwrap();
        fixture.database.writer().unwrap().execute_unprepared("ALTER TABLE t RENAME TO u").await.unwrap();
        // The thread of a connection may die of a statement that fails so for the second time.
        for number in 2..6 {
            assert!(add(number).await.is_err());
        }
        fixture.database.writer().unwrap().execute_unprepared("ALTER TABLE u RENAME TO t").await.unwrap();
        let mut tries = 0;
        while add(6).await.is_err() {
            tries += 1;
            assert!(tries < 3, "it is written again");
        }
        assert_eq!(fixture.numbers().await, [1, 6]);
    }
}
