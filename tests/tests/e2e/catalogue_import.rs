//! Imports of rows into a running gateway.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Reply, Report, Upstream};

use crate::catalogue::{alias, count, get, row, with_rows};
use crate::gateway::{ANSWER, TestGateway, body, providers_toml};

/// The time within which an import must take effect.
const SEEN: Duration = Duration::from_secs(1);

/// Repeats a Decisions request until it has this status.
pub async fn until_decided(gateway: &TestGateway, model: &str, status: u16) -> Result<Reply> {
    let since = Instant::now();
    loop {
        let reply = gateway.server.decide(&gateway.inference.secret, body(model)).await?;
        if reply.status == status {
            return Ok(reply);
        }
        ensure!(since.elapsed() < Duration::from_secs(5), "still {}: {}", reply.status, reply.text());
        sleep(Duration::from_millis(10)).await;
    }
}

/// Repeats a read until the model has this status; returns the time until then.
async fn until(gateway: &TestGateway, name: &str, status: u16) -> Result<Duration> {
    let since = Instant::now();
    while get(gateway, &format!("/model/{name}")).await?.status != status {
        ensure!(since.elapsed() < Duration::from_secs(5), "{name} is still not {status}");
        sleep(Duration::from_millis(10)).await;
    }
    Ok(since.elapsed())
}

fn write(gateway: &TestGateway, rows: &Value) -> Result<()> {
    Ok(std::fs::write(gateway.instance.path().join("rows.json"), rows.to_string())?)
}

#[tokio::test]
async fn import_merges_by_id_and_takes_effect_within_a_second() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let before = count(&gateway, "?output_modalities=all").await?;
    let first = get(&gateway, "/models/count?output_modalities=all").await?;
    write(&gateway, &json!([row("acme/one", "acme/one-20260901", "text"), row("acme/two", "acme/two", "text")]))?;
    let done = gateway.instance.json(&["catalogue", "import", "rows.json"]).await?;
    ensure!(done["imported"] == 2 && done["updated"] == 0 && done["removed"] == 0, "{done}");
    let took = until(&gateway, "acme/one", 200).await?;
    ensure!(took <= SEEN, "an import took {took:?} to be seen");
    ensure!(count(&gateway, "?output_modalities=all").await? == before + 2);
    let second = get(&gateway, "/models/count?output_modalities=all").await?;
    ensure!(first.header("etag") != second.header("etag"), "another answer has the same tag");

    let mut changed = row("acme/one", "acme/one-20260901", "text");
    changed["description"] = json!("Changed.");
    write(&gateway, &json!({ "data": [changed] }))?;
    let done = gateway.instance.json(&["catalogue", "import", "rows.json"]).await?;
    ensure!(done["imported"] == 0 && done["updated"] == 1 && done["removed"] == 0, "{done}");
    let since = Instant::now();
    while get(&gateway, "/model/acme/one").await?.ok()?["data"]["description"] != "Changed." {
        ensure!(since.elapsed() < Duration::from_secs(5), "the row does not change");
        sleep(Duration::from_millis(10)).await;
    }
    ensure!(get(&gateway, "/model/acme/two").await?.status == 200);
    Ok(())
}

#[tokio::test]
async fn replacing_import_keeps_rows_of_file_endpoints_and_sandbox() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = TestGateway::with_providers_and_sandbox(&alpha, &beta, 5_000).await?;
    write(&gateway, &json!([row("acme/old", "acme/kept-20260901", "text")]))?;
    gateway.instance.json(&["catalogue", "import", "rows.json", "--replace", "--yes"]).await?;
    until(&gateway, "acme/old", 200).await?;
    // acme/alone and acme/pair are rows of endpoints.
    ensure!(count(&gateway, "?output_modalities=all").await? == 3, "more than the file's rows and the endpoints'");
    ensure!(count(&gateway, "?output_modalities=decisions").await? == 2);
    get(&gateway, "/model/sandbox/decider").await?.envelope(404)?;
    gateway.decide(body("sandbox/decider")).await?;
    gateway.decide(body("acme/alone")).await?;

    // A row under a new id with the same canonical slug still resolves by the old id.
    write(&gateway, &json!([row("acme/new", "acme/kept-20260901", "text")]))?;
    let done = gateway.instance.json(&["catalogue", "import", "rows.json", "--replace", "--yes"]).await?;
    ensure!(done["imported"] == 1 && done["removed"] == 1, "{done}");
    until(&gateway, "acme/new", 200).await?;
    let renamed = get(&gateway, "/model/acme/old").await?.ok()?;
    ensure!(renamed["data"]["id"] == "acme/new", "{renamed}");
    ensure!(count(&gateway, "?output_modalities=all").await? == 3);

    // A restart does not restore the starter rows.
    let TestGateway { instance, server, inference, management } = gateway;
    server.stop().await?;
    let gateway = TestGateway { server: instance.serve().await?, instance, inference, management };
    ensure!(count(&gateway, "?output_modalities=all").await? == 3);
    ensure!(get(&gateway, "/model/acme/old").await?.ok()?["data"]["id"] == "acme/new");
    Ok(())
}

#[tokio::test]
async fn replacing_import_requires_confirmation_and_dry_run_changes_nothing() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let providers = providers_toml(&alpha.base_url(), &beta.base_url(), 5_000);
    // With all sandbox models every stored row is listed.
    let gateway = TestGateway::start(&format!("[sandbox]\nenabled = true\nerrors = true\n{providers}")).await?;
    let instance = &gateway.instance;
    let before = instance.json(&["catalogue", "list"]).await?;
    let stored = before["data"].as_array().context("no list")?.len() - 2;
    write(&gateway, &json!([row("acme/alone", "acme/alone", "decisions"), row("acme/idle", "acme/idle", "text")]))?;
    let import = ["catalogue", "import", "rows.json"];
    for options in [&["--replace"][..], &["--replace", "--json"]] {
        let refused = instance.run(&[&import[..], options].concat()).await?;
        let said = String::from_utf8(refused.stderr)?;
        ensure!(!refused.status.success() && said.contains(&format!("removes {stored} of")), "{said}");
        ensure!(said.contains("--yes") && said.contains("more"), "{said}");
    }
    // acme/alone and acme/pair have endpoints, acme/idle has none; a replacement removes the nine of the sandbox.
    for (options, removed, callable) in [(&["--dry-run"][..], 0, 11), (&["--dry-run", "--replace"], stored, 2)] {
        let preview = instance.json(&[&import[..], options].concat()).await?;
        ensure!(preview["dry_run"] == true && preview["imported"] == 2 && preview["removed"] == removed, "{preview}");
        ensure!(preview["removed_models"].as_array().map(Vec::len) == Some(removed), "{preview}");
        ensure!(preview["callable_models"] == callable, "{preview}");
    }
    ensure!(instance.json(&["catalogue", "list"]).await? == before, "a refused import and a dry run change nothing");
    let done = instance.json(&[&import[..], &["--replace", "--yes"]].concat()).await?;
    ensure!(done["dry_run"] == false && done["removed"] == stored && done["callable_models"] == 2, "{done}");
    // An import that removes no row needs no confirmation.
    let again = instance.json(&[&import[..], &["--replace"]].concat()).await?;
    ensure!(again["updated"] == 0 && again["removed"] == 0 && again["version"] != done["version"], "{again}");
    let third = instance.json(&[&import[..], &["--replace"]].concat()).await?;
    ensure!(third["version"] == again["version"], "an import of what is there moved the version: {third}");
    Ok(())
}

#[tokio::test]
async fn import_warns_about_prices_of_another_unit() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = TestGateway::with_providers_and_sandbox(&alpha, &beta, 5_000).await?;
    let mut priced = row("acme/alone", "acme/alone", "decisions");
    priced["pricing"]["prompt"] = json!("0.042");
    write(&gateway, &json!([priced]))?;
    let expected = "endpoint acme/alone at alpha: input_usd_per_million_tokens is 0.042 and the catalogue's price of \
                    acme/alone is 42000 USD per million tokens: more than 100 times apart";
    for options in [&["--dry-run"][..], &[]] {
        let import = [&["catalogue", "import", "rows.json"], options].concat();
        let done = gateway.instance.json(&import).await?;
        ensure!(done["warnings"] == json!([expected]), "{done}");
        let printed = gateway.instance.run(&import).await?;
        let said = String::from_utf8(printed.stderr)?;
        ensure!(printed.status.success() && said.contains(&format!("warning: {expected}")), "{said}");
    }
    priced["pricing"]["prompt"] = json!("0.000000042");
    write(&gateway, &json!([priced]))?;
    let done = gateway.instance.json(&["catalogue", "import", "rows.json"]).await?;
    ensure!(done["warnings"] == json!([]), "{done}");
    Ok(())
}

#[tokio::test]
async fn invalid_file_changes_nothing() -> Result<()> {
    let gateway = with_rows(json!([row("acme/one", "acme/one", "text")])).await?;
    let tag = get(&gateway, "/models/count?output_modalities=all").await?.header("etag").to_owned();
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
        ("no price", with("pricing", json!({})).to_string()),
        ("one price", with("pricing", json!({"prompt": "0"})).to_string()),
        ("a price of null", with("pricing", json!({"prompt": "0", "completion": null})).to_string()),
        ("twice", json!([good, good]).to_string()),
        ("an alias to nowhere", json!([good, alias("~acme/a", "acme/missing")]).to_string()),
        ("a circle", json!([alias("~acme/a", "~acme/b"), alias("~acme/b", "~acme/a")]).to_string()),
        ("the sandbox in disguise", json!([good, alias("~acme/a", "sandbox/decider")]).to_string()),
        ("cut short", json!([good]).to_string().trim_end_matches(']').to_owned()),
    ] {
        std::fs::write(gateway.instance.path().join("bad.json"), text)?;
        for options in [&[][..], &["--replace"]] {
            let arguments = [&["catalogue", "import", "bad.json"], options].concat();
            report.case(name, gateway.instance.refused(&arguments).await);
        }
    }
    gateway.instance.refused(&["catalogue", "import", "missing.json"]).await?;
    sleep(SEEN).await;
    get(&gateway, "/model/acme/good").await?.envelope(404)?;
    get(&gateway, "/model/acme/one").await?.ok()?;
    let after = get(&gateway, "/models/count?output_modalities=all").await?;
    ensure!(after.header("etag") == tag, "the catalogue changed");
    report.finish()
}

#[tokio::test]
async fn model_without_row_is_served_by_its_endpoint() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let plain = TestGateway::start("").await?;
    let gateway = TestGateway::with_providers_and_sandbox(&alpha, &beta, 5_000).await?;
    let (without, with) =
        (count(&plain, "?output_modalities=decisions").await?, count(&gateway, "?output_modalities=decisions").await?);
    ensure!(with == without + 2, "{with} and {without}");
    let model = get(&gateway, "/model/acme/alone").await?.ok()?["data"].clone();
    ensure!(model["architecture"]["modality"] == "text->decisions", "{model}");
    ensure!(model["pricing"]["prompt"] == "0.000000042" && model["pricing"]["completion"] == "0", "{model}");
    gateway.decide(body("Acme/Alone")).await?;

    // A later import replaces the minimal row and keeps its endpoints.
    write(&gateway, &json!([row("acme/alone", "acme/alone-20260901", "decisions")]))?;
    gateway.instance.json(&["catalogue", "import", "rows.json"]).await?;
    until(&gateway, "acme/alone-20260901", 200).await?;
    ensure!(count(&gateway, "?output_modalities=decisions").await? == with);
    let answer = gateway.decide(body("acme/alone-20260901")).await?;
    ensure!(answer["model"] == "acme/alone", "{answer}");
    ensure!(answer["usage"]["cost"] == 0.000_018_018, "the endpoint's price counts: {answer}");
    Ok(())
}

#[tokio::test]
async fn variable_price_is_shown_and_not_charged() -> Result<()> {
    let mut router = row("acme/router", "acme/router", "decisions");
    router["pricing"] = json!({"prompt": "-1", "completion": "-1"});
    let gateway = with_rows(json!([router])).await?;
    let model = get(&gateway, "/model/acme/router").await?.ok()?;
    ensure!(model["data"]["pricing"]["prompt"] == "-1", "{model}");
    gateway.server.decide(&gateway.inference.secret, body("acme/router")).await?.error(400, "variable")?;
    Ok(())
}

#[tokio::test]
async fn decision_model_without_endpoint_returns_404_with_funnel() -> Result<()> {
    let gateway = with_rows(json!([row("acme/judge", "acme/judge", "decisions")])).await?;
    let reply = gateway.server.decide(&gateway.inference.secret, body("acme/judge")).await?;
    let envelope = reply.envelope(404)?;
    let metadata = envelope["error"]["metadata"].as_object().context("no metadata")?;
    ensure!(metadata.keys().any(|name| name.contains("funnel")), "{envelope}");
    Ok(())
}
