//! Presets with stages: their answers, records and evidence, their money, and crashes between their stages.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use serde_json::{Value, json};
use tokio::time::sleep;
use tollgate_tests::{Behaviour, Call, Instance, SecondHand, Upstream, decisions};

use crate::crashes::{call_until_failure, count, ensure_recorded_once};
use crate::gateway::{TestGateway, providers_toml};
use crate::limits::{COST_PICO, counted, ensure_audit_passes, send_until_rejected, spent};

const REQUEST: &str = r#"{"model":"@preset/triage","questions":{},"state":"It smokes. I want my money back."}"#;
/// The first stage is sure of one of the two questions.
const FIRST: &str = r#"{"model":"judge-1.0","answers":{"refund":{"type":"noul","noul":0.6},"angry":{"type":"noul","noul":0.95}},
    "usage":{"input_tokens":100}}"#;
const SECOND: &str =
    r#"{"model":"judge-1.0","answers":{"refund":{"type":"noul","noul":0.97}},"usage":{"input_tokens":100}}"#;

/// Starts providers of two stages, each of which answers after a latency, and an installation of them.
async fn instance(latency: Duration, more: &str) -> Result<(Instance, Upstream, Upstream)> {
    let first = Upstream::start(Behaviour::Late(latency, FIRST.to_owned())).await?;
    let second = Upstream::start(Behaviour::Late(latency, SECOND.to_owned())).await?;
    let large = "[[endpoints]]\nmodel = \"acme/large\"\nprovider = \"beta\"\nupstream_model = \"judge-2\"\n\
                 independent_questions = true\n\
                 input_usd_per_million_tokens = \"0.042\"\noutput_usd_per_million_tokens = \"0\"\n";
    let toml = format!("{more}{}{large}", providers_toml(&first.base_url(), &second.base_url(), 3_000));
    let mut instance = Instance::new(&toml)?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    Ok((instance, first, second))
}

async fn create_preset(instance: &Instance, otherwise: &str) -> Result<Value> {
    let question = |text: &str| json!({"type": "noul", "instructions": text});
    let config = json!({
        "stages": [
            {"model": "acme/alone", "accept": {"*": 0.9, "refund": {"yes": 0.8, "no": 0.7}}},
            {"model": "acme/large", "accept": {"*": 0.9}},
        ],
        "otherwise": otherwise,
        "questions": {"refund": question("Does the writer want a refund?"), "angry": question("Is the writer angry?")},
    });
    std::fs::write(instance.path().join("triage.json"), config.to_string())?;
    instance.json(&["preset", "create", "triage", "--from", "triage.json"]).await
}

async fn read(gateway: &TestGateway, path: &str) -> Result<Value> {
    gateway.server.send(&Call::get(format!("/api/v1{path}")).key(&gateway.inference.secret)).await?.ok()
}

#[tokio::test]
async fn open_question_goes_to_the_next_stage_and_everything_tells_of_it() -> Result<()> {
    let (instance, first, second) = instance(Duration::ZERO, "").await?;
    let gateway = TestGateway::of(instance).await?;
    let made = create_preset(&gateway.instance, "abstain").await?;
    let config = &made["designated_version"]["config"];
    ensure!(config["otherwise"] == "abstain" && config["stages"][1]["model"] == "acme/large", "{made}");
    ensure!(config["models"].is_null(), "{made}");
    let reply = gateway.server.send(&decisions(&gateway.inference.secret, REQUEST)).await?;
    let answer = reply.ok()?;
    let outcomes = json!({
        "refund": {"outcome": "accepted", "stage": 2, "model": "acme/large", "threshold": 0.9},
        "angry": {"outcome": "accepted", "stage": 1, "model": "acme/alone", "threshold": 0.9},
    });
    ensure!(answer["outcomes"] == outcomes && reply.header("x-tollgate-abstained").is_empty(), "{answer}");
    ensure!(answer["answers"]["refund"]["noul"] == 0.97 && answer["answers"]["angry"]["noul"] == 0.95, "{answer}");
    ensure!(answer["model"] == "acme/large", "the last stage whose answer is returned: {answer}");
    ensure!(first.take_request()?.text().contains("angry"), "the first stage is asked all");
    let asked = second.take_request()?.text();
    ensure!(asked.contains("refund") && !asked.contains("angry") && asked.contains("It smokes"), "{asked}");
    let record = read(&gateway, &format!("/generation?id={}", answer["id"].as_str().unwrap_or_default())).await?;
    ensure!(record["data"]["outcomes"] == outcomes && record["data"]["model"] == "acme/large", "{record}");
    ensure!(record["data"]["total_cost"] == json!(0.000_008_4), "both calls: {record}");
    let rows = read(&gateway, "/evidence?preset=triage").await?;
    let models: BTreeSet<(&str, &str)> =
        rows["data"].as_array().into_iter().flatten().fold(BTreeSet::new(), |mut all, row| {
            all.insert((row["question"].as_str().unwrap_or_default(), row["model"].as_str().unwrap_or_default()));
            all
        });
    ensure!(models == BTreeSet::from([("angry", "acme/alone"), ("refund", "acme/large")]), "{rows}");

    // A stage that fails: the earlier answer stands, and is no decision.
    second.behave(Behaviour::status(500));
    for path in ["/api/v1/api/alpha/decisions", "/api/v1/systemone"] {
        let call = Call::post(path).json(REQUEST).key(&gateway.inference.secret);
        let reply = gateway.server.send(&call).await?;
        let answer = reply.ok()?;
        ensure!(reply.header("x-tollgate-abstained") == "refund", "{answer}");
        let refund = json!({"outcome": "abstained", "stage": 1, "model": "acme/alone", "threshold": 0.8});
        ensure!(answer["outcomes"]["refund"] == refund, "{answer}");
        ensure!(answer["answers"]["refund"]["noul"] == 0.6, "{answer}");
    }
    // An answer that no stage accepts is no error, and is not asked again.
    second.behave(Behaviour::json(SECOND.replace("0.97", "0.8")));
    let _ = (first.take_requests(), second.take_requests());
    let reply = gateway.server.send(&decisions(&gateway.inference.secret, REQUEST)).await?;
    let refund = reply.ok()?["outcomes"]["refund"].clone();
    ensure!((&refund["outcome"], &refund["stage"]) == (&json!("abstained"), &json!(2)), "{refund}");
    ensure!(reply.header("retry-after").is_empty() && reply.header("x-tollgate-abstained") == "refund");
    ensure!((first.take_requests().len(), second.take_requests().len()) == (1, 1), "it was asked again");
    create_preset(&gateway.instance, "answer").await?;
    let call = decisions(&gateway.inference.secret, REQUEST);
    let escalated =
        async || anyhow::Ok(gateway.server.send(&call).await?.ok()?["outcomes"]["refund"]["outcome"].clone());
    for _ in 0..200 {
        if escalated().await? == "escalated" {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    ensure!(escalated().await? == "escalated", "the new version is not in force");
    ensure_audit_passes(&gateway.instance).await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn stages_never_exceed_a_limit_and_use_it_up() -> Result<()> {
    let (instance, _first, _second) = instance(Duration::from_millis(10), "").await?;
    let gateway = TestGateway::of(instance).await?;
    create_preset(&gateway.instance, "answer").await?;
    let (second, third) = (gateway.instance.serve_beside().await?, gateway.instance.serve_beside().await?);
    let key = gateway.instance.key(&["--name", "limited", "--limit-usd", "0.0006"]).await?;
    let limit: i64 = 600_000_000;
    let hand = SecondHand::of(&gateway.instance).await?;
    let servers = [&gateway.server, &second, &third];
    let sending = send_until_rejected(&servers, (&key, REQUEST.to_owned()), 64, 3);
    tokio::pin!(sending);
    let mut highest = 0;
    let answered = loop {
        tokio::select! {
            answered = &mut sending => break answered?,
            () = sleep(Duration::from_millis(3)) => highest = highest.max(counted(&hand, "key", &key.id).await?),
        }
    };
    ensure!(highest <= limit && highest > limit / 2, "{highest} picodollars were spent and reserved of {limit}");
    let spent = spent(&hand, "key", &key.id).await?;
    ensure!(answered > 0 && spent == 2 * answered * COST_PICO, "{answered} answers of two stages cost {spent}");
    ensure!(counted(&hand, "key", &key.id).await? == spent, "something is still reserved");
    ensure_audit_passes(&gateway.instance).await?;
    hand.close().await
}

#[tokio::test]
async fn crashes_between_stages_charge_each_call_once_and_keep_the_evidence() -> Result<()> {
    let (instance, _first, _second) =
        instance(Duration::from_millis(4), "[limits]\nrequest_timeout_ms = 4000\n").await?;
    let mut server = instance.serve().await?;
    create_preset(&instance, "answer").await?;
    let key = instance.key(&["--name", "limited", "--limit-usd", "1000"]).await?;
    let answered = Arc::new(Mutex::new(BTreeSet::new()));
    for trial in 0..20 {
        let before = count(&answered)?;
        let mut callers = call_until_failure(&server, (&key, REQUEST.to_owned()), &answered);
        for _ in 0..1_000 {
            if count(&answered)? > before {
                break;
            }
            sleep(Duration::from_millis(5)).await;
        }
        sleep(Duration::from_millis(trial * 3 % 20)).await;
        server.kill().await?;
        while callers.join_next().await.is_some() {}
        ensure!(count(&answered)? > before, "no response before crash {trial}");
        server = instance.serve().await?;
    }
    let answered = answered.lock().map_err(|_| anyhow!("a caller panicked"))?.clone();
    ensure_recorded_once(&instance, &answered).await?;
    ensure_audit_passes(&instance).await?;
    let hand = SecondHand::of(&instance).await?;
    ensure!(hand.number("SELECT COUNT(*) FROM allowances").await? == 0, "dead processes still hold money");
    let completed = "SELECT COUNT(*) FROM usage_records WHERE outcome = 'completed'";
    let (records, rows) = (hand.number(completed).await?, hand.number("SELECT COUNT(*) FROM evidence").await?);
    ensure!(rows == 2 * records, "{records} answers have {rows} rows of evidence");
    let unlike = format!("{completed} AND cost_pico <> {}", 2 * COST_PICO);
    ensure!(hand.number(&unlike).await? == 0, "an answer is charged other than both calls");
    hand.close().await?;
    server.stop().await
}

#[tokio::test]
async fn crash_charges_the_stages_that_had_begun() -> Result<()> {
    let (instance, first, second) = instance(Duration::ZERO, "").await?;
    let mut server = instance.serve().await?;
    create_preset(&instance, "answer").await?;
    let key = instance.key(&["--name", "limited", "--limit-usd", "1000"]).await?;
    let hangs = || Behaviour::HangBeforeHeaders;
    for (upstream, begun) in [(&second, 2), (&first, 1)] {
        upstream.behave(hangs());
        let call = decisions(&key.secret, REQUEST);
        let sending = server.send(&call);
        tokio::select! {
            reply = sending => anyhow::bail!("answered with {} while a stage hangs", reply?.text()),
            sent = upstream.wait_for_request() => sent?,
        }
        server.kill().await?;
        server = instance.serve().await?;
        let read = Call::get("/api/v1/generations?limit=1").key(&key.secret);
        let newest = server.send(&read).await?.ok()?["data"][0].clone();
        let calls = newest["provider_responses"].as_array().map(Vec::len);
        ensure!(calls == Some(begun), "{begun} stages had begun: {newest}");
        first.take_requests();
    }
    ensure_audit_passes(&instance).await?;
    let hand = SecondHand::of(&instance).await?;
    let cost = async |calls: &str| {
        let sql = "SELECT cost_pico FROM usage_records WHERE outcome = 'abandoned' ORDER BY cost_pico";
        hand.number(&format!("{sql} {calls} LIMIT 1")).await
    };
    let (one, both) = (cost("").await?, cost("DESC").await?);
    ensure!(0 < one && one < both, "one stage costs {one}, both {both}");
    hand.close().await?;
    server.stop().await
}
