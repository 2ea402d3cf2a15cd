//! Provider connections: proxies, keys from files, and other paths.

use anyhow::{Result, ensure};
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
    let mut instance = Instance::new(&toml(&provider.base_url(), ""))?;
    instance.set_env("HTTP_PROXY", format!("http://{}", proxy.address()));
    instance.set_env("NO_PROXY", "localhost,127.0.0.1");
    let gateway = TestGateway::of(instance).await?;
    gateway.decide(body("acme/far")).await?;
    ensure!(proxy.take_requests().is_empty(), "the proxy was asked");
    provider.take_request()?;
    Ok(())
}

#[tokio::test]
async fn provider_receives_key_from_file_and_configured_path() -> Result<()> {
    let provider = Upstream::start(Behaviour::json(ANSWER)).await?;
    let more = "api_key_file = \"far.key\"\npath = \"decisions\"";
    let instance = Instance::new(&toml(&provider.base_url(), more))?;
    let said = instance.refused_serving().await?;
    ensure!(
        said.contains("the provider far") && said.contains("api_key_file"),
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
