//! Lists of models, endpoints and providers.

use std::sync::Arc;
use std::time::Duration;

use domain::error::StoreError;
use domain::guardrail::{Guardrail, GuardrailName, GuardrailPolicies, GuardrailRules, MockGuardrailPolicies, Policy};
use domain::ids::WorkspaceId;
use domain::model::{AliasTarget, Model, Pricing};
use domain::money::Price;
use domain::routing::{AttemptFailure, AttemptReport, DataPolicy, Observation};
use domain::testing::{MemoryCatalogue, SequentialIds};
use serde_json::{Value, json};

use super::client::Reply;
use super::gateway::{BASE, Caller, Gateway, Setup, guardrail, now, workspace};

fn ids(reply: &Reply) -> Vec<String> {
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    let json = reply.json();
    json["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// Sends a request without the base path.
async fn outside(gateway: &Gateway, path: &str) -> Reply {
    gateway.send("GET", path, &[("Authorization", &Caller::Inference.bearer())], b"").await
}

#[tokio::test]
async fn model_list_has_every_client_format() {
    let gateway = Setup::new().await.start();
    let listed = outside(&gateway, "/v1/models?include_uncallable=true").await;
    assert_eq!(ids(&listed), ["acme/judge", "acme/idle", "acme/varies"]);
    let json = listed.json();
    assert_eq!(
        (&json["object"], &json["total_count"], &json["links"]),
        (&"list".into(), &3.into(), &json!({"next": null}))
    );
    let mut row = gateway.get(Caller::Inference, "/model/acme/judge", &[]).await.json()["data"].clone();
    row["object"] = "model".into();
    row["owned_by"] = "acme".into();
    assert_eq!(json["data"][0], row);
    let named = |name: &str| json!({"name": name, "description": "", "release_date": "1970-01-01"});
    assert_eq!(json["models"], json!([named("acme/judge"), named("acme/idle"), named("acme/varies")]));
    assert!(listed.header("x-typesafe-request-id").is_some());
    let text = gateway.get(Caller::Management, "/models", &[]).await;
    assert_eq!(ids(&text), ["acme/writer"]);
    assert_eq!(text.json()["models"], json!([named("acme/judge")]), "callable ones, independent of the filter");
}

#[tokio::test]
async fn vendor_list_shows_callable_models_unless_all_are_requested() {
    let gateway = Setup::new().await.start();
    let (callable, all) = (["acme/judge"].as_slice(), ["acme/judge", "acme/idle", "acme/varies"].as_slice());
    for (path, expected) in [
        ("/v1/models", callable),
        ("/v1/models?include_uncallable=false", callable),
        ("/v1/models?output_modalities=all", callable),
        ("/v1/models?include_uncallable=true", all),
        ("/api/v1/models?output_modalities=decisions", all),
        ("/api/v1/models?output_modalities=decisions&include_uncallable=true", all),
        ("/api/v1/models?output_modalities=decisions&include_uncallable=false", callable),
    ] {
        let listed = outside(&gateway, path).await;
        assert_eq!(ids(&listed), expected, "{path}");
        let json = listed.json();
        let names: Vec<&str> =
            json["models"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
        assert_eq!(names, if path.ends_with("true") { all } else { callable }, "{path}");
        assert_eq!(listed.json()["total_count"], expected.len(), "{path}");
    }
    let next = outside(&gateway, "/v1/models?limit=1&include_uncallable=true").await.json()["links"]["next"].clone();
    assert_eq!(next, "/v1/models?limit=1&offset=1&include_uncallable=true");
    outside(&gateway, "/v1/models?include_uncallable=yes").await.expect_error(400);
}

#[tokio::test]
async fn vendor_entry_is_a_callable_model_unless_all_are_requested() {
    let gateway = Setup::new().await.start();
    let listed = outside(&gateway, "/v1/models").await.json()["data"][0].clone();
    for path in ["acme/judge", "acme%2Fjudge", "judge", "Acme/JUDGE", "acme/judge:nitro"] {
        let below = outside(&gateway, &format!("/api/v1/models/{}", path.replace('/', "%2F"))).await;
        assert_eq!(below.json(), listed, "{path}");
        let entry = outside(&gateway, &format!("/v1/models/{path}")).await;
        assert_eq!((entry.status, entry.json()), (200, listed.clone()), "{path}");
        assert!(entry.header("x-typesafe-request-id").is_some() && entry.header("etag").is_some());
    }
    for path in ["acme/idle", "acme/writer", "acme/varies", "idle"] {
        let reply = outside(&gateway, &format!("/v1/models/{path}")).await;
        let message = reply.expect_error(404);
        assert!(message.starts_with("this model cannot be called"), "{path}: {message}");
        assert!(message.ends_with("; nearest callable models: acme/judge"), "{path}: {message}");
        assert_eq!(reply.json()["error"]["metadata"]["nearest"], json!(["acme/judge"]));
        if path != "idle" {
            let entry = outside(&gateway, &format!("/v1/models/{path}?include_uncallable=true")).await;
            assert_eq!((entry.status, &entry.json()["id"]), (200, &path.into()));
        }
    }
    let unknown = outside(&gateway, "/v1/models/acme/jugde").await.expect_error(404);
    assert_eq!(unknown, "Model not found; nearest callable models: acme/judge");
    for path in ["/v1/models/zzzzzzzzzzzzzzzzzzzzzzzz", "/v1/models/%ff", "/v1/models/acme/%ff"] {
        outside(&gateway, path).await.expect_error(404);
    }
    gateway.send("GET", "/v1/models/acme/judge", &[], b"").await.expect_error(401);
}

#[tokio::test]
async fn list_length_equals_count() {
    let gateway = Setup::new().await.start();
    for query in [
        "",
        "?output_modalities=text",
        "?output_modalities=Decisions",
        "?output_modalities=decisions%2Ctext",
        "?output_modalities=image",
        "?output_modalities=all",
        "?output_modalities=all&q=judge",
        "?output_modalities=decisions&providers=first",
        "?output_modalities=all&model_authors=acme,other&context=0",
        "?output_modalities=all&max_price=0.042&max_output_price=0.5",
        "?output_modalities=all&input_modalities=text",
    ] {
        let count = gateway.get(Caller::Inference, &format!("/models/count{query}"), &[]).await.json();
        for path in ["/api/v1/models", "/v1/models"] {
            if query.contains("output") || path == "/api/v1/models" {
                let all = if query.is_empty() { "?" } else { "&" }.to_owned() + "include_uncallable=true";
                let listed = outside(&gateway, &format!("{path}{query}{all}")).await;
                assert_eq!(ids(&listed).len(), count["data"]["count"], "{path}{query}");
                assert_eq!(listed.json()["total_count"], count["data"]["count"], "{path}{query}");
            }
        }
    }
    for query in ["output_modalities=file", "output_modalities=", "output_modalities=text&output_modalities=text"] {
        gateway.get(Caller::Inference, &format!("/models?{query}"), &[]).await.expect_error(400);
    }
}

#[tokio::test]
async fn list_is_filtered_sorted_and_then_paged() {
    let priced = |number: usize| {
        let price = format!("0.00000{}", number % 7 + 1).parse().unwrap();
        let id = format!("acme/m-{number:02}");
        Model { created: 9, ..Model::minimal(id.parse().unwrap(), Pricing::per_token(price, Price::ZERO)) }
    };
    let mut setup = Setup::new().await;
    setup.catalogue = Arc::new(MemoryCatalogue::new((0..21).map(priced).collect()));
    let gateway = setup.start();
    let mut path =
        "/api/v1/models?output_modalities=decisions&q=M-1&max_price=5.0&sort=pricing-high-to-low&limit=3".to_owned();
    let mut all = Vec::new();
    loop {
        let page = outside(&gateway, &path).await;
        assert_eq!(page.json()["total_count"], 7, "{path}");
        all.extend(ids(&page));
        let Some(next) = page.json()["links"]["next"].as_str().map(str::to_owned) else { break };
        path = next;
    }
    let numbers: Vec<&str> = all.iter().map(|id| id.trim_start_matches("acme/m-")).collect();
    assert_eq!(numbers, ["11", "18", "10", "17", "16", "15", "14"]);
    for (sort, message) in [
        (
            "most-popular",
            "sort \"most-popular\" is not supported. Valid values are: newest, context-high-to-low, \
                          pricing-low-to-high, pricing-high-to-low",
        ),
        (
            "",
            "sort \"\" is not supported. Valid values are: newest, context-high-to-low, pricing-low-to-high, \
              pricing-high-to-low",
        ),
    ] {
        for path in ["/api/v1/models", "/v1/models"] {
            assert_eq!(outside(&gateway, &format!("{path}?sort={sort}")).await.expect_error(400), message, "{path}");
        }
    }
}

#[tokio::test]
async fn vendor_list_ignores_parameters_of_vendor_clients() {
    let gateway = Setup::new().await.start();
    assert_eq!(ids(&outside(&gateway, "/v1/models?api-version=2026-01-01&q=judge").await), ["acme/judge"]);
    assert_eq!(outside(&gateway, "/v1/models?zdr=true").await.expect_error(400), "zdr is not supported");
    let message = outside(&gateway, "/api/v1/models?api-version=1").await.expect_error(400);
    assert_eq!(message, "unknown query parameter \"api-version\"");
}

#[tokio::test]
async fn next_links_visit_all_pages() {
    let rows = (0..1_203).map(|number| {
        Model::minimal(format!("acme/m-{number}").parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO))
    });
    let mut setup = Setup::new().await;
    setup.catalogue = Arc::new(MemoryCatalogue::new(rows.collect()));
    let gateway = setup.start();
    let mut path = "/api/v1/models?limit=500&offset=0&output_modalities=decisions,text".to_owned();
    let (mut all, mut lengths) = (Vec::new(), Vec::new());
    loop {
        let page = outside(&gateway, &path).await;
        assert_eq!(page.json()["total_count"], 1_203);
        let ids = ids(&page);
        lengths.push(ids.len());
        all.extend(ids);
        let Some(next) = page.json()["links"]["next"].as_str().map(str::to_owned) else { break };
        path = next;
    }
    assert_eq!(lengths, [500, 500, 203]);
    assert_eq!(all, (0..1_203).map(|number| format!("acme/m-{number}")).collect::<Vec<_>>());
    assert_eq!(ids(&outside(&gateway, "/v1/models?include_uncallable=true").await).len(), 1_203);
    let last = outside(&gateway, "/v1/models?limit=2&offset=1202&include_uncallable=true").await;
    assert_eq!(ids(&last), ["acme/m-1202"]);
    for query in ["limit=0", "limit=1001", "limit=-1", "offset=x", "limit=1&limit=1", "offset="] {
        gateway.get(Caller::Inference, &format!("/models?{query}"), &[]).await.expect_error(400);
    }
}

#[tokio::test]
async fn lists_have_etags_and_need_a_key() {
    let gateway = Setup::new().await.start();
    let bearer = Caller::Inference.bearer();
    for path in [
        "/v1/models",
        "/v1/models/judge",
        "/api/v1/models?limit=1",
        "/api/v1/models/acme/judge/endpoints",
        "/api/v1/providers",
    ] {
        let first = outside(&gateway, path).await;
        let etag = first.header("etag").unwrap();
        let again = gateway.send("GET", path, &[("Authorization", &bearer), ("If-None-Match", etag)], b"").await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        let head = gateway.send("HEAD", path, &[("Authorization", &bearer)], b"").await;
        assert_eq!((head.status, head.header("etag")), (200, Some(etag)), "{path}");
        gateway.send("GET", path, &[], b"").await.expect_error(401);
        gateway.send("POST", path, &[("Authorization", &bearer)], b"").await.expect_error(405);
    }
}

#[tokio::test]
async fn model_lists_accept_vendor_key_headers() {
    let gateway = Setup::new().await.start();
    let bearer = Caller::Inference.bearer();
    let key = ("X-Api-Key", bearer.trim_start_matches("Bearer "));
    for path in ["/v1/models", "/v1/models/judge", "/api/v1/models"] {
        let reply = gateway.send("GET", path, &[key], b"").await;
        assert_eq!(
            (reply.status, reply.header("x-typesafe-request-id")),
            (200, reply.header("x-request-id")),
            "{path}"
        );
    }
    gateway.send("GET", "/api/v1/providers", &[key], b"").await.expect_error(401);
}

#[tokio::test]
async fn vendor_list_precedes_equal_base_path() {
    let mut setup = Setup::new().await;
    setup.settings.base_path = "/v1".to_owned();
    let gateway = setup.start();
    assert_eq!(ids(&outside(&gateway, "/v1/models").await), ["acme/judge"]);
    assert_eq!(outside(&gateway, "/v1/models/count").await.json()["data"]["count"], 1);
}

fn health(reply: &Reply) -> Vec<(Value, Value)> {
    let json = reply.json();
    let endpoints = json["data"]["endpoints"].as_array().unwrap();
    endpoints.iter().map(|endpoint| (endpoint["tag"].clone(), endpoint["health"]["throttled"].clone())).collect()
}

#[tokio::test]
async fn model_endpoints_include_health() {
    let target = AliasTarget { name: "Judge".to_owned(), slug: "acme/judge".parse().unwrap() };
    let row = |id: &str| Model::minimal(id.parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO));
    let alias = Model { alias_target: Some(target), ..row("~acme/judge-latest") };
    let mut setup = Setup::new().await;
    setup.catalogue = Arc::new(MemoryCatalogue::new(vec![row("acme/judge"), row("acme/idle"), alias]));
    let board = Arc::clone(&setup.health);
    let observation = Observation::from(&AttemptFailure::from_status(401, None));
    let workspace = WorkspaceId::from_uuid(SequentialIds::uuid(1));
    board.report(&AttemptReport { endpoint: 1, workspace, began: Duration::ZERO, observation }, Duration::ZERO);
    let gateway = setup.start();
    for path in ["acme/judge", "ACME/Judge%3Anitro", "~acme/judge-latest"] {
        let reply = gateway.get(Caller::Management, &format!("/models/{path}/endpoints"), &[]).await;
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(reply.json()["data"]["id"], "acme/judge");
        let expected = [("first".into(), false.into()), ("second".into(), true.into())];
        assert_eq!(health(&reply), expected, "{path}");
    }
    let details = gateway.get(Caller::Inference, "/model/acme/judge", &[]).await.json();
    let details = details["data"]["links"]["details"].as_str().unwrap().to_owned();
    assert_eq!(health(&outside(&gateway, &details).await).len(), 2, "the row's link leads here");
    let idle = gateway.get(Caller::Inference, "/models/acme/idle/endpoints", &[]).await.json();
    assert_eq!(idle["data"]["endpoints"], json!([]));
    for path in ["acme/unknown", "acme/%ff", "acme%2Fjudge/x"] {
        gateway.get(Caller::Inference, &format!("/models/{path}/endpoints"), &[]).await.expect_error(404);
    }
    let providers = outside(&gateway, &format!("{BASE}/providers")).await.json();
    let provider = |slug: &str, healthy: usize, throttled: usize| {
        json!({
            "name": format!("The {slug}"), "slug": slug, "privacy_policy_url": null, "terms_of_service_url": null,
            "status_page_url": null, "headquarters": null, "datacenters": null, "endpoint_count": 1,
            "paused": false, "health": {"healthy": healthy, "throttled_for_some": 0, "throttled": throttled},
        })
    };
    assert_eq!(providers, json!({"data": [provider("first", 1, 0), provider("second", 0, 1)]}));
}

fn policies(rules: GuardrailRules) -> Arc<dyn GuardrailPolicies> {
    let guardrail = Guardrail {
        id: guardrail(),
        workspace_id: workspace(1),
        name: GuardrailName::try_new("g").unwrap(),
        budget: None,
        rules,
        version: 1,
        created_at: now(),
        updated_at: None,
    };
    let policy = Arc::new(Policy::compile(vec![guardrail]).unwrap());
    let mut policies = MockGuardrailPolicies::new();
    policies.expect_find().returning(move |_| Ok(Some(Arc::clone(&policy))));
    Arc::new(policies)
}

fn decision_models(reply: &Reply) -> Vec<String> {
    let json = reply.json();
    json["models"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn permitted_models_are_those_that_the_guardrails_allow() {
    const ALL: &str = "/models/user?output_modalities=all";
    let rules = GuardrailRules { ignored_models: Some(vec!["acme/judge".to_owned()]), ..GuardrailRules::default() };
    let gateway = Setup { policies: policies(rules), ..Setup::new().await }.start();
    let permitted = gateway.get(Caller::Inference, ALL, &[]).await;
    assert_eq!(ids(&permitted), ["acme/idle", "acme/varies", "acme/writer"]);
    assert_eq!((&permitted.json()["total_count"], decision_models(&permitted)), (&3.into(), vec![]));
    let all = gateway.get(Caller::Management, ALL, &[]).await;
    assert_eq!(ids(&all), ["acme/judge", "acme/idle", "acme/varies", "acme/writer"]);
    let listed = gateway.get(Caller::Management, "/models?output_modalities=all", &[]).await;
    assert_eq!(all.json(), listed.json(), "the body of the list");
    let first = gateway.get(Caller::Inference, &format!("{ALL}&sort=pricing-high-to-low&limit=1"), &[]).await;
    assert_eq!((ids(&first), &first.json()["total_count"]), (vec!["acme/writer".to_owned()], &3.into()));
    let next = "/api/v1/models/user?limit=1&offset=1&output_modalities=all&sort=pricing%2Dhigh%2Dto%2Dlow";
    assert_eq!(first.json()["links"]["next"], next);
    assert_eq!(ids(&outside(&gateway, next).await), ["acme/idle"]);
    assert_eq!(ids(&gateway.get(Caller::Inference, "/models/user", &[]).await), ["acme/writer"], "text by default");
    for query in ["limit=0", "zdr=true", "outputs=all", "sort=throughput-high-to-low", "q="] {
        gateway.get(Caller::Inference, &format!("/models/user?{query}"), &[]).await.expect_error(400);
    }
    gateway.send("GET", "/api/v1/models/user", &[], b"").await.expect_error(401);
}

#[tokio::test]
async fn permitted_models_need_an_endpoint_that_every_rule_permits() {
    let rules = |ignored: &[&str]| GuardrailRules {
        ignored_providers: Some(ignored.iter().map(|&slug| slug.to_owned()).collect()),
        ..GuardrailRules::default()
    };
    for (ignored, expected) in [(&["first"][..], vec!["acme/judge"]), (&["first", "second"], vec![])] {
        let gateway = Setup { policies: policies(rules(ignored)), ..Setup::new().await }.start();
        let path = "/models/user?output_modalities=decisions&include_uncallable=false";
        let permitted = gateway.get(Caller::Inference, path, &[]).await;
        assert_eq!(
            (ids(&permitted), decision_models(&permitted)),
            (expected.iter().map(ToString::to_string).collect(), expected.iter().map(ToString::to_string).collect())
        );
    }
}

#[tokio::test]
async fn permitted_models_are_503_without_the_guardrails() {
    let mut policies = MockGuardrailPolicies::new();
    policies.expect_find().returning(|_| Err(StoreError::unavailable("db-7")));
    let gateway = Setup { policies: Arc::new(policies), ..Setup::new().await }.start();
    gateway.get(Caller::Inference, "/models/user", &[]).await.expect_error(503);
    assert_eq!(gateway.get(Caller::Management, "/models/user", &[]).await.status, 200);
}

#[tokio::test]
async fn zero_retention_endpoints_have_the_records_of_their_models() {
    let mut setup = Setup::new().await;
    setup.endpoints[1].data_policy = DataPolicy { zdr: true, collects: false };
    let gateway = setup.start();
    for caller in [Caller::Inference, Caller::Management] {
        let listed = gateway.get(caller, "/endpoints/zdr", &[]).await.json();
        let of_model = gateway.get(caller, "/models/acme/judge/endpoints", &[]).await.json();
        assert_eq!(listed, json!({"data": [of_model["data"]["endpoints"][1]]}));
        assert_eq!((&listed["data"][0]["zdr"], &listed["data"][0]["tag"]), (&json!(true), &json!("second")));
    }
    let unknown = gateway.get(Caller::Inference, "/endpoints/zdr?limit=1", &[]).await.expect_error(400);
    assert_eq!(unknown, "unknown query parameter \"limit\"");
    gateway.send("GET", "/api/v1/endpoints/zdr", &[], b"").await.expect_error(401);
    let none = Setup::new().await.start().get(Caller::Inference, "/endpoints/zdr", &[]).await;
    assert_eq!(none.json(), json!({"data": []}));
}
