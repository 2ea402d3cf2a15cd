//! The common fixture: a running gateway and a key of each kind.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tollgate_tests::{Call, Instance, Key, Server, Upstream};

/// A typed request that the sandbox and every provider of these tests can answer.
pub const QUESTIONS: &str = r#"{"refund":{"type":"noul","instructions":"Does the writer want a refund?"}}"#;

/// The response of a working provider to [`QUESTIONS`].
pub const ANSWER: &str = r#"{"model":"judge-1.0","answers":{"refund":{"type":"noul","noul":0.97}},"usage":{"input_tokens":429,"output_tokens":31}}"#;

/// Returns a Decisions body for `model` with [`QUESTIONS`] and a state.
pub fn body(model: &str) -> String {
    format!(
        r#"{{"model":"{model}","questions":{QUESTIONS},"state":"It smokes. I want my money back.",
            "provider":{{"order":["alpha","beta"]}}}}"#
    )
}

/// Returns a Decisions body for the sandbox with further members, such as `"user":"u"`.
pub fn body_with(members: &str) -> String {
    format!(r#"{{"model":"sandbox/decider","questions":{QUESTIONS},"state":"It smokes.",{members}}}"#)
}

/// The longest time until a change is in force on every server.
pub const PROMISED: Duration = Duration::from_secs(1);

/// Repeats a call until it has this status. Returns the time from `since` to the last response with outdated data. A
/// server on a busy machine may return 503 in between, as its data may be outdated.
pub async fn outdated_for(server: &Server, call: &Call, status: u16, since: Instant) -> Result<Duration> {
    let mut outdated = Duration::ZERO;
    loop {
        let sent = since.elapsed();
        let reply = server.send(call).await?;
        if reply.status == status {
            return Ok(outdated);
        }
        if reply.status != 503 {
            outdated = sent;
        }
        ensure!(since.elapsed() < Duration::from_secs(20), "still {} instead of {status}", reply.status);
        sleep(Duration::from_millis(5)).await;
    }
}

pub struct TestGateway {
    pub instance: Instance,
    pub server: Server,
    pub inference: Key,
    pub management: Key,
}

impl TestGateway {
    /// Starts a gateway with this configuration.
    pub async fn start(toml: &str) -> Result<Self> {
        let mut instance = Instance::new(toml)?;
        instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
        Self::of(instance).await
    }

    /// Starts a gateway from an installation.
    pub async fn of(instance: Instance) -> Result<Self> {
        let server = instance.serve().await?;
        let inference = instance.inference_key().await?;
        let management = instance.management_key().await?;
        Ok(Self { instance, server, inference, management })
    }

    /// Starts a gateway with the providers `alpha` and `beta`; the first serves `acme/alone`, and both serve
    /// `acme/pair` in this order.
    pub async fn with_providers(alpha: &Upstream, beta: &Upstream, attempt_timeout_ms: u64) -> Result<Self> {
        Self::start(&providers_toml(&alpha.base_url(), &beta.base_url(), attempt_timeout_ms)).await
    }

    /// Starts a gateway like [`TestGateway::with_providers`] that offers the sandbox, too.
    pub async fn with_providers_and_sandbox(
        alpha: &Upstream,
        beta: &Upstream,
        attempt_timeout_ms: u64,
    ) -> Result<Self> {
        let providers = providers_toml(&alpha.base_url(), &beta.base_url(), attempt_timeout_ms);
        Self::start(&format!("[sandbox]\nenabled = true\n{providers}")).await
    }

    /// Sends a Decisions request with the inference key, which must succeed.
    pub async fn decide(&self, body: impl AsRef<[u8]>) -> Result<Value> {
        self.server.decide(&self.inference.secret, body).await?.ok()
    }
}

/// Returns a configuration like [`providers_toml`] with separate models for each case of a test, so that throttling
/// does not affect other cases: `acme/alone-3`, `acme/pair-3`.
pub fn providers_toml_of_cases(alpha: &str, beta: &str, attempt_timeout_ms: u64, cases: usize) -> String {
    let models = [("alone", "alpha"), ("pair", "alpha"), ("pair", "beta")];
    let endpoints = (0..cases).flat_map(|case| models.map(|(model, provider)| (case, model, provider)));
    let endpoint = |(case, model, provider)| {
        format!(
            "[[endpoints]]\nmodel = \"acme/{model}-{case}\"\nprovider = \"{provider}\"\n\
             upstream_model = \"judge-1\"\ninput_usd_per_million_tokens = \"0.042\"\noutput_usd_per_million_tokens = \"0\"\n"
        )
    };
    providers_toml(alpha, beta, attempt_timeout_ms) + &endpoints.map(endpoint).collect::<String>()
}

pub fn providers_toml(alpha: &str, beta: &str, attempt_timeout_ms: u64) -> String {
    format!(
        r#"
[[providers]]
slug = "alpha"
name = "Alpha AI"
wire = "system-one"
base_url = "{alpha}"
api_key = "env:ALPHA_API_KEY"
attempt_timeout_ms = {attempt_timeout_ms}

[[providers]]
slug = "beta"
name = "Beta AI"
wire = "system-one"
base_url = "{beta}"
attempt_timeout_ms = {attempt_timeout_ms}

[[endpoints]]
model = "acme/alone"
provider = "alpha"
upstream_model = "judge-1"
input_usd_per_million_tokens = "0.042"
output_usd_per_million_tokens = "0"

[[endpoints]]
model = "acme/pair"
provider = "alpha"
upstream_model = "judge-1"
input_usd_per_million_tokens = "0.042"
output_usd_per_million_tokens = "0"

[[endpoints]]
model = "acme/pair"
provider = "beta"
upstream_model = "judge-1-b"
input_usd_per_million_tokens = "0.042"
output_usd_per_million_tokens = "0"
"#
    )
}

/// Sends a call and disconnects once the silent provider has received it; returns when the provider call is cancelled
/// as well.
pub async fn disconnect_early(call: &Call, address: SocketAddr, provider: &Upstream) -> Result<()> {
    tokio::select! {
        reply = call.send(address) => bail!("an answer came: {}", reply?.text()),
        arrived = provider.wait_for_request() => arrived?,
    }
    provider.wait_until_abandoned(1).await
}
