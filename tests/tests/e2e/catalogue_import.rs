//! Importing rows while the gateway runs.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Reply, Report, Upstream};

use crate::catalogue::{alias, count, get, row, with_rows};
use crate::world::{ANSWER, World, body};

/// How long an import may take to be seen.
const SEEN: Duration = Duration::from_secs(1);

/// Asks until a model's Decisions have this status.
pub async fn until_decided(world: &World, model: &str, status: u16) -> Result<Reply> {
    let since = Instant::now();
    loop {
        let reply = world.server.decide(&world.inference.secret, body(model)).await?;
        if reply.status == status {
            return Ok(reply);
        }
        ensure!(since.elapsed() < Duration::from_secs(5), "still {}: {}", reply.status, reply.text());
        sleep(Duration::from_millis(10)).await;
    }
}

/// Asks until a model is there or gone, and tells how long that took.
async fn until(world: &World, name: &str, status: u16) -> Result<Duration> {
    let since = Instant::now();
    while get(world, &format!("/model/{name}")).await?.status != status {
        ensure!(since.elapsed() < Duration::from_secs(5), "{name} is still not {status}");
        sleep(Duration::from_millis(10)).await;
    }
    Ok(since.elapsed())
}

fn write(world: &World, rows: &Value) -> Result<()> {
    Ok(std::fs::write(world.instance.path().join("rows.json"), rows.to_string())?)
}

#[tokio::test]
async fn an_import_takes_effect_within_a_second_and_merges_by_id() -> Result<()> {
    let world = World::start("").await?;
    let before = count(&world, "?output_modalities=all").await?;
    let first = get(&world, "/models/count?output_modalities=all").await?;
    write(&world, &json!([row("acme/one", "acme/one-20260901", "text"), row("acme/two", "acme/two", "text")]))?;
    let done = world.instance.json(&["catalogue", "import", "rows.json"]).await?;
    ensure!(done["imported"] == 2 && done["updated"] == 0 && done["removed"] == 0, "{done}");
    let took = until(&world, "acme/one", 200).await?;
    ensure!(took <= SEEN, "an import took {took:?} to be seen");
    ensure!(count(&world, "?output_modalities=all").await? == before + 2);
    let second = get(&world, "/models/count?output_modalities=all").await?;
    ensure!(first.header("etag") != second.header("etag"), "another answer has the same tag");

    let mut changed = row("acme/one", "acme/one-20260901", "text");
    changed["description"] = json!("Changed.");
    write(&world, &json!({ "data": [changed] }))?;
    let done = world.instance.json(&["catalogue", "import", "rows.json"]).await?;
    ensure!(done["imported"] == 0 && done["updated"] == 1 && done["removed"] == 0, "{done}");
    let since = Instant::now();
    while get(&world, "/model/acme/one").await?.ok()?["data"]["description"] != "Changed." {
        ensure!(since.elapsed() < Duration::from_secs(5), "the row does not change");
        sleep(Duration::from_millis(10)).await;
    }
    ensure!(get(&world, "/model/acme/two").await?.status == 200);
    Ok(())
}

#[tokio::test]
async fn replacing_leaves_the_files_rows_and_those_of_endpoints_and_the_sandbox_callable() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let world = World::with_providers(&alpha, &beta, 5_000).await?;
    write(&world, &json!([row("acme/old", "acme/kept-20260901", "text")]))?;
    world.instance.json(&["catalogue", "import", "rows.json", "--replace"]).await?;
    until(&world, "acme/old", 200).await?;
    // acme/alone and acme/pair are rows of endpoints.
    ensure!(count(&world, "?output_modalities=all").await? == 3, "more than the file's rows and the endpoints'");
    ensure!(count(&world, "?output_modalities=decisions").await? == 2);
    get(&world, "/model/sandbox/decider").await?.envelope(404)?;
    world.decide(body("sandbox/decider")).await?;
    world.decide(body("acme/alone")).await?;

    // A row that comes under another id with the same canonical slug goes on answering to the old one.
    write(&world, &json!([row("acme/new", "acme/kept-20260901", "text")]))?;
    let done = world.instance.json(&["catalogue", "import", "rows.json", "--replace"]).await?;
    ensure!(done["imported"] == 1 && done["removed"] == 1, "{done}");
    until(&world, "acme/new", 200).await?;
    let renamed = get(&world, "/model/acme/old").await?.ok()?;
    ensure!(renamed["data"]["id"] == "acme/new", "{renamed}");
    ensure!(count(&world, "?output_modalities=all").await? == 3);

    // The rows that ship with the binary do not come back with the next start.
    let World { instance, server, inference, management } = world;
    server.stop().await?;
    let world = World { server: instance.serve().await?, instance, inference, management };
    ensure!(count(&world, "?output_modalities=all").await? == 3);
    ensure!(get(&world, "/model/acme/old").await?.ok()?["data"]["id"] == "acme/new");
    Ok(())
}

#[tokio::test]
async fn a_faulty_file_changes_nothing() -> Result<()> {
    let world = with_rows(json!([row("acme/one", "acme/one", "text")])).await?;
    let tag = get(&world, "/models/count?output_modalities=all").await?.header("etag").to_owned();
    let good = row("acme/good", "acme/good", "text");
    let without = |member: &str| {
        let mut row = row("acme/bad", "acme/bad", "text");
        row.as_object_mut().map(|members| members.remove(member));
        json!([good, row])
    };
    let with = |member: &str, value: Value| {
        let mut row = row("acme/bad", "acme/bad", "text");
        row[member] = value;
        json!([good, row])
    };
    let price = |text: &str| with("pricing", json!({"prompt": text, "completion": "0"}));
    let mut report = Report::default();
    for (name, text) in [
        ("not JSON", "{".to_owned()),
        ("empty", String::new()),
        ("no rows", "[]".to_owned()),
        ("no rows in data", r#"{"data":[]}"#.to_owned()),
        ("another shape", r#"{"models":[]}"#.to_owned()),
        ("a string", "\"x\"".to_owned()),
        ("no id", without("id").to_string()),
        ("an id without an author", with("id", json!("bad")).to_string()),
        ("an id of another kind", with("id", json!(7)).to_string()),
        ("an id with a space", with("id", json!("acme/b d")).to_string()),
        ("a price that is none", price("cheap").to_string()),
        ("a price of NaN", price("NaN").to_string()),
        ("twice", json!([good, good]).to_string()),
        ("an alias to nowhere", json!([good, alias("~acme/a", "acme/missing")]).to_string()),
        ("a circle", json!([alias("~acme/a", "~acme/b"), alias("~acme/b", "~acme/a")]).to_string()),
        ("the sandbox in disguise", json!([good, alias("~acme/a", "sandbox/decider")]).to_string()),
        ("cut short", json!([good]).to_string().trim_end_matches(']').to_owned()),
    ] {
        std::fs::write(world.instance.path().join("bad.json"), text)?;
        for options in [&[][..], &["--replace"]] {
            let arguments = [&["catalogue", "import", "bad.json"], options].concat();
            report.case(name, world.instance.refused(&arguments).await);
        }
    }
    world.instance.refused(&["catalogue", "import", "missing.json"]).await?;
    sleep(SEEN).await;
    get(&world, "/model/acme/good").await?.envelope(404)?;
    get(&world, "/model/acme/one").await?.ok()?;
    let after = get(&world, "/models/count?output_modalities=all").await?;
    ensure!(after.header("etag") == tag, "the catalogue changed");
    report.finish()
}

#[tokio::test]
async fn a_model_that_only_an_endpoint_names_is_called_read_and_counted_at_once() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let plain = World::start("").await?;
    let world = World::with_providers(&alpha, &beta, 5_000).await?;
    let (without, with) =
        (count(&plain, "?output_modalities=decisions").await?, count(&world, "?output_modalities=decisions").await?);
    ensure!(with == without + 2, "{with} and {without}");
    let model = get(&world, "/model/acme/alone").await?.ok()?["data"].clone();
    ensure!(model["architecture"]["modality"] == "text->decisions", "{model}");
    ensure!(model["pricing"]["prompt"] == "0.000000042" && model["pricing"]["completion"] == "0", "{model}");
    world.decide(body("Acme/Alone")).await?;

    // A row that comes later takes the place of the minimal one, and its endpoints stay.
    write(&world, &json!([row("acme/alone", "acme/alone-20260901", "decisions")]))?;
    world.instance.json(&["catalogue", "import", "rows.json"]).await?;
    until(&world, "acme/alone-20260901", 200).await?;
    ensure!(count(&world, "?output_modalities=decisions").await? == with);
    let answer = world.decide(body("acme/alone-20260901")).await?;
    ensure!(answer["model"] == "acme/alone", "{answer}");
    ensure!(answer["usage"]["cost"] == 0.000_018_018, "the endpoint's price counts: {answer}");
    Ok(())
}

#[tokio::test]
async fn a_price_that_varies_is_shown_and_not_charged() -> Result<()> {
    let mut router = row("acme/router", "acme/router", "decisions");
    router["pricing"] = json!({"prompt": "-1", "completion": "-1"});
    let world = with_rows(json!([router])).await?;
    let model = get(&world, "/model/acme/router").await?.ok()?;
    ensure!(model["data"]["pricing"]["prompt"] == "-1", "{model}");
    world.server.decide(&world.inference.secret, body("acme/router")).await?.error(400, "variable")?;
    Ok(())
}

#[tokio::test]
async fn a_decision_model_that_nobody_serves_is_a_404_with_the_funnel() -> Result<()> {
    let world = with_rows(json!([row("acme/judge", "acme/judge", "decisions")])).await?;
    let reply = world.server.decide(&world.inference.secret, body("acme/judge")).await?;
    let envelope = reply.envelope(404)?;
    let metadata = envelope["error"]["metadata"].as_object().context("no metadata")?;
    ensure!(metadata.keys().any(|name| name.contains("funnel")), "{envelope}");
    Ok(())
}
