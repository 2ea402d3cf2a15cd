//! `tollgate provider test`, and the credential check of `doctor`.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Behaviour, Instance, Recorded, Upstream, free_address, is_root, record};

use crate::gateway::{TestGateway, providers_toml};

const VALID: &str =
    r#"{"model":"m","answers":{"test":{"type":"noul","noul":0.97}},"usage":{"input_tokens":9,"output_tokens":1}}"#;
const REJECTED: &str =
    r#"{"error":{"code":"invalid_api_key","message":"Incorrect API key provided: alpha-secret-0001"}}"#;

/// Answers only the key of `alpha`, like a provider with a private list of models.
fn private_list(request: &Recorded) -> (u16, String) {
    let is_right = request.head.contains("alpha-secret-0001");
    match (is_right, request.head.starts_with("GET /v1/models ")) {
        (true, true) => (200, "{}".to_owned()),
        (true, false) => (200, VALID.to_owned()),
        (false, _) => (401, REJECTED.to_owned()),
    }
}

fn installation(alpha: &Upstream) -> Result<Instance> {
    let mut instance = Instance::new(&providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000))?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    Ok(instance)
}

async fn document(instance: &Instance, arguments: &[&str]) -> Result<(Value, Option<i32>)> {
    let output = instance.run(&[arguments, &["--json"]].concat()).await?;
    let document = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok((record(document), output.status.code()))
}

#[tokio::test]
async fn provider_test_makes_a_real_call_without_a_server() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(private_list)).await?;
    let instance = installation(&alpha)?;
    ensure!(instance.run(&["migrate", "up"]).await?.status.success());
    let (report, code) = document(&instance, &["provider", "test", "alpha"]).await?;
    ensure!(code == Some(0) && report["ok"] == true, "{report}");
    ensure!(report["outcome"] == "answered" && report["upstream_status"] == 200, "{report}");
    ensure!(report["latency_ms"].as_f64().is_some_and(|ms| ms > 0.0) && report["input_tokens"] == 9, "{report}");
    let sent = alpha.take_requests();
    ensure!(sent.len() == 1 && sent[0].text().contains("\"judge-1\""), "{sent:?}");

    let (report, code) = document(&instance, &["provider", "test", "alpha", "--model", "judge-2"]).await?;
    ensure!(code == Some(0) && report["upstream_model"] == "judge-2", "{report}");

    // The credential of beta is missing.
    let (report, code) = document(&instance, &["provider", "test", "beta"]).await?;
    ensure!(code == Some(1) && report["ok"] == false, "{report}");
    ensure!(report["outcome"] == "provider_auth_failed" && report["upstream_status"] == 401, "{report}");
    ensure!(report["provider_code"] == "invalid_api_key", "{report}");
    Ok(())
}

/// Arguments of `provider add` for a provider of its own.
fn custom(base_url: &str) -> Vec<String> {
    let values = [
        ("name", "House"),
        ("wire", "system-one"),
        ("base_url", base_url),
        ("model", "house/judge"),
        ("upstream_model", "judge-9"),
        ("input_usd_per_million_tokens", "0.1"),
        ("output_usd_per_million_tokens", "0"),
    ];
    let set = values.iter().flat_map(|(name, value)| ["--set".to_owned(), format!("{name}={value}")]);
    ["provider", "add", "custom", "--slug", "house"].map(str::to_owned).into_iter().chain(set).collect()
}

#[tokio::test]
async fn added_provider_answers_in_the_running_server() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(private_list)).await?;
    let gateway = TestGateway::of(installation(&alpha)?).await?;
    let file = gateway.instance.path().join("test.toml");
    let before = std::fs::read_to_string(&file)?;
    let arguments = custom(&alpha.base_url());
    let with = |more: &[&'static str]| {
        arguments.iter().map(String::as_str).chain(more.iter().copied()).map(str::to_owned).collect::<Vec<_>>()
    };
    let run = async |arguments: Vec<String>| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        document(&gateway.instance, &arguments).await
    };

    // A provider that rejects the key is not added.
    let (report, code) = run(with(&["--no-key", "--yes"])).await?;
    ensure!(code == Some(1) && report["outcome"] == "provider_auth_failed", "{report}");
    let (preview, code) = run(with(&["--key-env", "ALPHA_API_KEY", "--dry-run"])).await?;
    ensure!(code == Some(0) && preview["written"] == false && preview["test"]["ok"] == true, "{preview}");
    ensure!(std::fs::read_to_string(&file)? == before, "the file changed");

    // As installed: the file is root's, and its group that of the server. Only root can give files away.
    if is_root()? {
        chown(&file, Some(0), Some(61_002))?;
    }
    std::fs::set_permissions(&file, Permissions::from_mode(0o640))?;
    let group = std::fs::metadata(&file)?.gid();
    let (added, code) = run(with(&["--key-env", "ALPHA_API_KEY", "--yes"])).await?;
    ensure!(code == Some(0) && added["written"] == true, "{added}");
    let metadata = std::fs::metadata(&file)?;
    ensure!((metadata.gid(), metadata.mode() & 0o777) == (group, 0o640), "{metadata:?}");
    ensure!(added["reloaded"].as_array().is_some_and(|ids| ids.len() == 1), "{added}");
    let after = std::fs::read_to_string(&file)?;
    ensure!(before.lines().all(|line| after.contains(line)) && !after.contains("alpha-secret"), "{after}");
    let since = Instant::now();
    let asked =
        r#"{"model": "house/judge", "state": "s", "questions": {"test": {"type": "noul", "instructions": "?"}}}"#;
    while gateway.server.decide(&gateway.inference.secret, asked).await?.status != 200 {
        ensure!(since.elapsed() < Duration::from_secs(20), "the server does not have the model");
        sleep(Duration::from_millis(20)).await;
    }

    let (error, code) = run(with(&["--key-env", "ALPHA_API_KEY", "--yes"])).await?;
    ensure!(code == Some(1) && error["error"].as_str().is_some_and(|text| text.contains("exists")), "{error}");
    Ok(())
}

#[tokio::test]
async fn provider_test_masks_keys_and_names_unknown_providers() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Answer(401, String::new(), REJECTED.to_owned())).await?;
    let instance = installation(&alpha)?;
    ensure!(instance.run(&["migrate", "up"]).await?.status.success());
    let output = instance.run(&["provider", "test", "alpha"]).await?;
    let shown = String::from_utf8(output.stdout)?;
    ensure!(output.status.code() == Some(1) && shown.contains("upstream_status: 401"), "{shown}");
    ensure!(shown.contains("invalid_api_key") && !shown.contains("alpha-secret-0001"), "{shown}");
    let said = instance.refused(&["provider", "test", "alpah"]).await?;
    ensure!(said == "error: provider \"alpah\" not found", "{said}");
    drop(alpha);
    let (report, code) = document(&instance, &["provider", "test", "alpha"]).await?;
    ensure!(code == Some(1) && report["outcome"] == "connect_error", "{report}");
    ensure!(report["cause"] == "connection_refused" && report["detail"] == "the connection was refused", "{report}");
    Ok(())
}

#[tokio::test]
async fn provider_test_asks_the_server_for_a_secret_that_the_shell_lacks() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(private_list)).await?;
    let mut gateway = TestGateway::of(installation(&alpha)?).await?;
    gateway.instance.set_env("ALPHA_API_KEY", "");
    let (report, code) = document(&gateway.instance, &["provider", "test", "alpha"]).await?;
    ensure!(code == Some(0) && report["ok"] == true, "{report}");
    gateway.server.stop().await?;
    let (report, code) = document(&gateway.instance, &["provider", "test", "alpha"]).await?;
    let reason = "api_key names an environment variable that is not set, or empty: ALPHA_API_KEY";
    ensure!(code == Some(1) && report["detail"].as_str().is_some_and(|text| text.contains(reason)), "{report}");
    Ok(())
}

#[tokio::test]
async fn key_in_quotation_marks_is_warned_about_at_start_and_by_checks() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(private_list)).await?;
    let mut instance = installation(&alpha)?;
    // As `docker --env-file` passes ALPHA_API_KEY="…".
    instance.set_env("ALPHA_API_KEY", "\"alpha-secret-0001\"");
    let gateway = TestGateway::of(instance).await?;
    let output = gateway.server.output();
    let warned = output.lines().find(|line| line.contains("secret in quotation marks")).context(output.clone())?;
    ensure!(warned.contains("WARN") && warned.contains("provider alpha"), "{warned}");
    ensure!(!warned.contains("alpha-secret"), "{warned}");
    for command in [&["config", "check"][..], &["doctor"]] {
        let (report, _) = document(&gateway.instance, command).await?;
        let checks = report["checks"].as_array().context("no checks")?;
        let marks = |check: &&Value| check["detail"].as_str().is_some_and(|detail| detail.contains("quotation marks"));
        let found: Vec<&Value> = checks.iter().filter(marks).collect();
        ensure!(found.len() == 1 && found[0]["name"] == "provider alpha", "{command:?}: {report}");
        ensure!(found[0]["status"] == "warning" && !report.to_string().contains("alpha-secret"), "{report}");
    }
    gateway.server.stop().await
}

#[tokio::test]
async fn server_tests_a_model_without_an_endpoint() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(private_list)).await?;
    let gamma = format!(
        "[[providers]]\nslug = \"gamma\"\nwire = \"system-one\"\nbase_url = \"{}\"\napi_key = \"env:GAMMA_API_KEY\"\n",
        alpha.base_url()
    );
    let toml = providers_toml(&alpha.base_url(), &alpha.base_url(), 5_000) + &gamma;
    let mut instance = Instance::new(&toml)?;
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    instance.set_env("GAMMA_API_KEY", "alpha-secret-0001");
    let mut gateway = TestGateway::of(instance).await?;
    gateway.instance.set_env("ALPHA_API_KEY", "");
    gateway.instance.set_env("GAMMA_API_KEY", "");
    for (provider, model) in [("alpha", "judge-2"), ("gamma", "judge-3")] {
        let (report, code) = document(&gateway.instance, &["provider", "test", provider, "--model", model]).await?;
        ensure!(code == Some(0) && report["upstream_model"] == model, "{report}");
    }
    let said = gateway.instance.refused(&["provider", "test", "gamma"]).await?;
    ensure!(said.contains("no endpoint uses the provider gamma; name a model"), "{said}");
    Ok(())
}

#[tokio::test]
async fn doctor_tells_accepted_credentials_from_open_ports() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Speak(private_list)).await?;
    let mut instance = installation(&alpha)?;
    ensure!(instance.run(&["migrate", "up"]).await?.status.success());
    let credential = async |instance: &Instance| -> Result<(Value, Option<i32>)> {
        let (report, code) = document(instance, &["doctor"]).await?;
        let checks = report["checks"].as_array().context("no checks")?;
        let check = checks.iter().find(|check| check["name"] == "provider alpha, credential");
        let reached = checks.iter().any(|check| {
            check["name"] == "provider alpha" && check["detail"].to_string().contains("accepts TCP connections")
        });
        ensure!(reached, "{report}");
        Ok((check.with_context(|| format!("no check of the credential: {report}"))?.clone(), code))
    };
    let (check, code) = credential(&instance).await?;
    ensure!(check["status"] == "ok" && check["detail"] == "accepted for the list of models", "{check}");
    ensure!(code == Some(0));
    instance.set_env("ALPHA_API_KEY", "another");
    let (check, code) = credential(&instance).await?;
    ensure!(
        check["status"] == "broken"
            && check["detail"] == "rejected: GET models answered 401: the provider rejected the API key",
        "{check}"
    );
    ensure!(code == Some(1));
    for (behaviour, reason) in
        [(Behaviour::json("{}"), "its list of models is public"), (Behaviour::status(404), "GET models answered 404")]
    {
        alpha.behave(behaviour);
        let (check, code) = credential(&instance).await?;
        let detail = format!("not checked: {reason}; `tollgate provider test alpha` makes a real call");
        ensure!(check["detail"] == detail && code == Some(0), "{check}");
    }
    Ok(())
}

/// Each cause of a failed connection is an error of `doctor` and the reason of `provider test`.
#[tokio::test]
async fn causes_of_failed_connections_are_named() -> Result<()> {
    let strict = Upstream::start(Behaviour::status(407)).await?;
    let gone = free_address()?;
    for (base_url, proxy, cause, sentence) in [
        ("http://name.invalid/v1".to_owned(), None, "name_not_found", "name.invalid:80: the host name was not found"),
        (format!("http://{gone}/v1"), None, "connection_refused", "the connection was refused"),
        (
            "https://far.invalid/v1".to_owned(),
            Some(strict.address()),
            "proxy_credentials",
            "asks for credentials (407)",
        ),
        ("https://far.invalid/v1".to_owned(), Some(gone), "proxy_unreachable", "the proxy cannot be reached"),
    ] {
        let mut instance = Instance::new(&providers_toml(&base_url, &base_url, 5_000))?;
        instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
        if let Some(proxy) = proxy {
            instance.set_env("HTTPS_PROXY", format!("http://me:proxy-secret@{proxy}"));
        }
        ensure!(instance.run(&["migrate", "up"]).await?.status.success());
        let (report, code) = document(&instance, &["provider", "test", "alpha"]).await?;
        ensure!(code == Some(1) && report["outcome"] == "connect_error", "{report}");
        ensure!(report["cause"] == cause, "{cause}: {report}");
        let (report, code) = document(&instance, &["doctor"]).await?;
        let checks = report["checks"].as_array().context("no checks")?;
        let check = checks.iter().find(|check| check["name"] == "provider alpha").context("no check")?;
        ensure!(code == Some(1) && check["status"] == "broken", "{check}");
        ensure!(check["detail"].as_str().is_some_and(|detail| detail.contains(sentence)), "{sentence}: {check}");
        ensure!(!report.to_string().contains("proxy-secret"), "{report}");
    }
    Ok(())
}
