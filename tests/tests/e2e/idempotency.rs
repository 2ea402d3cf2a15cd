//! The same promotion asked for twice.

use anyhow::{Result, ensure};
use tollgate_tests::{Call, Report, promotion};

use crate::promote::{file_id, sparse};
use crate::world::World;

fn keyed(world: &World, file: &str, key: &str) -> Call {
    promotion(&world.inference.secret, "sess_a", file).header("idempotency-key", key)
}

#[tokio::test]
async fn a_retry_returns_the_first_document_in_the_shape_that_it_asks_for() -> Result<()> {
    let world = World::start("").await?;
    let one = world.instance.put("sess_a", "one", b"1").await?;
    let two = world.instance.put("sess_a", "two", b"2").await?;
    let first = world.server.send(&keyed(&world, &one, "key-1")).await?.ok()?;
    let again = world.server.send(&keyed(&world, &one, "key-1")).await?.ok()?;
    ensure!(first == again, "{first} and {again}");
    let shaped =
        world.server.send(&keyed(&world, &one, "key-1").header("user-agent", "OpenAI/Python 3")).await?.ok()?;
    ensure!(shaped["id"] == first["id"] && shaped["_shape"] == "vendor_b", "{shaped}");
    ensure!(world.server.send(&keyed(&world, &one, "key-2")).await?.ok()?["id"] != first["id"]);

    world.server.send(&keyed(&world, &two, "key-1")).await?.envelope(400)?;
    let elsewhere = promotion(&world.inference.secret, "sess_b", &one).header("idempotency-key", "key-1");
    world.server.send(&elsewhere).await?.envelope(400)?;
    // A key of the same workspace has keys of its own.
    let other = world.instance.inference_key().await?;
    let theirs = promotion(&other.secret, "sess_a", &two).header("idempotency-key", "key-1");
    ensure!(world.server.send(&theirs).await?.ok()?["id"] != first["id"]);

    // The document stays although the container's file is gone, also over a restart.
    let World { instance, server, inference, management } = world;
    std::fs::remove_dir_all(instance.blobs().join("containers"))?;
    server.stop().await?;
    let world = World { server: instance.serve().await?, instance, inference, management };
    ensure!(world.server.send(&keyed(&world, &one, "key-1")).await?.ok()?["id"] == first["id"]);
    Ok(())
}

#[tokio::test]
async fn concurrent_retries_make_one_document() -> Result<()> {
    let world = World::start("").await?;
    sparse(&world, "sess_a", "large", 20 << 20).await?;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let (call, address) = (keyed(&world, &file_id("large"), "together"), world.server.address());
        calls.spawn(async move { call.send(address).await?.ok() });
    }
    let mut ids = std::collections::BTreeSet::new();
    while let Some(file) = calls.join_next().await {
        ids.insert(file??["id"].to_string());
    }
    ensure!(ids.len() == 1, "{ids:?}");
    ensure!(world.instance.document_blobs()?.len() == 1);
    Ok(())
}

#[tokio::test]
async fn failures_are_not_remembered() -> Result<()> {
    let world = World::start("").await?;
    let id = file_id("later");
    world.server.send(&keyed(&world, &id, "key")).await?.envelope(404)?;
    world.instance.put("sess_a", "later", b"now").await?;
    world.server.send(&keyed(&world, &id, "key")).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn a_key_that_is_none_is_a_400() -> Result<()> {
    let world = World::start("").await?;
    let id = world.instance.put("sess_a", "a", b"x").await?;
    let long = "k".repeat(256);
    let mut report = Report::default();
    for key in ["", "a b", "é", "a\tb", &long] {
        report.case(&format!("{key:.20}"), world.server.send(&keyed(&world, &id, key)).await?.envelope(400));
    }
    let odd = promotion(&world.inference.secret, "sess_a", &id).header("idempotency-key", b"\xff\xfe");
    report.case("not UTF-8", world.server.send(&odd).await?.envelope(400));
    report.case("the longest", world.server.send(&keyed(&world, &id, &long[..255])).await?.ok());
    ensure!(world.instance.document_blobs()?.len() == 1);
    report.finish()
}
