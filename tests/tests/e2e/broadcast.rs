//! Traces reach their destinations despite failures of receivers and processes, and no request waits for them.

mod alerts;
mod encryption;
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

use crate::gateway::{TestGateway, body, body_with};

const DESTINATIONS: &str = "/api/v1/observability/destinations";
const SECRET: &str = "a secret of sufficient length";
/// The longest wait for a delivery: one has 10 seconds, a repetition comes after 1 second, then 2, 4 and so on, and the
/// messages of a killed process are taken over after 21 seconds.
const LONGEST_WAIT: Duration = Duration::from_mins(2);

/// Returns settings that allow local receivers.
fn local_receivers(more: &str) -> String {
    format!("[egress]\nallow_private_addresses = true\n{more}\n")
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

async fn create(gateway: &TestGateway, body: &Value) -> Result<String> {
    let reply = send(&gateway.server, &gateway.management, Method::POST, DESTINATIONS, body).await?;
    ensure!(reply.status == 201, "{}", reply.text());
    let made = reply.json()?;
    // A running server applies the change within a second.
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

/// Counts the traces of each request.
fn count_traces(requests: &[Recorded]) -> Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for request in requests {
        for span in spans(request)? {
            if let Some(id) = attribute(&span, "gen_ai.response.id") {
                *counts.entry(id["stringValue"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
    }
    Ok(counts)
}

/// Collects the requests of a receiver until they include all `ids`.
async fn collect(receiver: &Upstream, ids: &[String]) -> Result<(Vec<Recorded>, BTreeMap<String, usize>)> {
    let mut all = Vec::new();
    let since = Instant::now();
    while since.elapsed() < LONGEST_WAIT {
        all.extend(receiver.take_requests());
        let counts = count_traces(&all)?;
        if ids.iter().all(|id| counts.contains_key(id)) {
            return Ok((all, counts));
        }
        sleep(Duration::from_millis(50)).await;
    }
    let counts = count_traces(&all)?;
    anyhow::bail!(
        "{} of {} requests were delivered",
        ids.iter().filter(|id| counts.contains_key(*id)).count(),
        ids.len()
    )
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
    let hand = SecondHand::of(instance).await?;
    let count = hand.number(&format!("SELECT COUNT(*) FROM outbox WHERE state = '{state}'")).await?;
    hand.close().await?;
    Ok(count)
}

async fn wait_until(instance: &Instance, state: &str, count: i64) -> Result<()> {
    let mut found = -1;
    let since = Instant::now();
    while since.elapsed() < LONGEST_WAIT {
        found = pending(instance, state).await?;
        if found == count {
            return Ok(());
        }
        sleep(Duration::from_millis(50)).await;
    }
    anyhow::bail!("{found} messages are {state} in place of {count}")
}

/// Lets the next failure of each message be its last one, until there are so many dead letters.
async fn exhaust_attempts(instance: &Instance, dead: i64) -> Result<()> {
    let since = Instant::now();
    while pending(instance, "dead").await? != dead {
        ensure!(since.elapsed() < LONGEST_WAIT, "no message is given up");
        let hand = SecondHand::of(instance).await?;
        hand.execute("UPDATE outbox SET attempts = 11 WHERE state = 'pending' AND attempts BETWEEN 1 AND 10").await?;
        hand.close().await?;
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
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
async fn trace_is_delivered_with_signature_after_test_call() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(400)).await?;
    let gateway = TestGateway::start(&local_receivers("")).await?;
    let hook = with(
        webhook(&receiver),
        json!({"config": {
        "url": format!("{}/in?token=t0ken", receiver.base_url()), "secret": SECRET, "headers": {"X-Team": "a team"}}, "privacy_mode": false}),
    );
    create(&gateway, &hook).await?;
    let test = receiver.take_request()?;
    ensure!(test.head.starts_with("POST /v1/in?token=t0ken HTTP/1.1"), "{}", test.head);
    ensure!(header(&test, "x-test-connection") == Some("true") && test.text() == r#"{"resourceSpans":[]}"#);

    receiver.behave(Behaviour::status(204));
    let members = r#""session_id":"s-1","user":"u-1","trace":{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","generation_name":"judge","team":"blue"}"#;
    let answer = gateway.decide(body_with(members)).await?;
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
    wait_until(&gateway.instance, "pending", 0).await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn all_traces_are_delivered_when_receiver_fails_temporarily() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let gateway = TestGateway::start(&local_receivers("")).await?;
    decide(&gateway.server, &gateway.inference, 5).await?;
    let timed = async |count| {
        let begun = Instant::now();
        decide(&gateway.server, &gateway.inference, count).await.map(|ids| (ids, begun.elapsed()))
    };
    let (_, alone) = timed(20).await?;
    create(&gateway, &webhook(&receiver)).await?;
    let elsewhere = Upstream::start(Behaviour::status(200)).await?;
    let (mut ids, mut requests) = (Vec::new(), Vec::new());
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
        receiver.behave(behaviour.clone());
        requests.extend(receiver.take_requests());
        let (some, took) = timed(20).await?;
        ensure!(
            took < alone * 10 + Duration::from_secs(5),
            "20 requests took {took:?} beside {behaviour:?}, alone {alone:?}"
        );
        ids.extend(some);
        let since = Instant::now();
        while receiver.wait_for_request().await.is_err() {
            ensure!(since.elapsed() < LONGEST_WAIT, "no delivery met {behaviour:?}");
        }
        // Receivers that responded with 200 have their traces by then, regardless of the rest of their response. What
        // failed reached nobody; after the end of the failure the delays begin anew.
        if !matches!(behaviour, Behaviour::HangAfterHeaders | Behaviour::Flood(_)) {
            receiver.take_requests();
        }
        receiver.behave(Behaviour::status(200));
        wait_until(&gateway.instance, "pending", 0).await?;
    }
    let mut lost = ids.clone();
    requests.extend(receiver.take_requests());
    let counts = count_traces(&requests)?;
    lost.retain(|id| !counts.contains_key(id));
    ensure!(lost.is_empty(), "{} of {} requests were never delivered", lost.len(), ids.len());
    ensure!(pending(&gateway.instance, "pending").await? == 0 && pending(&gateway.instance, "dead").await? == 0);
    ensure!(elsewhere.take_requests().is_empty(), "a redirect was followed");
    gateway.server.stop().await
}

#[tokio::test]
async fn hanging_receiver_does_not_delay_others() -> Result<()> {
    let (dead, alive) =
        (Upstream::start(Behaviour::status(200)).await?, Upstream::start(Behaviour::status(200)).await?);
    let gateway = TestGateway::start(&local_receivers("")).await?;
    create(&gateway, &webhook(&dead)).await?;
    create(&gateway, &webhook(&alive)).await?;
    dead.behave(Behaviour::HangBeforeHeaders);
    alive.take_requests();
    let ids = decide(&gateway.server, &gateway.inference, 50).await?;
    let begun = Instant::now();
    let (_, counts) = collect(&alive, &ids).await?;
    // The other one answers nothing for 10 seconds.
    ensure!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    ensure!(counts.values().all(|times| *times == 1), "a trace was duplicated without a failure");
    gateway.server.kill().await
}

#[tokio::test]
async fn dead_letters_are_kept_and_can_be_retried() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let gateway = TestGateway::start(&local_receivers("")).await?;
    let id = create(&gateway, &webhook(&receiver)).await?;
    receiver.take_requests();
    receiver.behave(Behaviour::status(503));
    let ids = decide(&gateway.server, &gateway.inference, 1).await?;
    exhaust_attempts(&gateway.instance, 1).await?;
    let attempts = receiver.take_requests().len();
    ensure!(attempts >= 2, "{attempts} attempts");
    let hand = SecondHand::of(&gateway.instance).await?;
    let failures = hand.number("SELECT MAX(attempts) FROM outbox WHERE state = 'dead'").await?;
    ensure!(failures == 12, "given up after {failures} failures");
    let counts = hand.number("SELECT COUNT(*) FROM outbox WHERE last_error = 'it answered with status 503'").await?;
    hand.close().await?;
    ensure!(counts == 1, "the reason is kept");

    receiver.behave(Behaviour::status(200));
    let other = "01990000-0000-7000-8000-000000000001";
    let unknown = gateway.instance.run(&["destination", "retry", other]).await?;
    let said = String::from_utf8_lossy(&unknown.stderr);
    ensure!(!unknown.status.success() && said.contains("not found"), "{said}");
    ensure!(gateway.instance.json(&["destination", "retry", &id]).await? == json!({"retried_count": 1}));
    let log = gateway.instance.json(&["audit", "list"]).await?;
    let all = log["data"].as_array().context("no entries")?;
    let noted: Vec<&Value> = all.iter().filter(|entry| entry["action"] == "destination.retry").collect();
    ensure!(noted.len() == 1 && noted[0]["subject"] == format!("destination {id}"), "{noted:?}");
    ensure!(noted[0]["details"] == json!({"retried_count": 1}), "{noted:?}");
    ensure!(noted[0]["actor"].as_str().is_some_and(|actor| actor.starts_with("user:")), "{noted:?}");
    collect(&receiver, &ids).await?;
    wait_until(&gateway.instance, "pending", 0).await?;
    let tested = gateway.instance.json(&["destination", "test", &id]).await?;
    ensure!(tested == json!({"id": id, "reached": true}));
    receiver.behave(Behaviour::status(500));
    let refused = gateway.instance.refused(&["destination", "test", &id]).await?;
    ensure!(refused.contains("status 500"), "{refused}");
    ensure!(gateway.instance.refused(&["destination", "test", "x"]).await?.contains("destination \"x\" not found"));
    let listed = gateway.instance.json(&["destination", "list"]).await?.to_string();
    ensure!(listed.contains(&id) && !listed.contains(SECRET) && !listed.contains("t0ken"), "{listed}");
    gateway.server.stop().await
}

/// The store keeps the pause, also over a restart; a repair of the destination ends it.
#[tokio::test]
async fn pause_outlives_restart_and_ends_with_repair() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let mut gateway = TestGateway::start(&local_receivers("")).await?;
    let id = create(&gateway, &webhook(&receiver)).await?;
    let path = format!("/api/v1/observability/destinations/{id}");
    receiver.take_requests();
    for repair in ["test", "retry", "PATCH"] {
        receiver.behave(Behaviour::Answer(429, "retry-after: 3000\r\n".to_owned(), String::new()));
        let mut ids = decide(&gateway.server, &gateway.inference, 1).await?;
        receiver.wait_for_request().await?;
        let since = Instant::now();
        let hand = SecondHand::of(&gateway.instance).await?;
        while hand.number("SELECT COUNT(*) FROM destination_pauses").await? == 0 {
            ensure!(since.elapsed() < LONGEST_WAIT, "the destination is not paused");
            sleep(Duration::from_millis(20)).await;
        }
        hand.close().await?;
        receiver.behave(Behaviour::status(200));
        receiver.take_requests();
        gateway.server.stop().await?;
        gateway.server = gateway.instance.serve().await?;
        ids.extend(decide(&gateway.server, &gateway.inference, 1).await?);
        wait_until(&gateway.instance, "pending", 2).await?;
        // Two polls of the outbox.
        sleep(Duration::from_secs(1)).await;
        ensure!(receiver.take_requests().is_empty(), "the pause ended with the restart");
        match repair {
            "PATCH" => {
                let body = json!({"name": "repaired"});
                send(&gateway.server, &gateway.management, Method::PATCH, &path, &body).await?.ok()?;
            }
            "retry" => {
                let retried = gateway.instance.json(&["destination", "retry", &id]).await?;
                ensure!(retried == json!({"retried_count": 1}), "{retried}: the other one never failed");
            }
            test => drop(gateway.instance.json(&["destination", test, &id]).await?),
        }
        collect(&receiver, &ids).await?;
        wait_until(&gateway.instance, "pending", 0).await?;
        receiver.take_requests();
    }
    gateway.server.stop().await
}

#[tokio::test]
async fn rejected_message_does_not_delay_others() -> Result<()> {
    fn picky(request: &Recorded) -> (u16, String) {
        (if request.text().contains("poison") { 413 } else { 200 }, "{}".to_owned())
    }
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let gateway = TestGateway::start(&local_receivers("")).await?;
    create(&gateway, &with(webhook(&receiver), json!({"privacy_mode": false}))).await?;
    receiver.behave(Behaviour::status(500));
    let mut ids = decide(&gateway.server, &gateway.inference, 5).await?;
    gateway.decide(body_with(r#""user":"poison""#)).await?;
    ids.extend(decide(&gateway.server, &gateway.inference, 5).await?);
    receiver.behave(Behaviour::Speak(picky));
    exhaust_attempts(&gateway.instance, 1).await?;
    wait_until(&gateway.instance, "pending", 0).await?;
    gateway.instance.json(&["destination", "retry"]).await?;
    exhaust_attempts(&gateway.instance, 1).await?;
    let counts = count_traces(&receiver.take_requests())?;
    ensure!(ids.iter().all(|id| counts.contains_key(id)), "all others are delivered");
    gateway.server.stop().await
}

#[tokio::test]
async fn process_crash_loses_no_trace() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let gateway = TestGateway::start(&local_receivers("")).await?;
    create(&gateway, &webhook(&receiver)).await?;
    receiver.behave(Behaviour::HangBeforeHeaders);
    let ids = decide(&gateway.server, &gateway.inference, 10).await?;
    // Some messages are in delivery, some are not.
    gateway.server.kill().await?;
    receiver.behave(Behaviour::status(200));
    receiver.take_requests();
    let server = gateway.instance.serve().await?;
    collect(&receiver, &ids).await?;
    wait_until(&gateway.instance, "pending", 0).await?;
    server.stop().await
}

#[tokio::test]
async fn concurrent_servers_deliver_each_trace_once() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let gateway = TestGateway::start(&local_receivers("")).await?;
    let beside = gateway.instance.serve_beside().await?;
    create(&gateway, &webhook(&receiver)).await?;
    receiver.take_requests();
    let mut ids = Vec::new();
    for server in [&gateway.server, &beside, &gateway.server, &beside] {
        ids.extend(decide(server, &gateway.inference, 25).await?);
    }
    let (_, mut counts) = collect(&receiver, &ids).await?;
    wait_until(&gateway.instance, "pending", 0).await?;
    for (id, times) in self::count_traces(&receiver.take_requests())? {
        *counts.entry(id).or_default() += times;
    }
    ensure!(counts.len() == 100 && counts.values().all(|times| *times == 1), "a trace was duplicated");
    beside.stop().await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn destinations_receive_traces_of_their_filter_only() -> Result<()> {
    let operators = Upstream::start(Behaviour::status(200)).await?;
    let telemetry = format!(
        "[telemetry]\notlp_url = \"http://{}\"\notlp_secret_headers = \"env:OTLP_HEADERS\"\n",
        operators.address()
    );
    let mut instance = Instance::new(&local_receivers(&telemetry))?;
    instance.set_env("OTLP_HEADERS", "Authorization: Bearer collectors-key");
    let gateway = TestGateway::of(instance).await?;
    let other = gateway.instance.inference_key().await?;
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
        create(&gateway, &with(collector, more)).await?;
        let test = receiver.take_request()?;
        ensure!(test.head.starts_with("POST /v1/traces "), "{}", test.head);
        receivers.push(receiver);
    }
    let mut ids = Vec::new();
    for session in 0..40 {
        for _ in 0..2 {
            let answer = gateway.decide(body_with(&format!(r#""session_id":"session {session}""#))).await?;
            ids.push(answer["id"].as_str().context("no id")?.to_owned());
        }
    }
    let others = decide(&gateway.server, &other, 3).await?;
    let all: Vec<String> = ids.iter().chain(&others).cloned().collect();

    let (requests, _) = collect(&receivers[0], &all).await?;
    ensure!(
        !requests.iter().any(|request| request.text().contains("It smokes")),
        "a destination in privacy mode received content"
    );
    ensure!(header(&requests[0], "x-tollgate-signature").is_none(), "there is nothing to sign with");
    let (requests, _) = collect(&operators, &all).await?;
    ensure!(
        !requests.iter().any(|request| request.text().contains("It smokes")),
        "nor does the operator, unless it may"
    );
    ensure!(header(&requests[0], "authorization") == Some("Bearer collectors-key"));
    wait_until(&gateway.instance, "pending", 0).await?;
    let heard = count_traces(&receivers[1].take_requests())?;
    ensure!(heard.keys().eq(others.iter().collect::<std::collections::BTreeSet<_>>()), "of one key alone: {heard:?}");
    let sampled = count_traces(&receivers[2].take_requests())?;
    let whole = ids.chunks(2).filter(|pair| sampled.contains_key(&pair[0])).count();
    ensure!(
        ids.chunks(2).all(|pair| sampled.contains_key(&pair[0]) == sampled.contains_key(&pair[1])),
        "a session was split"
    );
    ensure!((8..=32).contains(&whole), "{whole} of 40 sessions at a rate of a half");
    ensure!(receivers[3].take_requests().is_empty(), "a disabled destination received traces");
    gateway.server.stop().await
}
