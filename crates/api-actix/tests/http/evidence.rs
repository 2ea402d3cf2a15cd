//! Evidence of the answers of presets, and their labels.

use std::sync::Arc;

use domain::testing::{FixedRateLimiter, MemoryStore};
use serde_json::{Value, json};

use super::client::Reply;
use super::gateway::{Caller, Gateway, Setup, answer, workspace};

const CONFIG: &str = r#"{"models":["acme/judge"],"questions":{"refund":{"type":"noul","instructions":"?"},
    "queue":{"type":"choice","instructions":"?","criteria":{"billing":null,"other":null}}}}"#;
const ANSWERS: &str = r#"{"refund":{"type":"noul","noul":0.25},
    "queue":{"type":"choice","choice":"billing","probabilities":{"billing":0.75,"other":0.25}}}"#;

fn of_workspace(path: &str) -> String {
    format!("{path}workspace_id={}", workspace(1))
}

/// Returns a gateway with an answer of the preset, and the id of the answer.
async fn with_answer() -> (Gateway, String) {
    with_answer_of(Setup::answering([answer(ANSWERS), answer(ANSWERS)]).await).await
}

async fn with_answer_of(setup: Setup) -> (Gateway, String) {
    let gateway = setup.start();
    let path = of_workspace("/presets/triage/decisions?");
    assert_eq!(gateway.json(Caller::Management, "POST", &path, CONFIG).await.status, 200);
    let answered = gateway.decide(r#"{"model":"@preset/triage","state":"It smokes.","questions":{}}"#).await;
    assert_eq!(answered.status, 200, "{}", String::from_utf8_lossy(&answered.body));
    let id = answered.json()["id"].as_str().unwrap().to_owned();
    (gateway, id)
}

async fn rows(gateway: &Gateway, query: &str) -> Value {
    let reply = gateway.get(Caller::Inference, &format!("/evidence?preset=triage{query}"), &[]).await;
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    reply.json()
}

async fn feedback(gateway: &Gateway, caller: Caller, body: &Value) -> Reply {
    gateway.json(caller, "POST", "/generation/feedback", &body.to_string()).await
}

#[tokio::test]
async fn answer_of_a_preset_has_a_row_a_question() {
    let (gateway, id) = with_answer().await;
    let page = rows(&gateway, "").await;
    assert_eq!((page["data"].as_array().unwrap().len(), &page["next_cursor"]), (2, &json!(null)));
    let [queue, refund] = [0, 1].map(|index| page["data"][index].clone());
    for row in [&queue, &refund] {
        assert_eq!(
            (&row["generation_id"], &row["model"], &row["label"]),
            (&json!(id), &json!("acme/judge"), &json!(null))
        );
        assert_eq!((&row["method"], &row["preset_version"]), (&json!("native"), &json!(1)));
        assert!(row["total_cost"].is_number() && row["latency"].is_number(), "{row}");
    }
    let figures = |row: &Value| {
        [row["question"].clone(), row["decision"].clone(), row["score"].clone(), row["probabilities"].clone()]
    };
    assert_eq!(
        figures(&queue),
        [json!("queue"), json!("billing"), json!(0.75), json!({"billing": 0.75, "other": 0.25})]
    );
    assert_eq!(figures(&refund), [json!("refund"), json!(false), json!(0.75), json!({"true": 0.25})]);
    assert_eq!(
        rows(&gateway, "&question=queue&version=1&model=acme/judge&labelled=false").await["data"],
        json!([queue])
    );
    for query in ["&question=other", "&version=2", "&labelled=true", "&until=2020-01-01"] {
        assert_eq!(rows(&gateway, query).await["data"], json!([]), "{query}");
    }
    let first = rows(&gateway, "&limit=1").await;
    let next = rows(&gateway, &format!("&limit=1&cursor={}", first["next_cursor"].as_str().unwrap())).await;
    assert_eq!((&first["data"][0], &next["data"][0], &next["next_cursor"]), (&queue, &refund, &json!(null)));
    // A request without the preset has no evidence.
    let own = r#"{"model":"acme/judge","state":"s","questions":{"refund":{"type":"noul","instructions":"?"},
        "queue":{"type":"choice","instructions":"?","criteria":{"billing":null,"other":null}}}}"#;
    assert_eq!(gateway.decide(own).await.status, 200);
    assert_eq!(rows(&gateway, "").await["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn evidence_is_exported_and_belongs_to_its_workspace() {
    let (gateway, id) = with_answer().await;
    let csv = gateway.get(Caller::Management, &of_workspace("/evidence?preset=triage&format=csv&"), &[]).await;
    let text = String::from_utf8_lossy(&csv.body).into_owned();
    assert!(text.contains("generation_id,created_at,") && text.contains(&format!("{id},")), "{text}");
    assert!(text.contains(r#",billing,0.75,"{""billing"":0.75,""other"":0.25}",,,,,"#), "{text}");
    let lines = gateway.get(Caller::Inference, "/evidence?preset=triage&format=jsonl", &[]).await;
    assert_eq!(String::from_utf8_lossy(&lines.body).matches("{\"generation_id\":").count(), 2);
    gateway.get(Caller::OfOtherWorkspace, "/evidence?preset=triage", &[]).await.expect_error(404);
    gateway.get(Caller::OfOtherWorkspace, &of_workspace("/evidence?preset=triage&"), &[]).await.expect_error(400);
    gateway.get(Caller::Inference, "/evidence", &[]).await.expect_error(400);
    for query in ["&since=2027-01-01&until=2026-01-01", "&cursor=x", "&labelled=yes", "&version=x", "&labeled=true"] {
        gateway.get(Caller::Inference, &format!("/evidence?preset=triage{query}"), &[]).await.expect_error(400);
    }
}

#[tokio::test]
async fn labels_count_against_the_rate_of_the_key() {
    let mut setup = Setup::answering([answer(ANSWERS)]).await;
    setup.rate_limiter = Arc::new(FixedRateLimiter::new(2));
    let (gateway, id) = with_answer_of(setup).await;
    let body = json!({"generation_id": id, "category": "other", "labels": {"refund": true}, "source": "human"});
    assert_eq!(feedback(&gateway, Caller::Inference, &body).await.status, 200, "the second request, after the answer");
    assert_eq!(feedback(&gateway, Caller::Inference, &body).await.expect_error(429), "Rate limit exceeded");
    let rows = json!({"labels": [{"generation_id": id, "question": "refund", "value": true}]}).to_string();
    gateway.json(Caller::Inference, "POST", "/labels", &rows).await.expect_error(429);
}

#[tokio::test]
async fn feedback_labels_answers_of_the_own_workspace() {
    let (gateway, id) = with_answer().await;
    let plain = json!({"generation_id": id, "category": "incorrect_response", "comment": "no"});
    for caller in [Caller::Inference, Caller::Management] {
        assert_eq!(feedback(&gateway, caller, &plain).await.json(), json!({"data": {"success": true}}));
    }
    let labelled =
        |labels: Value| json!({"generation_id": id, "category": "other", "labels": labels, "source": "human"});
    for _ in 0..2 {
        let reply = feedback(&gateway, Caller::Inference, &labelled(json!({"refund": true, "queue": "other"}))).await;
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    }
    let page = rows(&gateway, "&labelled=true").await;
    let label = |index: usize| page["data"][index]["label"].clone();
    assert_eq!((&label(0)["value"], &label(1)["value"]), (&json!("other"), &json!(true)));
    assert_eq!((&label(0)["version"], &label(0)["source"]), (&json!(1), &json!("human")));
    assert_eq!(label(0)["created_by"], format!("key:{}", Caller::Inference.id()));
    assert_eq!(feedback(&gateway, Caller::Inference, &labelled(json!({"refund": false}))).await.status, 200);
    assert_eq!(rows(&gateway, "&question=refund").await["data"][0]["label"]["version"], 2);
    for (labels, message) in [
        (json!({"queue": "x"}), r#"labels.queue: "x" is not a label of this question; valid: "billing", "other""#),
        (
            json!({"refund": 1, "queue": "other"}),
            "labels.refund: 1 is not a label of this question; valid: true, false",
        ),
        (json!({"other": true}), r#"labels.other: unknown question; the preset has: "refund", "queue""#),
    ] {
        assert_eq!(feedback(&gateway, Caller::Inference, &labelled(labels)).await.expect_error(400), message);
    }
    let long = feedback(&gateway, Caller::Inference, &labelled(json!({"q".repeat(100_000): true}))).await;
    let message = long.expect_error(400);
    assert!(message.len() < 2_048 && message.ends_with(r#"preset has: "refund", "queue""#), "{message}");
    let version = async |question: &str| rows(&gateway, question).await["data"][0]["label"]["version"].clone();
    assert_eq!(version("&question=queue").await, 1, "all or none");
    // A hundred versions of one label leave no room for the other label of a call, either.
    for number in 0..98 {
        let reply = feedback(&gateway, Caller::Inference, &labelled(json!({"refund": number % 2 == 0}))).await;
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    }
    let both = labelled(json!({"queue": "billing", "refund": true}));
    let message = feedback(&gateway, Caller::Inference, &both).await.expect_error(409);
    assert_eq!(message, "labels.refund: a label has at most 100 versions");
    assert_eq!((version("&question=queue").await, version("&question=refund").await), (json!(1), json!(100)));
    feedback(&gateway, Caller::OfOtherWorkspace, &labelled(json!({"refund": true}))).await.expect_error(404);
    let unknown = json!({"generation_id": "gen-dec-none", "category": "other"});
    feedback(&gateway, Caller::Inference, &unknown).await.expect_error(404);
    feedback(&gateway, Caller::Inference, &json!({"generation_id": id})).await.expect_error(400);
}

#[tokio::test]
async fn labels_are_taken_each_by_itself() {
    let (gateway, id) = with_answer().await;
    let row = |question: &str, label: Value| json!({"generation_id": id, "question": question, "label": label, "source": "reference"});
    let body = json!({"labels": [row("refund", json!("true")), row("queue", json!("x")), json!(1), row("refund", json!(true)),
        {"generation_id": "gen-dec-none", "question": "refund", "label": true, "source": "reference"}]});
    let post = async |caller: Caller| gateway.json(caller, "POST", "/labels", &body.to_string()).await;
    let data = post(Caller::Management).await.json()["data"].clone();
    assert_eq!((&data["changed"], &data["unchanged"]), (&json!(1), &json!(1)), "{data}");
    let errors: Vec<_> = data["errors"].as_array().unwrap().iter().map(|error| error["index"].clone()).collect();
    assert_eq!(errors, [1, 2, 4]);
    assert_eq!(data["errors"][2]["message"], "generation not found");
    let again = post(Caller::Management).await.json()["data"].clone();
    assert_eq!((&again["changed"], &again["unchanged"]), (&json!(0), &json!(2)));
    post(Caller::Inference).await.expect_error(403);
    assert_eq!(rows(&gateway, "&labelled=true").await["data"][0]["label"]["value"], json!(true));
}

#[tokio::test]
async fn repeated_request_leaves_a_newer_label() {
    let (gateway, id) = with_answer().await;
    let labels = |label: bool| {
        let row = json!({"generation_id": id, "question": "refund", "label": label, "source": "human"});
        json!({"labels": [row, 1]})
    };
    let feedback = |label: bool| {
        let labels = json!({"refund": label});
        json!({"generation_id": id, "category": "other", "labels": labels, "source": "human"})
    };
    let post = async |caller: Caller, path: &str, key: &str, body: &Value| {
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
        gateway.post(caller, path, &headers, body.to_string().as_bytes()).await
    };
    let label = async || rows(&gateway, "&question=refund").await["data"][0]["label"].clone();
    for (caller, path, body) in [
        (Caller::Management, "/labels", &labels as &dyn Fn(bool) -> Value),
        (Caller::Inference, "/generation/feedback", &feedback),
    ] {
        let first = post(caller, path, "a", &body(true)).await;
        assert_eq!(first.status, 200, "{path}: {}", String::from_utf8_lossy(&first.body));
        assert_eq!(label().await["value"], json!(true));
        assert_eq!(post(caller, path, "b", &body(false)).await.status, 200);
        let newer = label().await;
        assert_eq!(newer["value"], json!(false));
        let again = post(caller, path, "a", &body(true)).await;
        assert_eq!((again.status, &again.body), (200, &first.body), "{path}");
        assert_eq!(label().await, newer, "{path}");
        let other = post(caller, path, "a", &body(false)).await.expect_error(409);
        assert!(other.contains("Idempotency-Key"), "{other}");
        post(caller, path, "", &body(true)).await.expect_error(400);
    }
}

#[tokio::test]
async fn feedback_labels_evidence_that_outlives_its_record() {
    // Retention has removed the record.
    let usage = MemoryStore::new().usage();
    let (gateway, id) = with_answer_of(Setup { usage, ..Setup::answering([answer(ANSWERS)]).await }).await;
    let body = |question: &str| {
        let mut labels = json!({});
        labels[question] = json!(true);
        json!({"generation_id": id, "category": "other", "labels": labels, "source": "human"})
    };
    let reply = feedback(&gateway, Caller::Inference, &body("refund")).await;
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    assert_eq!(rows(&gateway, "&labelled=true").await["data"][0]["label"]["value"], json!(true));
    feedback(&gateway, Caller::Inference, &body("other")).await.expect_error(400);
    feedback(&gateway, Caller::OfOtherWorkspace, &body("refund")).await.expect_error(404);
    let plain = json!({"generation_id": id, "category": "other"});
    feedback(&gateway, Caller::Inference, &plain).await.expect_error(404);
}

#[tokio::test]
async fn page_and_export_of_large_rows_are_read_by_pieces() {
    let options: Vec<String> = (0..8).map(|at| format!("{at}{}", "o".repeat(7_900))).collect();
    let criteria = options.iter().map(|name| format!("\"{name}\":null")).collect::<Vec<_>>().join(",");
    let config = format!(
        r#"{{"models":["acme/judge"],"questions":{{"q":{{"type":"choice","instructions":"?","criteria":{{{criteria}}}}}}}}}"#
    );
    let probabilities = options.iter().map(|name| format!("\"{name}\":0.125")).collect::<Vec<_>>().join(",");
    let said = format!(r#"{{"q":{{"type":"choice","choice":"{}","probabilities":{{{probabilities}}}}}}}"#, options[0]);
    let gateway = Setup::answering((0..40).map(|_| answer(&said))).await.start();
    let path = of_workspace("/presets/triage/decisions?");
    assert_eq!(gateway.json(Caller::Management, "POST", &path, &config).await.status, 200);
    for _ in 0..40 {
        let reply = gateway.decide(r#"{"model":"@preset/triage","state":"s","questions":{}}"#).await;
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    }
    let (mut cursor, mut sizes, mut ids) = (String::new(), Vec::new(), Vec::new());
    loop {
        let page = rows(&gateway, &format!("&limit=1000{cursor}")).await;
        let data = page["data"].as_array().unwrap();
        sizes.push(data.len());
        ids.extend(data.iter().map(|row| row["generation_id"].to_string()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert!(sizes.iter().all(|size| *size <= 16) && (count, ids.len()) == (40, 40), "{sizes:?}");
    let lines = gateway.get(Caller::Inference, "/evidence?preset=triage&format=jsonl", &[]).await;
    assert_eq!(String::from_utf8_lossy(&lines.body).matches("{\"generation_id\":").count(), 40);
}

#[tokio::test]
async fn row_has_the_eight_largest_probabilities_as_returned() {
    let numbers = ["0.05", "0.11", "0.001", "0.07", "0.3", "0.002", "0.12", "0.06", "0.08", "0.207"];
    let (mut options, mut probabilities) = (Vec::new(), Vec::new());
    for (at, number) in numbers.iter().enumerate() {
        options.push(format!("\"o{at}\":null"));
        probabilities.push(format!("\"o{at}\":{number}"));
    }
    let config = format!(
        r#"{{"models":["acme/judge"],"questions":{{"q":{{"type":"choice","instructions":"?","criteria":{{{}}}}}}}}}"#,
        options.join(",")
    );
    let said = format!(r#"{{"q":{{"type":"choice","choice":"o4","probabilities":{{{}}}}}}}"#, probabilities.join(","));
    let gateway = Setup::answering([answer(&said)]).await.start();
    let path = of_workspace("/presets/triage/decisions?");
    assert_eq!(gateway.json(Caller::Management, "POST", &path, &config).await.status, 200);
    assert_eq!(gateway.decide(r#"{"model":"@preset/triage","state":"s","questions":{}}"#).await.status, 200);
    let reply = gateway.get(Caller::Inference, "/evidence?preset=triage", &[]).await;
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    let largest =
        r#""probabilities":{"o4":0.3,"o9":0.207,"o6":0.12,"o1":0.11,"o8":0.08,"o3":0.07,"o7":0.06,"o0":0.05}"#;
    assert!(text.contains(largest) && text.contains(r#""score":0.3,"#), "{text}");
}

#[tokio::test]
async fn versions_of_a_label_are_listed_newest_first() {
    let (gateway, id) = with_answer().await;
    let body = |label: bool, source: &str| json!({"generation_id": id, "category": "other", "labels": {"refund": label}, "source": source});
    for (label, source) in [(true, "human"), (false, "human"), (false, "system")] {
        assert_eq!(feedback(&gateway, Caller::Inference, &body(label, source)).await.status, 200);
    }
    let list = async |caller, query: &str| gateway.get(caller, &format!("/labels?{query}"), &[]).await;
    let refund = format!("generation_id={id}&question=refund");
    let figures = |page: &Value| {
        let row = |row: &Value| [row["version"].clone(), row["value"].clone(), row["source"].clone()];
        (page["data"].as_array().unwrap().iter().map(row).collect::<Vec<_>>(), page["total_count"].clone())
    };
    let all = [json!([3, false, "system"]), json!([2, false, "human"]), json!([1, true, "human"])];
    for caller in [Caller::Inference, Caller::Management] {
        let page = list(caller, &refund).await.json();
        let (rows, total) = figures(&page);
        assert_eq!((json!(rows), total), (json!(all), json!(3)));
        assert_eq!(page["data"][2]["created_by"], format!("key:{}", Caller::Inference.id()));
        assert!(page["data"][2]["created_at"].is_string(), "{page}");
    }
    let page = list(Caller::Inference, &format!("{refund}&offset=1&limit=1")).await.json();
    assert_eq!((json!(figures(&page).0), figures(&page).1), (json!([all[1]]), json!(3)));
    for (query, rows) in [("question=queue", 0), ("question=refund&offset=3", 0), ("question=refund&offset=2", 1)] {
        let page = list(Caller::Inference, &format!("generation_id={id}&{query}")).await.json();
        assert_eq!(figures(&page).0.len(), rows, "{query}");
    }
    list(Caller::OfOtherWorkspace, &refund).await.expect_error(404);
    list(Caller::Inference, "generation_id=gen-dec-none&question=refund").await.expect_error(404);
    let unknown = list(Caller::Inference, &format!("generation_id={id}&question=other")).await.expect_error(400);
    assert_eq!(unknown, r#"question: unknown question; the preset has: "refund", "queue""#);
    for query in ["question=refund", &format!("generation_id={id}"), "generation_id=x&question=refund"] {
        list(Caller::Inference, query).await.expect_error(400);
    }
}
