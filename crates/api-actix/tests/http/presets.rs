//! Presets: their versions, their changes, and requests that name them.

use domain::audit::AuditLog;
use serde_json::{Value, json};

use super::client::Reply;
use super::gateway::{Caller, Gateway, Setup, answer, guardrail, workspace};

const QUESTION: &str = r#"{"type":"noul","instructions":"Is it urgent?"}"#;
/// A request that names the preset of most tests.
const ASK: &str = r#"{"model":"@preset/triage","state":"It smokes.","questions":{}}"#;

fn in_workspace(path: &str) -> String {
    format!("{path}?workspace_id={}", workspace(1))
}

fn config(name: &str) -> String {
    format!(r#"{{"models":["acme/judge"],"questions":{{"{name}":{QUESTION}}}}}"#)
}

async fn add(gateway: &Gateway, slug: &str, body: &str) -> Reply {
    gateway.json(Caller::Management, "POST", &in_workspace(&format!("/presets/{slug}/decisions")), body).await
}

async fn patch(gateway: &Gateway, slug: &str, body: &Value) -> Reply {
    let path = in_workspace(&format!("/presets/{slug}"));
    gateway.json(Caller::Management, "PATCH", &path, &body.to_string()).await
}

#[tokio::test]
async fn unknown_models_are_rejected_by_name() {
    let gateway = Setup::answering([]).await.start();
    let before = entries(&gateway).await;
    let questions = format!(r#"{{"q":{QUESTION}}}"#);
    let stages = r#"[{"model":"acme/judge","accept":{"q":0.9}},{"model":"acme/writer"}]"#;
    for (models, name) in
        [(r#""model":"acme/jugde""#, "acme/jugde"), (&*format!(r#""stages":{stages}"#), "acme/writer")]
    {
        let added = add(&gateway, "triage", &format!(r#"{{{models},"questions":{questions}}}"#)).await;
        let expected = format!(r#""{name}" is not a model that answers Decisions requests"#);
        let message = added.expect_error(400);
        assert!(message.starts_with(&expected) && message.contains("acme/judge"), "{message}");
    }
    assert_eq!(entries(&gateway).await, before, "nothing was changed");
}

/// Returns a gateway with two versions of a preset.
async fn with_preset() -> Gateway {
    let gateway = Setup::answering([answer(r#"{"q":{"type":"noul","noul":0.5}}"#)]).await.start();
    for name in ["first", "q"] {
        let added = add(&gateway, "triage", &config(name)).await;
        assert_eq!(added.status, 200, "{}", String::from_utf8_lossy(&added.body));
    }
    gateway
}

async fn entries(gateway: &Gateway) -> usize {
    gateway.store.audit_log().newest(100).await.unwrap().len()
}

#[tokio::test]
async fn every_key_of_the_workspace_reads_presets_and_versions() {
    let gateway = with_preset().await;
    let read = async |caller: Caller, path: &str| {
        let path = if matches!(caller, Caller::Management) { in_workspace(path) } else { path.to_owned() };
        gateway.get(caller, &path, &[]).await
    };
    for caller in [Caller::Management, Caller::Inference] {
        let one = read(caller, "/presets/triage").await;
        assert_eq!((one.status, one.header("cache-control")), (200, Some("private, no-cache")));
        assert!(one.header("etag").is_some());
        let data = one.json()["data"].clone();
        assert_eq!(
            (&data["slug"], &data["status"], &data["description"]),
            (&json!("triage"), &json!("active"), &json!(null))
        );
        assert_eq!(data["creator_user_id"], format!("key:{}", Caller::Management.id()));
        let designated = &data["designated_version"];
        assert_eq!((&designated["id"], &designated["version"]), (&data["designated_version_id"], &json!(2)));
        assert_eq!(
            designated["config"],
            json!({"models": ["acme/judge"], "questions": {"q": {"type": "noul", "instructions": "Is it urgent?"}}})
        );
        let list = read(caller, "/presets").await.json();
        assert_eq!((&list["total_count"], &list["data"][0]["id"]), (&json!(1), &data["id"]));
        assert_eq!(list["data"][0].get("designated_version"), None);
        let versions = read(caller, "/presets/triage/versions").await.json();
        assert_eq!((&versions["total_count"], &versions["data"][0]["version"]), (&json!(2), &json!(1)), "oldest first");
        assert_eq!(read(caller, "/presets/triage/versions/2").await.json()["data"], *designated);
        for path in
            ["/presets/other", "/presets/triage/versions/3", "/presets/triage/versions/0", "/presets/other/versions"]
        {
            read(caller, path).await.expect_error(404);
        }
    }
    let page = gateway.get(Caller::Inference, "/presets/triage/versions?offset=1&limit=1", &[]).await.json();
    assert_eq!((&page["total_count"], &page["data"][0]["version"]), (&json!(2), &json!(2)));
    assert_eq!(gateway.get(Caller::Management, "/presets", &[]).await.json()["total_count"], 1);
    assert_eq!(gateway.get(Caller::OfOtherWorkspace, "/presets", &[]).await.json()["total_count"], 0);
    gateway.get(Caller::OfOtherWorkspace, "/presets/triage", &[]).await.expect_error(404);
    gateway.get(Caller::OfOtherWorkspace, &in_workspace("/presets/triage"), &[]).await.expect_error(400);
    gateway.get(Caller::Inference, "/presets?limits=1", &[]).await.expect_error(400);
}

#[tokio::test]
async fn changes_are_checked_audited_and_sent_back_without_effect() {
    let gateway = with_preset().await;
    let before = gateway.get(Caller::Inference, "/presets/triage", &[]).await;
    let (data, count) = (before.json()["data"].clone(), entries(&gateway).await);
    let same = patch(&gateway, "triage", &data).await;
    assert_eq!((same.status, same.header("etag"), &same.json()["data"]), (200, before.header("etag"), &data));
    assert_eq!(entries(&gateway).await, count);
    let first = format!("{}.1", data["id"].as_str().unwrap());
    let changed = patch(&gateway, "triage", &json!({"name": "T", "designated_version_id": first})).await;
    assert_eq!((changed.status, &changed.json()["data"]["designated_version"]["version"]), (200, &json!(1)));
    assert_ne!(changed.header("etag"), before.header("etag"));
    assert_eq!(entries(&gateway).await, count + 1);
    for (body, message) in [
        (json!({}), "No update fields provided"),
        (json!({"id": "x"}), "No update fields provided"),
        (json!({"designated_version_id": "x"}), "designated_version_id: must be the id of a version of this preset"),
        (
            json!({"name": ""}),
            "name: a preset name has 1 to 200 characters, not all of them blank, and no control characters",
        ),
        (json!({"slug_": "x"}), r#"unknown member "slug_""#),
    ] {
        assert_eq!(patch(&gateway, "triage", &body).await.expect_error(400), message);
    }
    patch(&gateway, "other", &json!({"name": "n"})).await.expect_error(404);
    for slug in ["A", "a_b", "%2e%2e", "01990000-0000-7000-8000-000000000001"] {
        add(&gateway, slug, &config("q")).await.expect_error(400);
    }
    for body in ["{}", "[]", r#"{"model":"acme/judge","questions":{}}"#, r#"{"model":"acme/judge","questions":[1]}"#] {
        add(&gateway, "triage", body).await.expect_error(400);
    }
    let body = config("q");
    let path = in_workspace("/presets/triage/decisions");
    for caller in [Caller::Inference, Caller::OfOtherWorkspace] {
        gateway.json(caller, "POST", &path, &body).await.expect_error(403);
        gateway.json(caller, "PATCH", &in_workspace("/presets/triage"), r#"{"name":"n"}"#).await.expect_error(403);
    }
    let unknown = format!("/presets/triage/decisions?workspace_id={}", workspace(9));
    gateway.json(Caller::Management, "POST", &unknown, &body).await.expect_error(404);
    assert_eq!(entries(&gateway).await, count + 1);
}

#[tokio::test]
async fn version_is_added_once_for_a_repeated_request_and_for_the_seen_version_only() {
    let gateway = with_preset().await;
    let (path, body) = (in_workspace("/presets/triage/decisions"), config("third"));
    let post = async |headers: &[(&str, &str)], body: &str| {
        let headers = [&[("Content-Type", "application/json")], headers].concat();
        gateway.post(Caller::Management, &path, &headers, body.as_bytes()).await
    };
    let first = post(&[("Idempotency-Key", "k")], &body).await;
    let again = post(&[("Idempotency-Key", "k")], &body).await;
    assert_eq!((first.status, again.status, &first.body), (200, 200, &again.body));
    assert_eq!(again.json()["data"]["designated_version"]["version"], 3);
    post(&[("Idempotency-Key", "k")], &config("other")).await.expect_error(409);
    let etag = first.header("etag").unwrap();
    assert_eq!(post(&[("If-Match", etag)], &body).await.status, 200);
    post(&[("If-Match", etag)], &body).await.expect_error(412);
    let versions = gateway.get(Caller::Inference, "/presets/triage/versions", &[]).await.json();
    assert_eq!(versions["total_count"], 4);
}

#[tokio::test]
async fn request_with_preset_is_answered_and_recorded_with_its_version() {
    let gateway = with_preset().await;
    let reply = gateway.decide(ASK).await;
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    let answered = reply.json();
    assert_eq!((&answered["model"], &answered["answers"]["q"]["noul"]), (&json!("acme/judge"), &json!(0.5)));
    let path = format!("/generation?id={}", answered["id"].as_str().unwrap());
    let record = gateway.get(Caller::Inference, &path, &[]).await.json()["data"].clone();
    let preset = gateway.get(Caller::Inference, "/presets/triage", &[]).await.json()["data"].clone();
    assert_eq!((&record["preset_id"], &record["preset_version"]), (&preset["id"], &json!(2)));
    assert_eq!(record["requested_model"], "acme/judge");
}

#[tokio::test]
async fn unusable_preset_is_rejected_with_a_sentence() {
    let gateway = with_preset().await;
    let other = gateway.json(Caller::OfOtherWorkspace, "POST", "/api/alpha/decisions", ASK).await;
    assert_eq!(other.expect_error(404), "The workspace of this key has no preset \"triage\"");
    for status in ["disabled", "archived"] {
        assert_eq!(patch(&gateway, "triage", &json!({"status": status})).await.status, 200);
        assert_eq!(gateway.decide(ASK).await.expect_error(404), format!("The preset \"triage\" is {status}"));
    }
    let own = format!(r#"{{"model":"@preset/triage","state":"s","questions":{{"q":{QUESTION}}}}}"#);
    let message = "questions: must be {} with a preset, which has its own questions";
    assert_eq!(gateway.decide(&own).await.expect_error(400), message);
    let without = r#"{"model":"acme/judge","state":"s","questions":{}}"#;
    assert_eq!(gateway.decide(without).await.expect_error(400), "questions: must have at least one question");
}

/// Returns a gateway whose workspace has this share of the memory of bodies, and a preset of many questions.
async fn with_large_preset(share: usize) -> Gateway {
    let mut setup = Setup::answering([answer(r#"{"q0":{"type":"noul","noul":0.5}}"#)]).await;
    setup.settings.admission.body_memory_bytes_per_workspace = share;
    let gateway = setup.start();
    let questions: Vec<String> = (0..1_000).map(|at| format!("\"q{at}\":{QUESTION}")).collect();
    let config = format!(r#"{{"models":["acme/judge"],"questions":{{{}}}}}"#, questions.join(","));
    for _ in 0..30 {
        let added = add(&gateway, "triage", &config).await;
        assert_eq!(added.status, 200, "{}", String::from_utf8_lossy(&added.body));
    }
    gateway
}

#[tokio::test]
async fn questions_of_a_preset_count_in_the_memory_of_their_request() {
    // About 50 KB of text, and 256 bytes for each of 1,000 questions.
    let message = with_large_preset(300_000).await.decide(ASK).await.expect_error(413);
    assert!(message.ends_with("may take 300000; use a preset with fewer questions"), "{message}");
    let reply = with_large_preset(400_000).await.decide(ASK).await;
    assert_eq!(reply.status, 502, "{}", String::from_utf8_lossy(&reply.body));
}

#[tokio::test]
async fn questions_of_a_preset_count_in_the_memory_of_an_explanation() {
    let (path, body) = (format!("/guardrails/{}/explain", guardrail()), format!(r#"{{"body":{ASK}}}"#));
    let explain = async |memory| with_large_preset(memory).await.post_json(Caller::Management, &path, &body).await;
    let message = explain(300_000).await.expect_error(413);
    assert!(message.ends_with("may take 300000; use a preset with fewer questions"), "{message}");
    let reply = explain(400_000).await;
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
}

#[tokio::test]
async fn versions_of_a_page_count_in_the_memory_of_their_request() {
    // Each of 20 versions takes four times 50 KB for its text and its views, and 256 bytes for a question: 9 MB.
    let gateway = with_large_preset(12_000_000).await;
    let page = gateway.get(Caller::Inference, "/presets/triage/versions?limit=20&offset=3", &[]).await;
    assert_eq!(page.status, 200, "{}", String::from_utf8_lossy(&page.body));
    let (page, numbers) = (page.json(), |page: &Value| {
        page["data"].as_array().unwrap().iter().map(|version| version["version"].as_u64().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!((numbers(&page), &page["total_count"]), ((4..=23).collect(), &json!(30)));
    let message = gateway.get(Caller::Inference, "/presets/triage/versions", &[]).await.expect_error(413);
    assert!(message.ends_with("may take 12000000; set a smaller limit"), "{message}");
    let rest = gateway.get(Caller::Inference, "/presets/triage/versions?offset=25", &[]).await.json();
    assert_eq!((numbers(&rest), &rest["total_count"]), ((26..=30).collect(), &json!(30)));
}
