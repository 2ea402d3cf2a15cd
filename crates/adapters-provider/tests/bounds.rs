//! Outbound requests stay within the bound that is computed before.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use adapters_provider::{ProviderRouter, ProviderSettings, SandboxProvider};
use domain::decision::{AssetPart, DecisionProvider, NeverDisconnects, ProviderAnswer, ProviderCall, SentBytes};
use domain::question::ProviderInput;
use domain::routing::{AttemptFailure, AttemptFailureKind, Endpoint, Wire};
use proptest::prelude::*;
use support::provider_inputs::provider_input;
use support::{AMPLE, Upstream};
use tokio::runtime::Runtime;
use wires::provider::ModelLocation;
use wires::system_one::ResponseWrapper;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// Every wire that needs one request, in every dialect, to a server that rejects all requests after reading them.
static PROVIDERS: LazyLock<Vec<(Wire, Arc<dyn DecisionProvider>)>> = LazyLock::new(|| {
    RUNTIME.block_on(async {
        let refusal = "HTTP/1.1 400 .\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        let base_url = Upstream::answering(refusal).await.base_url();
        let settings = |wire| ProviderSettings::new("acme".parse().unwrap(), &base_url, wire);
        let mut all = Vec::new();
        for response_wrapper in [ResponseWrapper::None, ResponseWrapper::WorkersAi, ResponseWrapper::Databricks] {
            all.push((Wire::SystemOne, ProviderSettings { response_wrapper, ..settings(Wire::SystemOne) }));
        }
        for wire in [Wire::OpenAiDecisions, Wire::GeminiDecisions, Wire::SglangDecisions] {
            for model_location in [ModelLocation::Body, ModelLocation::Path] {
                let path =
                    if model_location == ModelLocation::Path { "/{model}".to_owned() } else { settings(wire).path };
                all.push((wire, ProviderSettings { model_location, path, ..settings(wire) }));
            }
        }
        let provider = |(wire, settings)| (wire, support::provider_of(&support::settings(), wire, settings));
        all.into_iter().map(provider).collect()
    })
});

struct Measured {
    bound: u64,
    sent: u64,
    ended: Result<ProviderAnswer, AttemptFailure>,
}

async fn measure(
    provider: &dyn DecisionProvider,
    endpoint: &Arc<Endpoint>,
    provider_input: &Arc<ProviderInput>,
) -> Measured {
    let bound = provider.outbound_bytes(endpoint, provider_input);
    let sent = SentBytes::default();
    let call = ProviderCall {
        endpoint: Arc::clone(endpoint),
        provider_input: Arc::clone(provider_input),
        timeout: AMPLE,
        client: Arc::new(NeverDisconnects),
        sent: sent.clone(),
    };
    let ended = provider.decide(call).await;
    Measured { bound, sent: sent.get(), ended }
}

fn endpoint(wire: Wire, upstream_model: &str) -> Arc<Endpoint> {
    Arc::new(Endpoint { upstream_model: upstream_model.into(), ..support::endpoint_of(wire) })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: domain::testing::property_cases(96, ProptestConfig::default().cases), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn outbound_bytes_is_length_of_request(asked in provider_input(), model in "[a-z\"\\\\/é-]{1,9}") {
        for (wire, provider) in PROVIDERS.iter() {
            let Measured { bound, sent, ended } =
                RUNTIME.block_on(measure(provider.as_ref(), &endpoint(*wire, &model), &asked));
            prop_assert_eq!(bound, sent, "{:?}", wire);
            match ended {
                Ok(answer) => prop_assert_eq!((answer.sent_bytes, sent), (0, 0), "nothing was left to ask"),
                Err(failure) => prop_assert_eq!(failure.sent_bytes, sent),
            }
        }
    }

    #[test]
    fn outbound_bytes_includes_multipart_headers(sizes in prop::collection::vec(0_usize..5000, 1..4)) {
        let parts = sizes.iter().enumerate().map(|(place, size)| AssetPart {
            name: format!("part{place}"),
            data: vec![b'-'; *size].into(),
            media_type: (place % 2 == 0).then(|| "image/png".to_owned()),
        });
        let assets: Vec<String> = (0..sizes.len())
            .map(|place| format!(r#""a{place}":{{"media_type":"image/png","part":"part{place}"}}"#))
            .collect();
        let body = format!(
            r#"{{"model":"m","state":"s","questions":{{"a":{{"type":"noul","instructions":"?"}}}},"assets":{{{}}}}}"#,
            assets.join(",")
        );
        let asked = support::request_with(&body, parts.collect()).provider_input;
        let (wire, provider) = &PROVIDERS[0];
        let measured = RUNTIME.block_on(measure(provider.as_ref(), &endpoint(*wire, "m"), &asked));
        prop_assert_eq!(measured.bound, measured.sent);
        prop_assert!(measured.sent > sizes.iter().sum::<usize>() as u64);
    }

    #[test]
    fn outbound_bytes_bounds_sandbox_input(asked in provider_input()) {
        let endpoint = Arc::new(SandboxProvider::endpoints().remove(0));
        let measured = RUNTIME.block_on(measure(&SandboxProvider::new(), &endpoint, &asked));
        prop_assert_eq!(measured.ended.unwrap().sent_bytes, measured.bound);
    }
}

#[test]
fn outbound_bytes_is_zero_for_unsupported_input() {
    let body = r#"{"model":"m","state":"s","questions":"opaque"}"#;
    let asked = support::provider_input(body);
    for (wire, provider) in PROVIDERS.iter().filter(|(wire, _)| !wire.supports_opaque_questions()) {
        let measured = RUNTIME.block_on(measure(provider.as_ref(), &endpoint(*wire, "m"), &asked));
        assert_eq!((measured.bound, measured.sent), (0, 0), "{wire:?}");
        assert_eq!(measured.ended.unwrap_err().kind, AttemptFailureKind::RejectedByProvider);
    }
}

#[test]
fn router_forwards_outbound_bytes_to_provider() {
    let (wire, provider) = &PROVIDERS[0];
    let router = ProviderRouter::new(HashMap::from([("acme".parse().unwrap(), Arc::clone(provider))]));
    let asked = support::call().provider_input;
    let known = endpoint(*wire, "m");
    assert_eq!(router.outbound_bytes(&known, &asked), provider.outbound_bytes(&known, &asked));
    let nobody = Endpoint { provider: "nobody".parse().unwrap(), ..(*known).clone() };
    assert_eq!(router.outbound_bytes(&nobody, &asked), 0, "nobody is called");
}
