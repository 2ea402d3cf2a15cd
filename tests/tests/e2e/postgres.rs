//! Servers on PostgreSQL: over TLS, behind a silent network, with notifications, and with a table a month.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use test_servers::{Authority, FaultyPostgres, Postgres, StopMode};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Call, Instance, Key, Network, Reply, SecondHand, Server, Upstream, decisions};

use crate::gateway::{PROMISED, TestGateway, body, outdated_for, providers_toml};
use crate::limits::{CHEAP, ensure_audit_passes};
use crate::stores::unavailable;

/// The deadline of requests in the tests of a silent network.
const DEADLINE: Duration = Duration::from_mins(1);
/// A time well before it.
const WELL_BEFORE: Duration = Duration::from_secs(30);
/// The longest time after a silence until every kind of request works again.
const RECOVERED: Duration = Duration::from_secs(10);

#[tokio::test]
async fn server_works_over_verified_tls() -> Result<()> {
    let authority = Authority::create()?;
    let server = Postgres::start_encrypted(&authority)?;
    let database = server.create_database()?.replace("127.0.0.1", "localhost");
    let root = authority.certificate().display().to_string();
    let instance = Instance::on_database("", format!("{database}?sslmode=verify-full&sslrootcert={root}"))?;
    let gateway = TestGateway::of(instance).await?;
    gateway.decide(body("sandbox/decider")).await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    let plain = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                 WHERE application_name = 'tollgate' AND NOT ssl";
    ensure!(hand.number(plain).await? == 0, "a connection is not encrypted");
    let encrypted = plain.replace("NOT ssl", "ssl");
    ensure!(hand.number(&encrypted).await? >= 2, "no connection of the server is encrypted");
    hand.close().await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn doctor_creates_no_folder() -> Result<()> {
    let instance = Instance::on_postgres("")?;
    ensure!(!instance.run(&["doctor"]).await?.status.success());
    let entries = std::fs::read_dir(instance.path())?.collect::<std::io::Result<Vec<_>>>()?;
    ensure!(entries.len() == 1, "beside the configuration: {entries:?}");
    Ok(())
}

/// Sockets of servers are in the folder, and the server of another database must not get the command.
#[tokio::test]
async fn command_of_another_database_does_not_reach_the_running_server() -> Result<()> {
    let mut instance = Instance::on_postgres("")?;
    let server = instance.serve().await?;
    let first_url = instance.postgres().context("no database")?.to_owned();
    instance.move_to_postgres(&Instance::create_postgres_database()?);
    instance.key(&["--name", "of-the-other"]).await?;
    let names =
        async |instance: &Instance| -> Result<String> { Ok(instance.json(&["key", "list"]).await?.to_string()) };
    ensure!(names(&instance).await?.contains("of-the-other"));
    let status = instance.run(&["status"]).await?;
    ensure!(!status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
    instance.move_to_postgres(&format!("{first_url}_missing"));
    let error = instance.refused(&["key", "list"]).await?;
    ensure!(error.contains("create it: createdb --template=template0"), "{error}");
    let started = Instance::on_database("", format!("{first_url}_missing"))?.refused_serving().await?;
    ensure!(started.contains("create it: createdb") && !started.contains("the start waits"), "{started}");
    // Another spelling of the served database.
    instance.move_to_postgres(&format!("{first_url}?application_name=command"));
    ensure!(!names(&instance).await?.contains("of-the-other"));
    ensure!(instance.run(&["status"]).await?.status.success());
    server.stop().await
}

/// An engineer finds the cause of an outage wherever it shows.
#[tokio::test]
async fn status_doctor_and_commands_name_the_cause_of_an_outage() -> Result<()> {
    let mut database = FaultyPostgres::start()?;
    let toml = "[storage]\nbusy_timeout_ms = 500\n[journal]\nsync = \"store\"\n";
    let instance = Instance::on_database(toml, database.url_at(&database.address()))?;
    let elsewhere = Instance::on_database(toml, database.url_at(&database.address()))?;
    let gateway = TestGateway::of(instance).await?;
    let beside = elsewhere.run(&["status"]).await?;
    let beside = String::from_utf8(beside.stdout)?;
    ensure!(beside.contains("No server is running on this machine and data folder"), "{beside}");
    // The key is cached, so that a request reaches the journal.
    gateway.decide(body("sandbox/decider")).await?;
    database.stop(StopMode::Fast)?;
    let refused = format!("PostgreSQL at {}: ", database.address());
    let since = Instant::now();
    loop {
        let reply = gateway.server.send(&decisions(&gateway.inference.secret, body("sandbox/decider"))).await?;
        let shown = String::from_utf8(gateway.instance.run(&["status"]).await?.stdout)?;
        if shown.contains(&refused) && shown.contains("Connection refused") && shown.contains("accept journal entries")
        {
            unavailable(&reply)?;
            ensure!(
                !shown.contains("disk") && shown.contains("the database does not accept journal entries"),
                "{shown}"
            );
            break;
        }
        ensure!(since.elapsed() < WELL_BEFORE, "{shown}");
    }
    let error = gateway.instance.refused(&["key", "list"]).await?;
    ensure!(error.contains("(request ") && error.contains("`tollgate status` names the store"), "{error}");
    let doctor = String::from_utf8(gateway.instance.run(&["doctor"]).await?.stdout)?;
    ensure!(doctor.contains("Connection refused") && !doctor.contains("tollgate-journal"), "{doctor}");
    let error = elsewhere.refused(&["key", "list"]).await?;
    ensure!(error.contains(&refused) && error.matches("Connection refused").count() == 1, "{error}");
    database.launch()?;
    gateway.server.stop().await
}

/// The platform's authorities count where no other is named.
#[tokio::test]
async fn authorities_of_platform_are_trusted() -> Result<()> {
    let authority = Authority::create()?;
    let server = Postgres::start_encrypted(&authority)?;
    let database = server.create_database()?.replace("127.0.0.1", "localhost");
    let mut instance = Instance::on_database("", format!("{database}?sslmode=verify-full"))?;
    let error = instance.refused(&["migrate", "up"]).await?;
    ensure!(error.contains("sslrootcert=/path/to/ca.pem"), "{error}");
    instance.set_env("SSL_CERT_FILE", authority.certificate().display().to_string());
    let output = instance.run(&["migrate", "up"]).await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Sends requests of a key at once. Returns the responses with their durations.
async fn send_many(server: &Server, key: &Key, count: usize) -> Result<Vec<(Reply, Duration)>> {
    let mut calls = JoinSet::new();
    for _ in 0..count {
        let (call, address) = (decisions(&key.secret, body("acme/alone")), server.address());
        calls.spawn(async move {
            let sent = Instant::now();
            call.send(address).await.map(|reply| (reply, sent.elapsed()))
        });
    }
    let mut replies = Vec::new();
    while let Some(reply) = calls.join_next().await {
        replies.push(reply??);
    }
    Ok(replies)
}

/// While the network to the database is silent, requests that need no store are answered, and all others are 503 well
/// before the deadline. Nothing waits for the silent connections once the network is back.
#[tokio::test]
async fn silent_network_delays_only_requests_that_need_the_database() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(CHEAP)).await?;
    let providers = providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000);
    let deadline_ms = DEADLINE.as_millis();
    let toml = format!(
        "[keys]\nmax_stale_ms = 120000\n[storage]\nbusy_timeout_ms = 1000\n\
         [limits]\nrequest_timeout_ms = {deadline_ms}\n{providers}"
    );
    let (mut instance, relay) = Instance::behind_relay(&toml).await?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    let gateway = TestGateway::of(instance).await?;
    let server = &gateway.server;
    // The keys are cached, and the limited ones have no allowance yet.
    let limited = [
        gateway.instance.key(&["--name", "limited", "--limit-usd", "1000"]).await?,
        gateway.instance.key(&["--name", "another", "--limit-usd", "1000"]).await?,
    ];
    for key in limited.iter().chain([&gateway.inference]) {
        server.send(&Call::get("/api/v1/models/count").key(&key.secret)).await?.ok()?;
    }
    gateway.decide(body("acme/alone")).await?;
    for limited in &limited {
        relay.set(Network::Frozen);
        for _ in 0..2 {
            let (unlimited, limited) =
                tokio::try_join!(send_many(server, &gateway.inference, 20), send_many(server, limited, 20))?;
            for (reply, took) in unlimited {
                ensure!(reply.status == 200 && took < WELL_BEFORE, "{took:?}: {} {}", reply.status, reply.text());
            }
            for (reply, took) in limited {
                unavailable(&reply)?;
                ensure!(took < WELL_BEFORE, "503 after {took:?}");
            }
        }
        let stranger = Call::get("/api/v1/models/count").key(&format!("sk-tg-v1-{}", "0".repeat(64)));
        let since = Instant::now();
        unavailable(&server.send(&stranger).await?)?;
        ensure!(since.elapsed() < WELL_BEFORE, "503 after {:?}", since.elapsed());
        relay.set(Network::Up);
        ensure_draws(server, limited).await?;
    }
    ensure_audit_passes(&gateway.instance).await?;
    gateway.server.stop().await
}

/// Waits until a limited key draws an allowance, which writes to the database.
async fn ensure_draws(server: &Server, limited: &Key) -> Result<()> {
    let since = Instant::now();
    loop {
        let reply = server.decide(&limited.secret, body("acme/alone")).await?;
        if reply.status == 200 {
            return Ok(());
        }
        unavailable(&reply)?;
        ensure!(since.elapsed() < RECOVERED, "still {}: {}", reply.status, reply.text());
        sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a query returns a number.
async fn until_number(hand: &SecondHand, query: &str, expected: i64) -> Result<()> {
    let since = Instant::now();
    loop {
        let found = hand.number(query).await?;
        if found == expected {
            return Ok(());
        }
        ensure!(since.elapsed() < WELL_BEFORE, "{found} instead of {expected}: {query}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn key_is_revoked_within_a_second_also_after_notifications_were_cut() -> Result<()> {
    let server = Postgres::start()?;
    let gateway = TestGateway::of(Instance::on_database("", server.create_database()?)?).await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    let listening = "FROM pg_stat_activity WHERE application_name = 'tollgate' AND query LIKE 'LISTEN%'";
    for turn in 0..4 {
        until_number(&hand, &format!("SELECT count(*) {listening}"), 1).await?;
        let key = gateway.instance.inference_key().await?;
        let call = decisions(&key.secret, body("sandbox/decider"));
        gateway.server.send(&call).await?.ok()?;
        if turn % 2 == 1 {
            let cut = hand.number(&format!("SELECT count(pg_terminate_backend(pid)) {listening}")).await?;
            ensure!(cut == 1, "{cut} connections were cut");
        }
        gateway.instance.json(&["key", "disable", &key.hash]).await?;
        let took = outdated_for(&gateway.server, &call, 401, Instant::now()).await?;
        ensure!(took <= PROMISED, "the key lived on for {took:?}");
    }
    hand.close().await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn usage_records_are_in_the_table_of_their_month() -> Result<()> {
    let server = Postgres::start()?;
    let gateway = TestGateway::of(Instance::on_database("", server.create_database()?)?).await?;
    gateway.decide(body("sandbox/decider")).await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    until_number(&hand, "SELECT count(*) FROM usage_records", 1).await?;
    let other = hand.number("SELECT count(*) FROM usage_records_other").await?;
    ensure!(other == 0, "{other} records are in no month");
    let months = hand.number("SELECT count(*) FROM pg_inherits WHERE inhparent = 'usage_records'::regclass").await?;
    ensure!(months == 5, "{months} partitions instead of four months and the others");
    hand.close().await?;
    ensure_audit_passes(&gateway.instance).await?;
    gateway.server.stop().await
}
