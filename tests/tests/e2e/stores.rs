//! Stores that fail: always a 503, never a lie about the caller, and nothing half-done.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Call, Reply, Report, SecondHand};

use crate::costs::rows;
use crate::promote::{file_id, sparse, used_bytes};
use crate::world::{World, body};

/// The calls that write, each with its name.
async fn writes(world: &World) -> Result<Vec<(&'static str, Call)>> {
    let file = world.instance.put("sess_a", "a", b"x").await?;
    let guardrail = world.instance.guardrail(&[]).await?;
    let assign = Call::post(format!("/api/v1/guardrails/{guardrail}/assignments/keys"))
        .key(&world.management.secret)
        .json(json!({"key_hashes": [world.inference.hash]}).to_string());
    Ok(vec![
        ("decisions", tollgate_tests::decisions(&world.inference.secret, body("sandbox/decider"))),
        ("promote", tollgate_tests::promotion(&world.inference.secret, "sess_a", &file)),
        ("assign", assign),
    ])
}

pub fn unavailable(reply: &Reply) -> Result<()> {
    reply.error(503, "Service temporarily unavailable")?;
    ensure!(reply.header("retry-after").parse::<u64>().is_ok(), "no Retry-After");
    Ok(())
}

/// Rows of usage and blobs of documents: what must not be left behind by a failure.
async fn traces(world: &World) -> Result<(usize, usize)> {
    let listed = world.instance.json(&["usage", "list", "--limit", "1000"]).await?;
    Ok((rows(&listed)?.len(), world.instance.document_blobs()?.len()))
}

#[tokio::test]
async fn a_database_that_another_process_holds_locked() -> Result<()> {
    let world = World::start("[storage]\nbusy_timeout_ms = 300\n").await?;
    let calls = writes(&world).await?;
    let count = Call::get("/api/v1/models/count").key(&world.inference.secret);
    world.server.send(&count).await?.ok()?;
    let hand = SecondHand::open(&world.instance.database()).await?;
    hand.execute("BEGIN EXCLUSIVE").await?;
    let mut report = Report::default();
    for (name, call) in &calls {
        let since = Instant::now();
        let reply = world.server.send(call).await?;
        // The charge of a decision waits in the journal.
        report.case(name, if *name == "decisions" { reply.ok().map(drop) } else { unavailable(&reply) });
        ensure!(since.elapsed() < Duration::from_secs(10), "{name} waited for {:?}", since.elapsed());
    }
    report.case("count", world.server.send(&count).await?.ok());
    hand.execute("ROLLBACK").await?;
    hand.close().await?;
    // What a provider answered is charged when that can be written, and of the others nothing is left behind.
    let since = Instant::now();
    while traces(&world).await? != (1, 0) {
        ensure!(since.elapsed() < Duration::from_secs(20), "{:?} were left behind", traces(&world).await?);
        sleep(Duration::from_millis(50)).await;
    }
    for (name, call) in &calls {
        report.case(&format!("{name}, afterwards"), world.server.send(call).await?.ok());
    }
    ensure!(traces(&world).await? == (2, 1), "the calls afterwards count once");
    world.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn a_database_that_is_locked_for_a_moment_is_waited_for() -> Result<()> {
    let world = World::start("").await?;
    let calls = writes(&world).await?;
    let hand = SecondHand::open(&world.instance.database()).await?;
    for (name, call) in &calls {
        hand.execute("BEGIN IMMEDIATE").await?;
        let (reply, released) = tokio::join!(world.server.send(call), async {
            sleep(Duration::from_millis(400)).await;
            hand.execute("COMMIT").await
        });
        released?;
        reply?.ok().with_context(|| (*name).to_owned())?;
    }
    hand.close().await
}

#[tokio::test]
async fn a_database_that_cannot_be_written() -> Result<()> {
    let world = World::start("").await?;
    let calls = writes(&world).await?;
    let World { mut instance, server, inference, management } = world;
    server.stop().await?;
    let url = format!("sqlite://{}", instance.database().display());
    instance.set_env("TOLLGATE__STORAGE__URL", format!("{url}?mode=ro"));
    let world = World { server: instance.serve().await?, instance, inference, management };
    let mut report = Report::default();
    for (name, call) in &calls {
        report.case(name, unavailable(&world.server.send(call).await?));
    }
    let count = Call::get("/api/v1/models/count").key(&world.inference.secret);
    report.case("count", world.server.send(&count).await?.ok());
    let model = Call::get("/api/v1/model/sandbox/decider").key(&world.management.secret);
    report.case("model", world.server.send(&model).await?.ok());
    report.case("an unknown key", {
        let stranger = Call::get("/api/v1/models/count").key(&format!("sk-tg-v1-{}", "0".repeat(64)));
        world.server.send(&stranger).await?.envelope(401)
    });
    report.case("a command", world.instance.refused(&["key", "create", "--name", "x"]).await);
    ensure!(traces(&world).await? == (0, 0), "something was left behind");
    let World { mut instance, server, inference, management } = world;
    server.stop().await?;
    instance.set_env("TOLLGATE__STORAGE__URL", url);
    let world = World { server: instance.serve().await?, instance, inference, management };
    for (name, call) in &calls {
        report.case(&format!("{name}, afterwards"), world.server.send(call).await?.ok());
    }
    report.finish()
}

#[tokio::test]
async fn a_database_that_is_full() -> Result<()> {
    let World { instance, server, inference, management } = World::start("").await?;
    server.stop().await?;
    let hand = SecondHand::open(&instance.database()).await?;
    let pages = hand.number("PRAGMA page_count").await?;
    hand.close().await?;
    instance.configure(&format!("[storage]\nmax_page_count = {}\n", pages + 8))?;
    let world = World { server: instance.serve().await?, instance, inference, management };
    decide_often(&world).await?;
    let recorded = traces(&world).await?.0;
    ensure!(recorded < DECISIONS, "{recorded} records fit into a full database");
    // What only reads goes on.
    world.server.send(&Call::get("/api/v1/models/count").key(&world.inference.secret)).await?.ok()?;

    let World { instance, server, inference, management } = world;
    // A stop would wait for room for what could not be charged.
    server.kill().await?;
    instance.configure("")?;
    let world = World { server: instance.serve().await?, instance, inference, management };
    world.decide(body("sandbox/decider")).await?;
    ensure!(traces(&world).await?.0 == DECISIONS + 1);
    world.server.ensure_healthy().await
}

/// More decisions than a database without room can record.
const DECISIONS: usize = 400;

/// Every decision is answered: its charge waits in the journal.
async fn decide_often(world: &World) -> Result<()> {
    let padding = format!(r#""trace":{{"padding":"{}"}}"#, "x".repeat(2_000));
    for _ in 0..DECISIONS {
        world.server.decide(&world.inference.secret, crate::world::body_with(&padding)).await?.ok()?;
    }
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
async fn a_database_file_that_the_process_may_not_let_grow() -> Result<()> {
    let World { instance, server, inference, management } = World::start("").await?;
    server.stop().await?;
    // The unit is 512 or 1,024 bytes, depending on the shell; the log of writes is a file of its own.
    let world = World { server: instance.serve_under("ulimit -f 400").await?, instance, inference, management };
    decide_often(&world).await?;
    let World { instance, server, inference, management } = world;
    drop(server);
    let world = World { server: instance.serve().await?, instance, inference, management };
    ensure!(traces(&world).await?.0 == DECISIONS, "answers and records differ");
    world.decide(body("sandbox/decider")).await?;
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_is_too_large_for_the_process() -> Result<()> {
    let toml = "[limits]\nworkspace_quota_bytes = 80000000\n";
    let World { instance, server, inference, management } = World::start(toml).await?;
    server.stop().await?;
    let world = World { server: instance.serve_under("ulimit -f 20000").await?, instance, inference, management };
    // More than the limit in either unit, less than the quota.
    sparse(&world, "sess_a", "large", 60_000_000).await?;
    for _ in 0..2 {
        unavailable(&world.server.promote(&world.inference.secret, "sess_a", &file_id("large")).await?)?;
    }
    let left: Vec<_> = tollgate_tests::files_below(&world.instance.blobs())?
        .into_iter()
        .filter(|file| !file.starts_with(world.instance.blobs().join("containers")))
        .filter(|file| file.metadata().is_ok_and(|metadata| metadata.len() > 0))
        .collect();
    ensure!(left.is_empty(), "{left:?} were left behind");
    ensure!(used_bytes(&world).await? == 0, "quota was not given back");
    let small = world.instance.put("sess_a", "small", b"x").await?;
    world.server.promote(&world.inference.secret, "sess_a", &small).await?.ok()?;
    world.server.ensure_healthy().await
}
