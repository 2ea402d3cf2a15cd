//! A PostgreSQL server that is suspended or ends sessions: every call ends within its time limit, and the server is used
//! again. A writer that vanished keeps the lock of writers for a second.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adapters_storage::{
    Database, SeaOrmApiKeyRepository, SeaOrmAuditLog, SeaOrmBudgetStore, SeaOrmChangeFeed, SeaOrmWorkspaceRepository,
    StorageSettings, is_temporary,
};
use common::{audit, clock, key, key_id, payer, workspace, workspace_id};
use domain::api_key::{ApiKeyScope, KeyGrants};
use domain::audit::AuditLog;
use domain::budget::allowances::{CounterId, CounterPeriod};
use domain::budget::{Account, BudgetStore, DrawAhead, DrawAsk, DrawRequest, Payer};
use domain::change_feed::ChangeFeed;
use domain::error::StoreError;
use domain::ids::{GuardrailId, ProcessId};
use domain::money::Usd;
use domain::secret::ApiKeyHash;
use domain::testing::join_all;
use domain::workspace::WorkspaceRepository;
use futures_util::future::BoxFuture;
use sea_orm::sqlx::postgres::PgPoolOptions;
use sea_orm::sqlx::{Connection as _, Error};
use test_servers::{FaultyPostgres, StopMode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// A short busy timeout, so that a call ends after 1.2 seconds.
const BUSY: Duration = Duration::from_millis(200);
/// Far more than the time limits of a call: a place, a connection, its test and a statement.
const BOUND: Duration = Duration::from_secs(15);

async fn open(server: &FaultyPostgres) -> Database {
    let url = server.url_at(&server.address());
    let settings = StorageSettings { busy_timeout: Duration::from_secs(5), ..StorageSettings::new(&url) };
    let database = Database::open(&settings, clock()).await.unwrap();
    database.migrate().await.unwrap();
    database.close().await;
    let hasty = StorageSettings { busy_timeout: BUSY, ..settings };
    let database = Database::open(&hasty, clock()).await.unwrap();
    repeat_until_available(&database, 1).await;
    database
}

/// Inserts a workspace as soon as the database is available.
async fn repeat_until_available(database: &Database, number: u128) {
    let since = Instant::now();
    while let Err(error) =
        SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(number), false, &audit()).await
    {
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        assert!(since.elapsed() < Duration::from_secs(30), "{error:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Asserts that a call fails as unavailable within its time limits.
async fn unavailable_in_time<T>(name: &str, call: impl Future<Output = Result<T, StoreError>>) {
    let result = tokio::time::timeout(BOUND, call).await;
    assert!(result.is_ok(), "{name} hangs");
    let result = result.unwrap();
    assert!(matches!(result.map(drop), Err(StoreError::Unavailable(_))), "{name}");
}

/// Returns calls of each kind: statements, snapshots and transactions that write.
fn calls(database: &Database) -> Vec<(&'static str, BoxFuture<'static, Result<(), StoreError>>)> {
    let process = ProcessId::from_uuid(Uuid::from_u128(1));
    let [one, two, three, four, five, six] = std::array::from_fn(|_| database.clone());
    vec![
        (
            "a key",
            Box::pin(
                async move { SeaOrmApiKeyRepository::new(one).find(&ApiKeyHash::from_bytes([1; 32])).await.map(drop) },
            ),
        ),
        ("the feed", Box::pin(async move { SeaOrmChangeFeed::new(two).changes_since(None).await.map(drop) })),
        ("signals", Box::pin(async move { SeaOrmBudgetStore::new(three).signals().await.map(drop) })),
        ("limits", Box::pin(async move { SeaOrmBudgetStore::new(four).limits(&common::payer()).await.map(drop) })),
        ("a registration", Box::pin(async move { SeaOrmBudgetStore::new(five).register(process).await })),
        ("an entry", Box::pin(async move { SeaOrmAuditLog::new(six).append(&audit()).await.map(drop) })),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_ends_while_server_is_suspended_and_works_once_it_continues() {
    let server = FaultyPostgres::start().unwrap();
    let database = open(&server).await;
    for (name, call) in calls(&database) {
        let result = call.await;
        assert!(!matches!(result, Err(StoreError::Unavailable(_))), "{name}: {result:?}");
    }
    for round in 0..2_u128 {
        server.freeze().unwrap();
        // Far more than there are connections, and twice, so that lost connections and failed attempts to connect count.
        for _ in 0..2 {
            let many = (0..4).flat_map(|_| calls(&database));
            join_all(many.map(|(name, call)| unavailable_in_time(name, call))).await;
        }
        server.resume().unwrap();
        repeat_until_available(&database, 10 + round).await;
        let [readers, writer] = database.pools();
        assert!(readers.busy <= readers.limit && writer.limit == 1, "{readers:?} {writer:?}");
        let found = SeaOrmWorkspaceRepository::new(database.clone()).find(workspace_id(10 + round)).await.unwrap();
        assert!(found.is_some());
    }
    tokio::time::timeout(BOUND, database.close()).await.unwrap();
}

/// A call that is dropped before its reply, as by a time limit of its caller, closes its connection.
#[tokio::test(flavor = "multi_thread")]
async fn dropped_calls_take_no_connection_from_later_ones() {
    let server = FaultyPostgres::start().unwrap();
    let database = open(&server).await;
    let feed = SeaOrmChangeFeed::new(database.clone());
    feed.changes_since(None).await.unwrap();
    server.freeze().unwrap();
    for _ in 0..8 {
        let read = tokio::time::timeout(Duration::from_millis(50), feed.changes_since(None)).await;
        assert!(!matches!(read, Ok(Ok(_))), "a suspended server does not answer");
    }
    let [readers, _] = database.pools();
    assert_eq!(readers.busy, 0, "{readers:?}");
    server.resume().unwrap();
    repeat_until_available(&database, 2).await;
    feed.changes_since(None).await.unwrap();
}

/// An entry whose commit got no reply is in the log or not. The next one follows it in either case.
#[tokio::test(flavor = "multi_thread")]
async fn entry_without_reply_leaves_audit_log_whole() {
    let server = FaultyPostgres::start().unwrap();
    let database = open(&server).await;
    let log = SeaOrmAuditLog::new(database.clone());
    log.append(&audit()).await.unwrap();
    let before = count_entries(&server);
    for delay_ms in [0, 1, 2, 4] {
        let entry = audit();
        let (failed, ()) = tokio::join!(log.append(&entry), async {
            sleep(Duration::from_millis(delay_ms)).await;
            server.freeze().unwrap();
        });
        drop(failed);
        server.resume().unwrap();
        repeat_until_available(&database, 100 + u128::from(delay_ms)).await;
    }
    // Each round has at most the entry of its append, and at least that of the workspace.
    let added = count_entries(&server) - before;
    assert!((4..=8).contains(&added), "{added}");
    assert_eq!(log.check_rows(10).await.unwrap(), Vec::new());
    let entries = log.read(1, 100).await.unwrap();
    assert!(entries.windows(2).all(|pair| pair[1].seq == pair[0].seq + 1), "{entries:?}");
}

/// Returns the message of a failed call with all causes.
fn reason<T>(result: Result<T, StoreError>) -> String {
    let error = result.map(drop).unwrap_err();
    assert!(is_temporary(&error), "{error:?}");
    std::error::Error::source(&error).unwrap().to_string()
}

#[tokio::test]
async fn error_of_unreachable_server_names_address_and_cause_once() {
    let mut server = FaultyPostgres::start().unwrap();
    let database = open(&server).await;
    server.stop(StopMode::Fast).unwrap();
    let since = Instant::now();
    let address = server.address();
    for begin in ["no connection within storage.busy_timeout_ms", "the last attempt to connect failed"] {
        let expected = format!("PostgreSQL at {address}: {begin}: Connection refused");
        loop {
            let reasons = [reason(database.migration_status().await), reason(database.probe_write().await)];
            assert!(reasons.iter().all(|reason| reason.matches("refused").count() <= 1), "{reasons:?}");
            if reasons.iter().any(|reason| reason.starts_with(&expected)) {
                break;
            }
            assert!(since.elapsed() < BOUND, "{expected}, not {reasons:?}");
        }
    }
    server.launch().unwrap();
    repeat_until_available(&database, 2).await;
}

#[tokio::test]
async fn writes_to_read_only_standby_fail_without_warnings() {
    let server = FaultyPostgres::start().unwrap();
    open(&server).await.close().await;
    let standby =
        FaultyPostgres::start_standby_below(&std::env::temp_dir(), server.address().parse().unwrap()).unwrap();
    standby.wait_for(&server).unwrap();
    let database = Database::open(&StorageSettings::new(standby.url_at(&standby.address())), clock()).await.unwrap();
    // The only connection for writes is rolled back before its next use.
    for _ in 0..3 {
        let error = database.probe_write().await.unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(source, "cannot set transaction read-write mode during recovery");
    }
    assert!(standby.has_logged("cannot set transaction read-write mode").unwrap());
    assert!(!standby.has_logged("there is no transaction in progress").unwrap());
    database.close().await;
}

fn count_entries(server: &FaultyPostgres) -> u64 {
    server.query("SELECT count(*) FROM audit_log").unwrap()[0][0].parse().unwrap()
}

/// Relays to a server. Once the sender is set to true, the relay swallows all bytes.
async fn relay(server: String) -> (String, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (silence, is_silent) = watch::channel(false);
    #[expect(clippy::disallowed_methods, reason = "the relay ends with its test")]
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (mut is_silent, server) = (is_silent.clone(), server.clone());
            tokio::spawn(async move {
                let mut upstream = TcpStream::connect(server).await.unwrap();
                let is_swallowed = tokio::select! {
                    // Bytes that are sent after the silence began are never forwarded.
                    biased;
                    is_silent = async { is_silent.wait_for(|is_silent| *is_silent).await.is_ok() } => is_silent,
                    _ = copy_bidirectional(&mut client, &mut upstream) => false,
                };
                if is_swallowed {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    (address, silence)
}

/// A writer whose network fell silent in a transaction keeps the lock of writers no longer than others wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn writer_behind_silent_network_does_not_block_others() {
    let server = FaultyPostgres::start().unwrap();
    let direct = open(&server).await;
    let (address, silence) = relay(server.address()).await;
    let settings =
        StorageSettings { busy_timeout: Duration::from_secs(3), ..StorageSettings::new(server.url_at(&address)) };
    let lost = Database::open(&settings, clock()).await.unwrap();
    server
        .query(
            "CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN PERFORM pg_sleep(3); RETURN NEW; END $$; \
             CREATE TRIGGER pause BEFORE INSERT ON audit_log FOR EACH ROW EXECUTE FUNCTION pause()",
        )
        .unwrap();
    let log = SeaOrmAuditLog::new(lost);
    let entry = audit();
    let (written, ()) = tokio::join!(log.append(&entry), async {
        let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        let since = Instant::now();
        while server.query(sleeping).unwrap()[0][0] != "1" {
            assert!(since.elapsed() < BOUND, "the transaction never came to its pause");
            sleep(Duration::from_millis(10)).await;
        }
        silence.send_replace(true);
    });
    assert!(matches!(written, Err(StoreError::Unavailable(_))), "{written:?}");
    server.query("DROP FUNCTION pause() CASCADE").unwrap();
    repeat_until_available(&direct, 5).await;
}

/// Ends the sessions of all processes, as an administrator, a failover or `idle_session_timeout` does.
fn end_sessions(server: &FaultyPostgres) -> usize {
    let end = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'tollgate'";
    server.query(end).unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_repeated_on_another_connection_after_server_ended_idle_ones() {
    let server = FaultyPostgres::start().unwrap();
    let database = open(&server).await;
    for round in 0..10_u128 {
        // Several connections are idle, and were in use a moment ago: they are not tested before their next use.
        for result in join_all(calls(&database).into_iter().map(|(_, call)| call)).await {
            assert!(!matches!(result, Err(StoreError::Unavailable(_))), "{result:?}");
        }
        assert!(end_sessions(&server) >= 2, "no session was idle");
        for (name, call) in calls(&database) {
            let result = call.await;
            assert!(!matches!(result, Err(StoreError::Unavailable(_))), "{name} in round {round}: {result:?}");
        }
        SeaOrmWorkspaceRepository::new(database.clone())
            .insert(&workspace(200 + round), false, &audit())
            .await
            .unwrap();
    }
}

/// The number of the lock of writers.
const WRITE_LOCK: i64 = 0x746f_6c6c_6761_7465;

/// The lock is granted to a session whose machine has vanished while it waited.
#[tokio::test(flavor = "multi_thread")]
async fn vanished_session_with_the_lock_of_writers_is_ended_by_the_server() {
    let server = FaultyPostgres::start().unwrap();
    let direct = open(&server).await;
    server
        .query(
            "CREATE TABLE seen (pause text, unacknowledged text); \
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO seen VALUES (current_setting('idle_in_transaction_session_timeout'), \
             current_setting('tcp_user_timeout')); RETURN NEW; END $$; \
             CREATE TRIGGER note BEFORE INSERT ON audit_log FOR EACH ROW EXECUTE FUNCTION note()",
        )
        .unwrap();
    SeaOrmAuditLog::new(direct.clone()).append(&audit()).await.unwrap();
    assert_eq!(server.query("SELECT DISTINCT pause FROM seen").unwrap(), [["1s"]]);
    let (address, silence) = relay(server.address()).await;
    let patient = |address: &str| StorageSettings {
        busy_timeout: Duration::from_secs(30),
        ..StorageSettings::new(server.url_at(address))
    };
    let lost = Database::open(&patient(&address), clock()).await.unwrap();
    let holder = Database::open(&patient(&server.address()), clock()).await.unwrap();
    server
        .query(
            "CREATE TABLE released (); \
             CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             WHILE NOT EXISTS (SELECT FROM released) LOOP PERFORM pg_sleep(0.02); END LOOP; RETURN NEW; END $$; \
             CREATE TRIGGER pause BEFORE INSERT ON workspaces FOR EACH ROW EXECUTE FUNCTION pause()",
        )
        .unwrap();
    let wait_for_lock = async |state: &str| {
        let locks = format!(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND {state} \
             AND ((classid::bigint << 32) | objid::bigint) = {WRITE_LOCK}"
        );
        let since = Instant::now();
        while server.query(&locks).unwrap()[0][0] != "1" {
            assert!(since.elapsed() < BOUND, "no transaction whose lock is {state}");
            sleep(Duration::from_millis(10)).await;
        }
    };
    let (log, entry) = (SeaOrmAuditLog::new(lost), audit());
    #[expect(clippy::disallowed_methods, reason = "it ends with its test")]
    let held = tokio::spawn(async move {
        let workspaces = SeaOrmWorkspaceRepository::new(holder);
        workspaces.insert(&workspace(300), false, &audit()).await
    });
    wait_for_lock("granted").await;
    #[expect(clippy::disallowed_methods, reason = "it ends with its test")]
    let written = tokio::spawn(async move { log.append(&entry).await });
    wait_for_lock("NOT granted").await;
    silence.send_replace(true);
    server.query("INSERT INTO released DEFAULT VALUES").unwrap();
    held.await.unwrap().unwrap();
    server.query("DROP FUNCTION pause() CASCADE").unwrap();
    repeat_until_available(&direct, 301).await;
    written.abort();
}

/// Relays to a server, and counts the messages of the client that follow a reply: the round trips.
async fn counting_relay(server: String) -> (String, Arc<AtomicUsize>) {
    let (address, count, _) = limited_relay(server).await;
    (address, count)
}

/// Like [`counting_relay`]. After the number of round trips that the second counter holds, the relay swallows all bytes.
async fn limited_relay(server: String) -> (String, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (count, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(usize::MAX)));
    let (counter, limit) = (Arc::clone(&count), Arc::clone(&most));
    #[expect(clippy::disallowed_methods, reason = "the relay ends with its test")]
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (server, counter, limit) = (server.clone(), Arc::clone(&counter), Arc::clone(&limit));
            tokio::spawn(async move {
                let mut upstream = TcpStream::connect(server).await.unwrap();
                let (mut from_client, mut from_server) = ([0; 16_384], [0; 16_384]);
                let mut is_reply_last = true;
                loop {
                    tokio::select! {
                        read = client.read(&mut from_client) => {
                            let Ok(length @ 1..) = read else { return };
                            if std::mem::take(&mut is_reply_last) {
                                counter.fetch_add(1, Ordering::SeqCst);
                            }
                            if counter.load(Ordering::SeqCst) > limit.load(Ordering::SeqCst) {
                                while matches!(client.read(&mut from_client).await, Ok(1..)) {}
                                return;
                            }
                            upstream.write_all(&from_client[..length]).await.unwrap();
                        }
                        read = upstream.read(&mut from_server) => {
                            let Ok(length @ 1..) = read else { return };
                            is_reply_last = true;
                            client.write_all(&from_server[..length]).await.unwrap();
                        }
                    }
                }
            });
        }
    });
    (address, count, most)
}

/// The most round trips of a call on an open connection with prepared statements.
const MOST_TRIPS_OF_A_CALL: usize = 20;

/// A server may fall silent after the test of a connection and before its statement, in a transaction, and between the
/// last reply and the release.
#[tokio::test(flavor = "multi_thread")]
async fn server_that_falls_silent_after_any_round_trip_takes_no_connection() {
    let server = FaultyPostgres::start().unwrap();
    let count = calls(&open(&server).await).len();
    // Reads do not wait for each other. Writes do.
    let reads = join_all((0..count - 2).map(|index| cut_after_each_round_trip(&server, index)));
    let writes = async {
        for index in count - 2..count {
            cut_after_each_round_trip(&server, index).await;
        }
    };
    tokio::join!(reads, writes);
}

/// Repeats a call of [`calls`]. The server falls silent one round trip later each time, at last after the whole call.
async fn cut_after_each_round_trip(server: &FaultyPostgres, index: usize) {
    for most in 0.. {
        let (address, count, limit) = limited_relay(server.address()).await;
        let settings = StorageSettings { busy_timeout: BUSY, ..StorageSettings::new(server.url_at(&address)) };
        let database = Database::open(&settings, clock()).await.unwrap();
        let call = || calls(&database).swap_remove(index).1;
        let name = calls(&database)[index].0;
        // Connects and prepares the statements. The writer of the last round may still hold the lock.
        let since = Instant::now();
        while let Err(StoreError::Unavailable(error)) = call().await {
            assert!(since.elapsed() < Duration::from_secs(30), "{name}: {error}");
        }
        limit.store(count.load(Ordering::SeqCst) + most, Ordering::SeqCst);
        let result = tokio::time::timeout(BOUND, call()).await;
        assert!(result.is_ok(), "{name} hangs after {most} round trips");
        limit.store(0, Ordering::SeqCst);
        let is_whole = !matches!(result.unwrap(), Err(StoreError::Unavailable(_)));
        if is_whole {
            assert!(most > 0, "{name} does not use the server");
            unavailable_in_time(name, call()).await;
        }
        // A rollback in the background has a time limit, too.
        let since = Instant::now();
        while database.pools().iter().any(|pool| pool.busy > 0) {
            assert!(since.elapsed() < BOUND, "{name}: {:?} after {most} round trips", database.pools());
            sleep(Duration::from_millis(10)).await;
        }
        if is_whole {
            return;
        }
        assert!(most < MOST_TRIPS_OF_A_CALL, "{name} has more round trips");
    }
}

/// The reason for this crate's pool: after the hook's test of a released connection, the driver's pool tests it again
/// without a time limit, and the connection keeps its place. Once this test fails, the driver's pool can be used.
#[tokio::test(flavor = "multi_thread")]
async fn pool_of_the_driver_keeps_the_place_of_a_server_that_fell_silent_after_its_hook() {
    let server = FaultyPostgres::start().unwrap();
    let (address, silence) = relay(server.address()).await;
    let hook = silence.clone();
    let options = PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_secs(5));
    let pool = options.after_release(move |connection, _| {
        let silence = hook.clone();
        Box::pin(async move {
            tokio::time::timeout(BUSY, connection.ping()).await.map_err(|_| Error::WorkerCrashed)??;
            silence.send_replace(true);
            Ok(true)
        })
    });
    let pool = pool.connect(&server.url_at(&address)).await.unwrap();
    drop(pool.acquire().await.unwrap());
    assert!(silence.subscribe().wait_for(|is_silent| *is_silent).await.is_ok());
    assert!(matches!(pool.acquire().await, Err(Error::PoolTimedOut)));
    assert_eq!((pool.size(), pool.num_idle()), (1, 0), "the place is not free after far more than the hook's limit");
}

/// A replica far from its database holds the lock of writers for a round trip per statement: there are few, and a change
/// that adds one changes this test.
#[tokio::test(flavor = "multi_thread")]
async fn writers_hold_the_lock_for_few_round_trips() {
    let server = FaultyPostgres::start().unwrap();
    let direct = open(&server).await;
    let process = ProcessId::from_uuid(Uuid::from_u128(9));
    let keys = SeaOrmApiKeyRepository::new(direct.clone());
    let scope = ApiKeyScope::Inference(workspace_id(1));
    assert!(domain::api_key::ApiKeyRepository::insert(&keys, &key(1, scope), &audit()).await.unwrap().is_inserted());
    let (address, count) = counting_relay(server.address()).await;
    let settings = StorageSettings::new(server.url_at(&address));
    let database = Database::open(&settings, clock()).await.unwrap();
    let budget = SeaOrmBudgetStore::new(database.clone());
    budget.register(process).await.unwrap();
    let lifetime = |account| CounterId { account, period: CounterPeriod::Lifetime };
    let mut trips = Vec::new();
    let payer = Payer { guardrails: vec![GuardrailId::from_uuid(Uuid::from_u128(3))], ..payer() };
    let counters: Vec<_> = payer.accounts().map(lifetime).collect();
    for number in 1..=6 {
        let before = count.load(Ordering::SeqCst);
        let asks = vec![DrawAsk {
            payer: payer.clone(),
            at: clock().now(),
            amount: Usd::from_pico(5),
            counters: counters.clone(),
        }];
        let ahead = vec![DrawAhead { counter: lifetime(Account::Key(key_id(1))), amount: Usd::from_pico(5) }];
        let reply = budget.draw(&DrawRequest { process, number, asks, free: BTreeMap::new(), ahead }).await.unwrap();
        assert_eq!(reply.grants.len(), 3, "{reply:?}");
        let drawn = count.load(Ordering::SeqCst);
        SeaOrmAuditLog::new(database.clone()).append(&audit()).await.unwrap();
        trips.push((drawn - before, count.load(Ordering::SeqCst) - drawn));
    }
    // A new connection prepares its statements.
    let least = |count: fn(&(usize, usize)) -> usize| trips.iter().map(count).min().unwrap();
    assert!(least(|(draw, _)| *draw) <= MOST_TRIPS_OF_A_DRAW, "{trips:?}");
    assert!(least(|(_, entry)| *entry) <= MOST_TRIPS_OF_AN_ENTRY, "{trips:?}");
}

/// The round trips of a draw: its snapshot, and its transaction, which begins with one message.
const MOST_TRIPS_OF_A_DRAW: usize = 13;
/// The round trips of an entry of the audit log.
const MOST_TRIPS_OF_AN_ENTRY: usize = 6;
