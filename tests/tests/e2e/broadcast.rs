//! Traces reach their destinations whatever becomes of receivers and processes, and no request waits for them.

mod management;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hmac::{Hmac, KeyInit, Mac};
use http::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Call, Instance, Key, Recorded, Reply, SecondHand, Server, Upstream};

use crate::world::{World, body, body_with};

const DESTINATIONS: &str = "/api/v1/observability/destinations";
const SECRET: &str = "a secret of sufficient length";
/// Receivers are on this machine, and nobody wants to wait.
const HASTY: &str = "[egress]\nallow_private_addresses = true\n[broadcast]\ntimeout_ms = 400\nretry_initial_delay_ms = 50\n\
     retry_max_delay_ms = 200\n";

fn hasty(more: &str) -> String {
    format!("{HASTY}{more}\n")
}

fn webhook(receiver: &Upstream) -> Value {
    json!({"name": "hook", "type": "webhook", "config": {"url": format!("{}/in?token=t0ken", receiver.base_url()), "secret": SECRET}})
}

fn with(mut whole: Value, more: Value) -> Value {
    if let (Some(whole), Value::Object(more)) = (whole.as_object_mut(), more) {
        whole.extend(more);
    }
    whole
}

async fn send(server: &Server, key: &Key, method: Method, path: &str, body: &Value) -> Result<Reply> {
    server.send(&Call::new(method, path).key(&key.secret).json(body.to_string())).await
}

async fn create(world: &World, body: &Value) -> Result<String> {
    let reply = send(&world.server, &world.management, Method::POST, DESTINATIONS, body).await?;
    ensure!(reply.status == 201, "{}", reply.text());
    let made = reply.json()?;
    // A running server hears of it within a second.
    sleep(Duration::from_millis(900)).await;
    made["data"]["id"].as_str().map(str::to_owned).context("no id")
}

fn header<'r>(request: &'r Recorded, name: &str) -> Option<&'r str> {
    let mut lines = request.head.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn spans(request: &Recorded) -> Result<Vec<Value>> {
    let body: Value = serde_json::from_slice(&request.body)?;
    let all = body["resourceSpans"].as_array().context("no resourceSpans")?;
    Ok(all.iter().filter_map(|one| one["scopeSpans"][0]["spans"].as_array()).flatten().cloned().collect())
}

fn attribute<'s>(span: &'s Value, key: &str) -> Option<&'s Value> {
    span["attributes"].as_array()?.iter().find(|one| one["key"] == key).map(|one| &one["value"])
}

/// How often each request was told of.
fn told(requests: &[Recorded]) -> Result<BTreeMap<String, usize>> {
    let mut told = BTreeMap::new();
    for request in requests {
        for span in spans(request)? {
            if let Some(id) = attribute(&span, "gen_ai.response.id") {
                *told.entry(id["stringValue"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
    }
    Ok(told)
}

/// Collects what a receiver gets until every one of `ids` is among it.
async fn collect(receiver: &Upstream, ids: &[String]) -> Result<(Vec<Recorded>, BTreeMap<String, usize>)> {
    let mut all = Vec::new();
    for _ in 0..200 {
        all.extend(receiver.take_requests());
        let told = told(&all)?;
        if ids.iter().all(|id| told.contains_key(id)) {
            return Ok((all, told));
        }
        sleep(Duration::from_millis(50)).await;
    }
    let told = told(&all)?;
    anyhow::bail!("{} of {} requests were told of", ids.iter().filter(|id| told.contains_key(*id)).count(), ids.len())
}

async fn decide(server: &Server, key: &Key, count: usize) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let answer = server.decide(&key.secret, body("sandbox/decider")).await?.ok()?;
        ids.push(answer["id"].as_str().context("no id")?.to_owned());
    }
    Ok(ids)
}

async fn pending(instance: &Instance, state: &str) -> Result<i64> {
    let hand = SecondHand::open(&instance.database()).await?;
    let count = hand.number(&format!("SELECT COUNT(*) FROM outbox WHERE state = '{state}'")).await?;
    hand.close().await?;
    Ok(count)
}

async fn wait_until(instance: &Instance, state: &str, count: i64) -> Result<()> {
    let mut found = -1;
    for _ in 0..200 {
        found = pending(instance, state).await?;
        if found == count {
            return Ok(());
        }
        sleep(Duration::from_millis(50)).await;
    }
    anyhow::bail!("{found} messages are {state} in place of {count}")
}

fn signature(timestamp: &str, body: &[u8]) -> Result<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes())?;
    mac.update(format!("{timestamp}.").as_bytes());
    mac.update(body);
    let mut signature = String::from("v1=");
    for byte in mac.finalize().into_bytes() {
        write!(signature, "{byte:02x}")?;
    }
    Ok(signature)
}

#[tokio::test]
async fn a_trace_is_delivered_signed_and_a_test_call_comes_before_it() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(400)).await?;
    let world = World::start(&hasty("")).await?;
    let hook = with(
        webhook(&receiver),
        json!({"config": {
        "url": format!("{}/in?token=t0ken", receiver.base_url()), "secret": SECRET, "headers": {"X-Team": "a team"}}}),
    );
    create(&world, &hook).await?;
    let test = receiver.take_request()?;
    ensure!(test.head.starts_with("POST /v1/in?token=t0ken HTTP/1.1"), "{}", test.head);
    ensure!(header(&test, "x-test-connection") == Some("true") && test.text() == r#"{"resourceSpans":[]}"#);

    receiver.behave(Behaviour::status(204));
    let members = r#""session_id":"s-1","user":"u-1","trace":{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","generation_name":"judge","team":"blue"}"#;
    let answer = world.decide(body_with(members)).await?;
    let id = answer["id"].as_str().context("no id")?.to_owned();
    let (requests, _) = collect(&receiver, &[id]).await?;
    let request = &requests[0];
    for (name, value) in [("x-team", "a team"), ("content-type", "application/json"), ("user-agent", "tollgate/0.1.0")]
    {
        ensure!(header(request, name) == Some(value), "{name} in {}", request.head);
    }
    ensure!(header(request, "x-test-connection").is_none());
    ensure!(header(request, "x-tollgate-delivery").is_some_and(|id| id.len() == 36), "{}", request.head);
    let timestamp = header(request, "x-tollgate-timestamp").context("no timestamp")?;
    ensure!(header(request, "x-tollgate-signature") == Some(signature(timestamp, &request.body)?.as_str()));
    let span = spans(request)?.into_iter().find(|span| span["name"] == "judge").context("no such span")?;
    ensure!(span["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736");
    for (key, value) in [("session.id", "s-1"), ("user.id", "u-1"), ("trace.metadata.team", "blue")] {
        ensure!(attribute(&span, key).is_some_and(|found| found["stringValue"] == value), "{key} in {span}");
    }
    let asked = attribute(&span, "gen_ai.input.messages").context("no input")?.to_string();
    ensure!(asked.contains("It smokes."), "{asked}");
    ensure!(attribute(&span, "gen_ai.output.messages").context("no output")?.to_string().contains("noul"));
    wait_until(&world.instance, "pending", 0).await?;
    world.server.stop().await
}

#[tokio::test]
async fn whatever_a_receiver_does_it_hears_of_everything_in_the_end_and_nobody_waits() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let world = World::start(&hasty("max_attempts = 1000")).await?;
    decide(&world.server, &world.inference, 5).await?;
    let timed = async |count| {
        let begun = Instant::now();
        decide(&world.server, &world.inference, count).await.map(|ids| (ids, begun.elapsed()))
    };
    let (_, alone) = timed(20).await?;
    create(&world, &webhook(&receiver)).await?;
    let elsewhere = Upstream::start(Behaviour::status(200)).await?;
    let mut ids = Vec::new();
    for behaviour in [
        Behaviour::HangBeforeHeaders,
        Behaviour::status(500),
        Behaviour::Answer(307, format!("location: {}\r\n", elsewhere.base_url()), String::new()),
        Behaviour::Answer(429, "retry-after: 1\r\n".to_owned(), String::new()),
        Behaviour::Close,
        Behaviour::Reset,
        Behaviour::HangAfterHeaders,
        Behaviour::Flood(1 << 20),
    ] {
        // Until here nobody has taken anything: what was heard so far does not count.
        if matches!(behaviour, Behaviour::HangAfterHeaders) {
            receiver.take_requests();
        }
        receiver.behave(behaviour.clone());
        let (some, took) = timed(20).await?;
        ensure!(
            took < alone * 10 + Duration::from_secs(5),
            "20 requests took {took:?} beside {behaviour:?}, alone {alone:?}"
        );
        ids.extend(some);
        sleep(Duration::from_millis(300)).await;
    }
    // Those who answered 200 have heard of theirs by then, whatever they sent behind it.
    receiver.behave(Behaviour::status(200));
    let mut lost = ids.clone();
    for _ in 0..200 {
        if pending(&world.instance, "pending").await? == 0 {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    let told = told(&receiver.take_requests())?;
    lost.retain(|id| !told.contains_key(id));
    ensure!(lost.is_empty(), "{} of {} requests were never told of", lost.len(), ids.len());
    ensure!(pending(&world.instance, "pending").await? == 0 && pending(&world.instance, "dead").await? == 0);
    ensure!(elsewhere.take_requests().is_empty(), "a redirect was followed");
    world.server.stop().await
}

#[tokio::test]
async fn a_receiver_that_hangs_keeps_no_other_waiting() -> Result<()> {
    let (dead, alive) =
        (Upstream::start(Behaviour::status(200)).await?, Upstream::start(Behaviour::status(200)).await?);
    let world = World::start("[egress]\nallow_private_addresses = true\n[broadcast]\ntimeout_ms = 20000\n").await?;
    create(&world, &webhook(&dead)).await?;
    create(&world, &webhook(&alive)).await?;
    dead.behave(Behaviour::HangBeforeHeaders);
    alive.take_requests();
    let ids = decide(&world.server, &world.inference, 50).await?;
    let begun = Instant::now();
    let (_, told) = collect(&alive, &ids).await?;
    ensure!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    ensure!(told.values().all(|times| *times == 1), "nothing is told twice where nothing fails");
    world.server.kill().await
}

#[tokio::test]
async fn what_is_given_up_is_kept_and_can_be_tried_again() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let world = World::start(&hasty("max_attempts = 3")).await?;
    let id = create(&world, &webhook(&receiver)).await?;
    receiver.take_requests();
    receiver.behave(Behaviour::status(503));
    let ids = decide(&world.server, &world.inference, 1).await?;
    wait_until(&world.instance, "dead", 1).await?;
    let attempts = receiver.take_requests().len();
    ensure!(attempts == 3, "{attempts} attempts");
    let hand = SecondHand::open(&world.instance.database()).await?;
    let told = hand.number("SELECT COUNT(*) FROM outbox WHERE last_error = 'it answered with status 503'").await?;
    hand.close().await?;
    ensure!(told == 1, "the reason is kept");

    receiver.behave(Behaviour::status(200));
    let other = "01990000-0000-7000-8000-000000000001";
    ensure!(world.instance.json(&["destination", "retry", other]).await? == json!({"revived_count": 0}));
    ensure!(world.instance.json(&["destination", "retry", &id]).await? == json!({"revived_count": 1}));
    let log = world.instance.json(&["audit", "list"]).await?;
    let all = log["data"].as_array().context("no entries")?;
    let noted: Vec<&Value> = all.iter().filter(|entry| entry["action"] == "destination.retry").collect();
    ensure!(noted.len() == 1 && noted[0]["subject"] == format!("destination {id}"), "{noted:?}");
    ensure!(noted[0]["details"] == json!({"revived_count": 1}), "{noted:?}");
    ensure!(noted[0]["actor"].as_str().is_some_and(|actor| actor.starts_with("user:")), "{noted:?}");
    collect(&receiver, &ids).await?;
    wait_until(&world.instance, "pending", 0).await?;
    let tested = world.instance.json(&["destination", "test", &id]).await?;
    ensure!(tested == json!({"id": id, "reached": true}));
    receiver.behave(Behaviour::status(500));
    let refused = world.instance.refused(&["destination", "test", &id]).await?;
    ensure!(refused.contains("status 500"), "{refused}");
    ensure!(world.instance.refused(&["destination", "test", "x"]).await?.contains("no destination x"));
    let listed = world.instance.json(&["destination", "list"]).await?.to_string();
    ensure!(listed.contains(&id) && !listed.contains(SECRET) && !listed.contains("t0ken"), "{listed}");
    world.server.stop().await
}

#[tokio::test]
async fn a_message_that_is_not_taken_does_not_hold_up_the_others() -> Result<()> {
    fn picky(request: &Recorded) -> (u16, String) {
        (if request.text().contains("poison") { 413 } else { 200 }, "{}".to_owned())
    }
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let world = World::start(&hasty("max_attempts = 2")).await?;
    create(&world, &webhook(&receiver)).await?;
    receiver.behave(Behaviour::status(500));
    let mut ids = decide(&world.server, &world.inference, 5).await?;
    world.decide(body_with(r#""user":"poison""#)).await?;
    ids.extend(decide(&world.server, &world.inference, 5).await?);
    receiver.behave(Behaviour::Speak(picky));
    let since = tokio::time::Instant::now();
    while pending(&world.instance, "dead").await? == 0 {
        ensure!(since.elapsed() < Duration::from_secs(20), "the message that nobody takes is given up");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    wait_until(&world.instance, "pending", 0).await?;
    world.instance.json(&["destination", "retry"]).await?;
    wait_until(&world.instance, "dead", 1).await?;
    let told = told(&receiver.take_requests())?;
    ensure!(ids.iter().all(|id| told.contains_key(id)), "all others are delivered");
    world.server.stop().await
}

#[tokio::test]
async fn the_death_of_the_process_loses_no_trace() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let world = World::start(&hasty("")).await?;
    create(&world, &webhook(&receiver)).await?;
    receiver.behave(Behaviour::HangBeforeHeaders);
    let ids = decide(&world.server, &world.inference, 10).await?;
    // Some are taken and under way, some are not.
    world.server.kill().await?;
    receiver.behave(Behaviour::status(200));
    receiver.take_requests();
    let server = world.instance.serve().await?;
    collect(&receiver, &ids).await?;
    wait_until(&world.instance, "pending", 0).await?;
    server.stop().await
}

#[tokio::test]
async fn several_servers_share_the_work() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let world = World::start(&hasty("")).await?;
    let beside = world.instance.serve_beside().await?;
    create(&world, &webhook(&receiver)).await?;
    receiver.take_requests();
    let mut ids = Vec::new();
    for server in [&world.server, &beside, &world.server, &beside] {
        ids.extend(decide(server, &world.inference, 25).await?);
    }
    let (_, mut told) = collect(&receiver, &ids).await?;
    wait_until(&world.instance, "pending", 0).await?;
    for (id, times) in self::told(&receiver.take_requests())? {
        *told.entry(id).or_default() += times;
    }
    ensure!(told.len() == 100 && told.values().all(|times| *times == 1), "something was told twice");
    beside.stop().await?;
    world.server.stop().await
}

#[tokio::test]
async fn each_destination_hears_what_it_is_for() -> Result<()> {
    let operators = Upstream::start(Behaviour::status(200)).await?;
    let telemetry =
        format!("[telemetry]\notlp_url = \"http://{}\"\notlp_headers_env = \"OTLP_HEADERS\"\n", operators.address());
    let mut instance = Instance::new(&hasty(&telemetry))?;
    instance.set_env("OTLP_HEADERS", "Authorization: Bearer collectors-key");
    let world = World::of(instance).await?;
    let other = world.instance.inference_key().await?;
    let mut receivers = Vec::new();
    for more in [
        json!({"privacy_mode": true}),
        json!({"api_key_hashes": [other.id, other.hash]}),
        json!({"sampling_rate": 0.5}),
        json!({"enabled": false}),
    ] {
        let receiver = Upstream::start(Behaviour::status(200)).await?;
        let collector =
            json!({"name": "c", "type": "otel-collector", "config": {"url": format!("http://{}", receiver.address())}});
        create(&world, &with(collector, more)).await?;
        let test = receiver.take_request()?;
        ensure!(test.head.starts_with("POST /v1/traces "), "{}", test.head);
        receivers.push(receiver);
    }
    let mut ids = Vec::new();
    for session in 0..40 {
        for _ in 0..2 {
            let answer = world.decide(body_with(&format!(r#""session_id":"session {session}""#))).await?;
            ids.push(answer["id"].as_str().context("no id")?.to_owned());
        }
    }
    let others = decide(&world.server, &other, 3).await?;
    let all: Vec<String> = ids.iter().chain(&others).cloned().collect();

    let (requests, _) = collect(&receivers[0], &all).await?;
    ensure!(
        !requests.iter().any(|request| request.text().contains("It smokes")),
        "a private destination hears no content"
    );
    ensure!(header(&requests[0], "x-tollgate-signature").is_none(), "there is nothing to sign with");
    let (requests, _) = collect(&operators, &all).await?;
    ensure!(
        !requests.iter().any(|request| request.text().contains("It smokes")),
        "nor does the operator, unless it may"
    );
    ensure!(header(&requests[0], "authorization") == Some("Bearer collectors-key"));
    wait_until(&world.instance, "pending", 0).await?;
    let heard = told(&receivers[1].take_requests())?;
    ensure!(heard.keys().eq(others.iter().collect::<std::collections::BTreeSet<_>>()), "of one key alone: {heard:?}");
    let sampled = told(&receivers[2].take_requests())?;
    let whole = ids.chunks(2).filter(|pair| sampled.contains_key(&pair[0])).count();
    ensure!(
        ids.chunks(2).all(|pair| sampled.contains_key(&pair[0]) == sampled.contains_key(&pair[1])),
        "a session was split"
    );
    ensure!((8..=32).contains(&whole), "{whole} of 40 sessions at a rate of a half");
    ensure!(receivers[3].take_requests().is_empty(), "a disabled destination hears nothing");
    world.server.stop().await
}
