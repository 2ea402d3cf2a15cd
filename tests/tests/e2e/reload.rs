//! The reload of the configuration by SIGHUP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;
use tollgate_tests::{Behaviour, Call, Instance, Upstream, decisions, free_address, wait_for};

use crate::gateway::{ANSWER, TestGateway, body};

/// The message after a reload.
const RELOADED: &str = "configuration reloaded";
/// The message after a failed reload.
const NOT_RELOADED: &str = "configuration not reloaded";

/// A configuration with one provider, whose key is in a file beside it.
fn toml(base_url: &str, rest: &str) -> String {
    format!(
        "[[providers]]\nslug = \"alpha\"\nname = \"Alpha AI\"\nbase_url = \"{base_url}\"\napi_key = \"file:alpha.key\"\n{}{rest}",
        endpoint("acme/alone")
    )
}

fn endpoint(model: &str) -> String {
    format!(
        "[[endpoints]]\nmodel = \"{model}\"\nprovider = \"alpha\"\nupstream_model = \"judge-1\"\n\
         input_usd_per_million_tokens = \"0.042\"\noutput_usd_per_million_tokens = \"0\"\n"
    )
}

async fn start(toml: &str, key: &str) -> Result<TestGateway> {
    let instance = Instance::new(toml)?;
    std::fs::write(instance.path().join("alpha.key"), key)?;
    TestGateway::of(instance).await
}

/// Sends SIGHUP and waits for a message; returns the log lines since.
async fn reload(gateway: &TestGateway, message: &str) -> Result<Vec<String>> {
    let before = gateway.server.output().len();
    gateway.server.signal("HUP").await?;
    let since = || gateway.server.output()[before..].to_owned();
    wait_for(message, || since().contains(message)).await?;
    // Lines of info are written together with later ones.
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(since().lines().map(str::to_owned).collect())
}

#[tokio::test]
async fn reload_moves_calls_to_changed_provider_without_a_failed_request() -> Result<()> {
    let slow = Behaviour::Late(Duration::from_millis(30), ANSWER.to_owned());
    let (old, new) = (Upstream::start(slow.clone()).await?, Upstream::start(slow).await?);
    let gateway = start(&toml(&old.base_url(), ""), "sk-old\n").await?;
    let ends = Arc::new(AtomicBool::new(false));
    let mut load = JoinSet::new();
    for _ in 0..8 {
        let (address, ends) = (gateway.server.address(), Arc::clone(&ends));
        let call = decisions(&gateway.inference.secret, body("acme/alone"));
        load.spawn(async move {
            let mut answered = 0_u32;
            while !ends.load(Ordering::SeqCst) {
                call.send(address).await?.ok()?;
                answered += 1;
            }
            Ok::<_, anyhow::Error>(answered)
        });
    }
    old.wait_for_requests(20).await?;
    for (upstream, key) in [(&new, "sk-new"), (&old, "sk-old"), (&new, "sk-newest")] {
        gateway.instance.configure(&toml(&upstream.base_url(), ""))?;
        std::fs::write(gateway.instance.path().join("alpha.key"), format!("{key}\n"))?;
        let lines = reload(&gateway, RELOADED).await?;
        ensure!(lines.iter().any(|line| line.contains("SIGHUP")), "{lines:?}");
        upstream.take_requests();
        upstream.wait_for_requests(20).await?;
        for request in upstream.take_requests() {
            ensure!(request.head.to_ascii_lowercase().contains(&format!("bearer {key}\r")), "{}", request.head);
        }
    }
    // Calls that began before the last reload have ended by now.
    old.take_requests();
    gateway.decide(body("acme/alone")).await?;
    ensure!(old.take_requests().is_empty(), "the old provider still receives calls");
    ends.store(true, Ordering::SeqCst);
    while let Some(ended) = load.join_next().await {
        ensure!(ended?.context("a request failed")? > 10, "too little load");
    }
    gateway.server.stop().await
}

#[tokio::test]
async fn running_request_ends_with_the_provider_it_began_with() -> Result<()> {
    let old = Upstream::start(Behaviour::Late(Duration::from_millis(1_500), ANSWER.to_owned())).await?;
    let gateway = start(&toml(&old.base_url(), ""), "sk-1").await?;
    let (address, call) = (gateway.server.address(), decisions(&gateway.inference.secret, body("acme/alone")));
    let mut calls = JoinSet::new();
    calls.spawn(async move { call.send(address).await });
    old.wait_for_request().await?;
    // The provider, its endpoint and its model are gone.
    let other = Upstream::start(Behaviour::json(ANSWER)).await?;
    gateway.instance.configure(&toml(&other.base_url(), "").replace("alpha\"", "beta\"").replace("alone", "other"))?;
    reload(&gateway, RELOADED).await?;
    gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?.envelope(404)?;
    calls.join_next().await.context("the call is gone")??.context("cut off")?.ok()?;
    gateway.decide(body("acme/other")).await?;
    gateway.server.stop().await
}

/// Texts of a file that lost its endpoints: empty, only comments, cut off before the endpoints.
fn lossy_files(base_url: &str) -> [String; 4] {
    let whole = toml(base_url, "");
    let (provider, _) = whole.split_once("[[endpoints]]").unwrap_or_default();
    [String::new(), "# empty\n".to_owned(), provider.to_owned(), "[sandbox]\nenabled = true\n".to_owned()]
}

#[tokio::test]
async fn reload_rejects_a_file_that_lost_every_endpoint_and_never_switches_the_sandbox_on() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = start(&toml(&alpha.base_url(), ""), "sk-1").await?;
    for lossy in lossy_files(&alpha.base_url()) {
        gateway.instance.configure(&lossy)?;
        let lines = reload(&gateway, NOT_RELOADED).await?;
        let errors: Vec<&String> = lines.iter().filter(|line| line.contains("ERROR")).collect();
        ensure!(errors.len() == 1 && errors[0].contains("--allow-no-endpoints"), "{lossy}: {lines:?}");
        gateway.decide(body("acme/alone")).await?;
        gateway.server.decide(&gateway.inference.secret, body("sandbox/decider")).await?.envelope(404)?;
    }
    // With an endpoint the sandbox is asked for, and still needs a restart.
    gateway.instance.configure(&toml(&alpha.base_url(), "[sandbox]\nenabled = true\n"))?;
    let lines = reload(&gateway, RELOADED).await?;
    ensure!(lines.iter().any(|line| line.contains("need a restart") && line.contains("sandbox.enabled")), "{lines:?}");
    gateway.server.decide(&gateway.inference.secret, body("sandbox/decider")).await?.envelope(404)?;
    gateway.server.stop().await
}

#[tokio::test]
async fn start_without_endpoints_is_rejected_where_the_last_server_had_some() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let whole = toml(&alpha.base_url(), "");
    let gateway = start(&whole, "sk-1").await?;
    gateway.server.stop().await?;
    let (instance, secret) = (gateway.instance, gateway.inference.secret);
    for lossy in lossy_files(&alpha.base_url()) {
        instance.configure(&lossy)?;
        let said = instance.refused_serving().await?;
        ensure!(said.contains("--allow-no-endpoints") && said.contains("had 1"), "{lossy}: {said}");
        let checked = instance.run(&["config", "check"]).await?;
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        ensure!(checked.status.success() && said.contains("warning") && said.contains("has no endpoint"), "{said}");
    }
    instance.configure("")?;
    let server = instance.serve_with(&["--allow-no-endpoints"]).await?;
    server.decide(&secret, body("sandbox/decider")).await?.ok()?;
    // The endpoints come and go by reloads of this server.
    for (text, status) in [(whole.as_str(), 200), ("", 404)] {
        instance.configure(text)?;
        let before = server.output().len();
        server.signal("HUP").await?;
        wait_for(RELOADED, || server.output()[before..].contains(RELOADED)).await?;
        let reply = server.decide(&secret, body("acme/alone")).await?;
        ensure!(reply.status == status, "{}", reply.text());
    }
    server.stop().await?;
    // The last server had none, so that none is lost.
    instance.serve().await?.stop().await
}

#[tokio::test]
async fn invalid_configuration_keeps_the_old_one_and_is_logged_once() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let valid = toml(&alpha.base_url(), "");
    let gateway = start(&valid, "sk-1").await?;
    let elsewhere = toml("http://127.0.0.1:9", "");
    for (broken, reason) in [
        ("[server\n".to_owned(), "test.toml, line 1"),
        (elsewhere.replace("alpha.key", "absent.key"), "api_key names"),
        (format!("{elsewhere}[limits]\nmax_file_byte = 1\n"), "limits.max_file_bytes"),
        (elsewhere.replace("[[endpoints]]", "ca_file = \"absent.pem\"\n[[endpoints]]"), "absent.pem"),
        (format!("{elsewhere}[log]\nfilter = \"a=b=c\"\n"), "log.filter"),
    ] {
        gateway.instance.configure(&broken)?;
        let lines = reload(&gateway, NOT_RELOADED).await?;
        let errors: Vec<&String> = lines.iter().filter(|line| line.contains("ERROR")).collect();
        ensure!(errors.len() == 1 && errors[0].contains(reason), "{reason}: {lines:?}");
        gateway.decide(body("acme/alone")).await?;
    }
    std::fs::remove_file(gateway.instance.path().join("test.toml"))?;
    reload(&gateway, NOT_RELOADED).await?;
    gateway.decide(body("acme/alone")).await?;
    gateway.instance.configure(&valid)?;
    reload(&gateway, RELOADED).await?;
    gateway.decide(body("acme/alone")).await?;
    ensure!(alpha.take_requests().len() == 7);
    gateway.server.stop().await
}

#[tokio::test]
async fn changed_settings_that_need_a_restart_are_named_in_one_warning() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = start(&toml(&alpha.base_url(), ""), "sk-1").await?;
    let restart = "[server]\nbase_path = \"/elsewhere\"\n[limits]\nmax_in_flight = 7\n[sandbox]\nenabled = false\n";
    gateway.instance.configure(&toml(&alpha.base_url(), restart))?;
    let lines = reload(&gateway, RELOADED).await?;
    let warnings: Vec<&String> = lines.iter().filter(|line| line.contains("need a restart")).collect();
    ensure!(warnings.len() == 1 && warnings[0].contains("WARN"), "{lines:?}");
    ensure!(warnings[0].contains("limits.max_in_flight, server.base_path"), "{warnings:?}");
    ensure!(!warnings[0].contains("sandbox"), "{warnings:?}");
    // The base path is that of the start; the sandbox is off.
    gateway.decide(body("acme/alone")).await?;
    gateway.server.decide(&gateway.inference.secret, body("sandbox/decider")).await?.envelope(404)?;
    gateway.instance.configure(&toml(&alpha.base_url(), ""))?;
    let lines = reload(&gateway, RELOADED).await?;
    ensure!(!lines.iter().any(|line| line.contains("need a restart")), "{lines:?}");
    gateway.server.stop().await
}

#[tokio::test]
async fn reload_applies_models_log_level_and_metrics_of_new_providers() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let metrics = free_address()?;
    let mut instance = Instance::new(&toml(&alpha.base_url(), ""))?;
    instance.set_env("TOLLGATE__SERVER__METRICS_LISTEN", metrics.to_string());
    std::fs::write(instance.path().join("alpha.key"), "sk-1")?;
    let gateway = TestGateway::of(instance).await?;
    let unknown = Call::get("/api/v1/model/acme/later").key(&gateway.inference.secret);
    gateway.server.send(&unknown).await?.envelope(404)?;
    ensure!(!gateway.server.output().contains("DEBUG"));
    let later = format!(
        "{}[[providers]]\nslug = \"later\"\nbase_url = \"{}\"\n[log]\nfilter = \"info,api_actix=debug\"\n",
        endpoint("acme/later").replace("alpha", "later"),
        alpha.base_url()
    );
    gateway.instance.configure(&toml(&alpha.base_url(), &later))?;
    reload(&gateway, RELOADED).await?;
    gateway.server.send(&unknown).await?.ok()?;
    gateway.decide(body("acme/later")).await?;
    let listed = gateway.server.send(&Call::get("/api/v1/providers").key(&gateway.inference.secret)).await?.ok()?;
    ensure!(listed.to_string().contains("later"), "{listed}");
    let text = Call::get("/metrics").send(metrics).await?.text();
    ensure!(text.contains(r#"tollgate_attempts_total{provider="later",outcome="completed"} 1"#), "{text}");
    ensure!(text.contains(r#"tollgate_endpoint_accept_rate{endpoint="1",provider="later",model="acme/later"} 1"#));
    gateway.server.decide(&gateway.inference.secret, body("acme/unknown")).await?.envelope(404)?;
    wait_for("a debug line", || gateway.server.output().contains("DEBUG")).await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn corrected_key_ends_the_throttling_of_its_endpoint() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(|request| {
        if request.head.contains("sk-right") { (200, ANSWER.to_owned()) } else { (401, "{}".to_owned()) }
    }))
    .await?;
    let gateway = start(&toml(&alpha.base_url(), ""), "sk-wrong").await?;
    for _ in 0..3 {
        let reply = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
        ensure!(reply.status >= 500, "{}", reply.text());
    }
    std::fs::write(gateway.instance.path().join("alpha.key"), "sk-right")?;
    reload(&gateway, RELOADED).await?;
    gateway.decide(body("acme/alone")).await?;
    gateway.server.stop().await
}

#[tokio::test]
async fn every_signal_leaves_a_line() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    for name in ["USR1", "USR2", "ALRM", "VTALRM", "PROF", "IO"] {
        gateway.server.signal(name).await?;
        let line = format!("signal=\"SIG{name}\"");
        wait_for("a line of the signal", || gateway.server.output().contains(&line)).await?;
    }
    gateway.server.ensure_healthy().await?;
    gateway.server.signal("QUIT").await?;
    wait_for("a line of SIGQUIT", || gateway.server.output().contains("signal=\"SIGQUIT\"")).await?;
    let status = gateway.server.ended().await?;
    ensure!(status.code() == Some(0), "{status}");
    Ok(())
}
