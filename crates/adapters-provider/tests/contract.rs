//! The contract of a provider: each wire of one request against a scripted server, and the sandbox.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use adapters_provider::{ProviderRouter, ProviderSettings, SandboxProvider};
use domain::routing::Wire;
use domain::secret::SecretString;
use domain::testing::contract::{Providers, RemoteProviders};
use support::scripted::{OPAQUE, SUPPORTED, ScriptedServer};

const SYSTEM_ONE: &str = support::ANSWER;
const OPENAI: &str = r#"{"answers":[{"type":"predicate","name":"a","probability":0.5}]}"#;
const GEMINI: &str = r#"{"answers":{"a":{"type":"noul","noul":0.5,"confidence":0.5}}}"#;
const SGLANG: &str = r#"{"answers":{"a":{"type":"yes_no","probabilities":{"yes":0.5,"no":0.5}}}}"#;

/// Items of another wire, which the System One wire does not support.
const ITEMS: &str = r#"{"model":"acme/judge","state":"s","questions":{"a":{"type":"noul","instructions":"?"}},"state_form":"openai","media_in_state":true}"#;
const BOX: &str = r#"{"model":"acme/judge","state":"s","questions":{"a":{"type":"box","instructions":"?"}}}"#;

async fn remote(wire: Wire, answer: &'static str, unsupported: &str) -> RemoteProviders {
    let (server, base_url) = ScriptedServer::start(answer).await;
    let api_key = Some(SecretString::new("sk-provider"));
    let settings = ProviderSettings { api_key, ..ProviderSettings::new("acme".parse().unwrap(), base_url, wire) };
    let provider = support::provider_of(&support::settings(), wire, settings);
    server.subject(provider, support::endpoint_of(wire), unsupported)
}

/// Defines a module with both suites for a provider.
macro_rules! suites {
    ($name:ident, $remote:expr) => {
        mod $name {
            use super::*;

            async fn remote_provider() -> RemoteProviders {
                $remote.await
            }

            async fn provider() -> Providers {
                remote_provider().await.providers
            }

            domain::decision_provider_contract!(
                #[tokio::test]
                crate::$name::provider
            );
            domain::remote_provider_contract!(
                #[tokio::test]
                crate::$name::remote_provider
            );
        }
    };
}

suites!(system_one, remote(Wire::SystemOne, SYSTEM_ONE, ITEMS));
suites!(openai_decisions, remote(Wire::OpenAiDecisions, OPENAI, OPAQUE));
suites!(gemini_decisions, remote(Wire::GeminiDecisions, GEMINI, OPAQUE));
suites!(sglang_decisions, remote(Wire::SglangDecisions, SGLANG, OPAQUE));
suites!(router, routed());

/// Returns a provider behind the router.
async fn routed() -> RemoteProviders {
    let mut subject = remote(Wire::SystemOne, SYSTEM_ONE, ITEMS).await;
    let slug = subject.providers.endpoint.provider.clone();
    let providers = HashMap::from([(slug, Arc::clone(&subject.providers.provider))]);
    subject.providers.provider = Arc::new(ProviderRouter::new(providers));
    subject
}

async fn sandbox() -> Providers {
    Providers {
        provider: Arc::new(SandboxProvider::new()),
        endpoint: Arc::new(SandboxProvider::endpoints().remove(0)),
        supported: support::provider_input(SUPPORTED),
        unsupported: support::provider_input(BOX),
        keep: Box::new(()),
    }
}

mod in_this_process {
    domain::decision_provider_contract!(
        #[tokio::test]
        crate::sandbox
    );
}
