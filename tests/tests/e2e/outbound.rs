//! Provider connections: proxies, keys from files, and other paths.

use std::path::Path;

use anyhow::{Result, ensure};
use test_servers::Authority;
use tollgate_tests::{Behaviour, Instance, Upstream};

use crate::gateway::{ANSWER, TestGateway, body};

fn toml(base_url: &str, more: &str) -> String {
    format!(
        "[[providers]]\nslug = \"far\"\nname = \"Far AI\"\nwire = \"system-one\"\nbase_url = \"{base_url}\"\n{more}\n\
         attempt_timeout_ms = 5000\n\n\
         [[endpoints]]\nmodel = \"acme/far\"\nprovider = \"far\"\nupstream_model = \"far-1\"\n\
         input_usd_per_million_tokens = \"1\"\noutput_usd_per_million_tokens = \"0\"\n"
    )
}

#[tokio::test]
async fn provider_is_called_through_proxy() -> Result<()> {
    let proxy = Upstream::start(Behaviour::json(ANSWER)).await?;
    let address = format!("http://{}", proxy.address());
    let mut instance = Instance::new(&toml("http://decider.invalid/v1", ""))?;
    instance.set_env("HTTP_PROXY", &address);
    let gateway = TestGateway::of(instance).await?;
    gateway.decide(body("acme/far")).await?;
    let seen = proxy.take_request()?;
    ensure!(seen.head.starts_with("POST http://decider.invalid/v1/systemone HTTP/1.1"), "{}", seen.head);

    let mut instance = Instance::new(&toml("https://decider.invalid/v1", ""))?;
    instance.set_env("HTTPS_PROXY", &address);
    let gateway = TestGateway::of(instance).await?;
    proxy.behave(Behaviour::status(403));
    gateway.server.decide(&gateway.inference.secret, body("acme/far")).await?.envelope(502)?;
    let seen = proxy.take_request()?;
    ensure!(seen.head.starts_with("CONNECT decider.invalid:443 HTTP/1.1"), "{}", seen.head);
    Ok(())
}

#[tokio::test]
async fn provider_in_no_proxy_is_called_directly() -> Result<()> {
    let proxy = Upstream::start(Behaviour::status(500)).await?;
    let provider = Upstream::start(Behaviour::json(ANSWER)).await?;
    let with_port = format!("localhost {}", provider.address());
    for no_proxy in ["localhost,127.0.0.1", "*", &with_port] {
        let mut instance = Instance::new(&toml(&provider.base_url(), ""))?;
        instance.set_env("HTTP_PROXY", format!("http://{}", proxy.address()));
        instance.set_env("NO_PROXY", no_proxy);
        let gateway = TestGateway::of(instance).await?;
        gateway.decide(body("acme/far")).await?;
        ensure!(proxy.take_requests().is_empty(), "NO_PROXY={no_proxy}: the proxy was asked");
        provider.take_request()?;
    }
    Ok(())
}

#[tokio::test]
async fn unknown_form_in_no_proxy_is_reported_at_start_and_by_check() -> Result<()> {
    let mut instance = Instance::new(&toml("http://decider.invalid/v1", ""))?;
    instance.set_env("HTTP_PROXY", "http://127.0.0.1:9");
    instance.set_env("no_proxy", "localhost,decider.*");
    let checked = instance.run(&["config", "check"]).await?;
    let report = String::from_utf8_lossy(&checked.stdout).into_owned();
    ensure!(report.contains("NO_PROXY has the entry decider.*, which has no effect"), "{report}");
    let gateway = TestGateway::of(instance).await?;
    let log = gateway.server.output();
    ensure!(log.contains("NO_PROXY entry without effect") && log.contains("decider.*"), "{log}");
    ensure!(!log.contains("entry=\"localhost\""), "{log}");
    Ok(())
}

/// The text of an answer decides, not its headers; an unusable one costs what it reports, not its upper bound.
#[tokio::test]
async fn answer_in_another_wrapping_is_served_and_charged() -> Result<()> {
    let wrapped = |media_type: &str, answer: &str| {
        Behaviour::Raw(
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{answer}",
                answer.len()
            )
            .into(),
        )
    };
    let marked = format!("\u{feff}{ANSWER}");
    let provider = Upstream::start(wrapped("text/plain", ANSWER)).await?;
    let gateway = TestGateway::start(&toml(&provider.base_url(), "")).await?;
    for (media_type, answer) in
        [("text/plain", ANSWER), ("text/json", &marked), ("application/octet-stream", ANSWER), ("text/html", &marked)]
    {
        provider.behave(wrapped(media_type, answer));
        let decision = gateway.decide(body("acme/far")).await?;
        ensure!(decision["usage"]["input_tokens"] == 429, "{media_type}: {decision}");
        let head = provider.take_request()?.head.to_ascii_lowercase();
        ensure!(head.contains("accept-encoding: identity\r\n"), "{head}");
    }
    provider.behave(wrapped("text/plain", r#"{"answers":{"z":1},"usage":{"input_tokens":7,"output_tokens":1}}"#));
    let reply = gateway.server.decide(&gateway.inference.secret, body("acme/far")).await?;
    let metadata = &reply.envelope(502)?["error"]["metadata"];
    ensure!(metadata["usage_source"] == "reported", "{metadata}");
    Ok(())
}

#[tokio::test]
async fn provider_receives_key_from_file_and_configured_path() -> Result<()> {
    let provider = Upstream::start(Behaviour::json(ANSWER)).await?;
    let more = "api_key = \"file:far.key\"\npath = \"decisions\"";
    let instance = Instance::new(&toml(&provider.base_url(), more))?;
    let said = instance.refused_serving().await?;
    ensure!(
        said.contains("the provider far") && said.contains("api_key names"),
        "the missing file is not reported: {said}"
    );
    ensure!(!said.contains("far.key"), "what may be a secret in the wrong place is repeated: {said}");
    std::fs::write(instance.path().join("far.key"), "far-secret-0001\n")?;
    let gateway = TestGateway::of(instance).await?;
    gateway.decide(body("acme/far")).await?;
    let head = provider.take_request()?.head;
    ensure!(head.starts_with("POST /v1/decisions HTTP/1.1"), "{head}");
    ensure!(head.to_ascii_lowercase().contains("authorization: bearer far-secret-0001\r\n"), "{head}");
    Ok(())
}

#[tokio::test]
async fn provider_without_tls_returns_502_when_tls_is_expected() -> Result<()> {
    let provider = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = TestGateway::start(&toml(&provider.base_url().replace("http:", "https:"), "")).await?;
    gateway
        .server
        .decide(&gateway.inference.secret, body("acme/far"))
        .await?
        .error(502, "Provider cannot be reached: far: ")?;
    ensure!(provider.take_requests().is_empty(), "something was sent in the clear");
    Ok(())
}

#[tokio::test]
async fn configuration_check_reads_client_certificates() -> Result<()> {
    let authority = Authority::create()?;
    let (client, other) = (authority.issue("client")?, authority.issue("other")?);
    let lines = |key: &Path| {
        let certificate = client.certificate.display();
        format!("client_cert_file = \"{certificate}\"\nclient_key_file = \"{}\"", key.display())
    };
    let instance = Instance::new(&toml("https://127.0.0.1:9/v1", &lines(&client.key)))?;
    let checked = instance.run(&["config", "check"]).await?;
    ensure!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let rates = |key: &Path| format!("[rate_limits]\nurl = \"rediss://127.0.0.1:9\"\n{}\n", lines(key));
    let telemetry = |key: &Path| {
        format!("[telemetry]\notlp_url = \"https://127.0.0.1:9\"\n{}\n", lines(key).replace("client_", "otlp_client_"))
    };
    for (wrong, expected) in [
        (toml("https://127.0.0.1:9/v1", &lines(&other.key)), "cannot be used together"),
        (
            toml("https://127.0.0.1:9/v1", &lines(&client.certificate)),
            "client_key_file holds no unencrypted private key",
        ),
        (rates(&other.key), "rate_limits.client_key_file cannot be used"),
        (telemetry(&other.key), "telemetry.otlp_client_key_file cannot be used together"),
    ] {
        instance.configure(&wrong)?;
        let checked = instance.run(&["config", "check"]).await?;
        let report = String::from_utf8_lossy(&checked.stdout).into_owned();
        ensure!(!checked.status.success() && report.contains(expected), "{wrong}: {report}");
    }
    Ok(())
}
