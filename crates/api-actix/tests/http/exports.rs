//! Exports of lists as CSV and JSON lines.

use std::time::Duration;

use domain::audit::{Actor, AuditDraft, AuditLog};
use domain::json::Json;
use domain::testing::MemoryStore;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{Reply, request};
use super::gateway::{BASE, Caller, Gateway, Setup, answer};

/// Returns the content of a chunked body; `None` without its last chunk.
fn content(reply: &Reply) -> Option<String> {
    let (mut rest, mut content) = (&reply.body[..], Vec::new());
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        let chunk = rest.get(line + 2..line + 2 + length)?;
        if length == 0 {
            return Some(String::from_utf8(content).unwrap());
        }
        content.extend_from_slice(chunk);
        rest = &rest[line + 4 + length..];
    }
}

async fn append(store: &MemoryStore, subject: &str, details: &str) {
    let actor = Actor { name: "user:=ann".to_owned(), source: None };
    let draft = AuditDraft::done(&actor, "key.update", subject, Json::parse(details).unwrap());
    store.audit_log().append(&draft).await.unwrap();
}

async fn export(gateway: &Gateway, caller: Caller, path: &str) -> Reply {
    gateway.get(caller, path, &[]).await
}

#[tokio::test]
async fn audit_log_is_exported_in_both_formats() {
    let setup = Setup::new().await;
    for number in 0..2_500 {
        append(&setup.store, &format!("key {number}"), r#"{"before":{"a":1},"after":{"b":"x,\"y\""}}"#).await;
    }
    let gateway = setup.start();
    let csv = export(&gateway, Caller::Management, "/audit?format=csv&actor=ann").await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    assert_eq!(
        csv.header("content-disposition"),
        Some("attachment; filename=\"audit.csv\"; filename*=UTF-8''audit.csv")
    );
    assert_eq!((csv.header("cache-control"), csv.header("content-length")), (Some("private, no-cache"), None));
    let text = content(&csv).unwrap();
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(lines.len(), 2_502, "the head, the entries, and the end of the last line");
    assert!(
        lines[0].starts_with("number,at,actor,source,action,subject,outcome,before,after,details,"),
        "{}",
        lines[0]
    );
    assert!(lines[1].contains(",user:=ann,,key.update,key 2499,done,"), "{}", lines[1]);
    assert!(lines[1].contains(r#","{""b"":""x,\""y\""""}","#), "{}", lines[1]);
    let jsonl = content(&export(&gateway, Caller::Management, "/audit?format=jsonl&subject=key%20249").await).unwrap();
    let entries: Vec<Value> = jsonl.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((entries.len(), &entries[0]["subject"]), (11, &Value::from("key 2499")));
    assert_eq!(entries[10]["after"]["b"], "x,\"y\"");
}

#[tokio::test]
async fn usage_and_records_are_exported_for_the_own_key() {
    let gateway = Setup::answering([answer(r#"{"q":{"type":"noul","noul":0.9}}"#)]).await.start();
    let body =
        r#"{"model":"acme/judge","state":"s","user":"=1+1","questions":{"q":{"type":"noul","instructions":"?"}}}"#;
    assert_eq!(gateway.decide(body).await.status, 200);
    let records = content(&export(&gateway, Caller::Inference, "/generations?format=csv").await).unwrap();
    let lines: Vec<&str> = records.split("\r\n").collect();
    assert!(lines[0].starts_with("id,created_at,charged_at,workspace_id,api_key,") && lines.len() == 3, "{records}");
    assert!(lines[1].contains(",'=1+1,"), "a formula begins with an apostrophe: {}", lines[1]);
    let records = content(&export(&gateway, Caller::Inference, "/generations?format=jsonl").await).unwrap();
    let record: Value = serde_json::from_str(records.trim_end()).unwrap();
    assert_eq!((&record["model"], record["id"].is_string()), (&Value::from("acme/judge"), true));
    let other = content(&export(&gateway, Caller::OfOtherWorkspace, "/generations?format=jsonl").await).unwrap();
    assert_eq!(other, "");
    let sums = content(&export(&gateway, Caller::Inference, "/usage?format=csv&group_by=model,key").await).unwrap();
    let lines: Vec<&str> = sums.split("\r\n").collect();
    assert_eq!(lines[0], "model,key,name,requests,input_tokens,output_tokens,cost");
    assert!(lines.len() <= 3, "{sums}");
}

#[tokio::test]
async fn invalid_exports_are_rejected_before_the_first_byte() {
    let gateway = Setup::new().await.start();
    for path in [
        "/audit?format=xml",
        "/audit?format=csv&limit=5",
        "/audit?format=csv&cursor=x",
        "/generations?format=csv&limit=5",
        "/usage?format=CSV",
        "/usage?format=csv&since=x",
    ] {
        export(&gateway, Caller::Management, path).await.expect_error(400);
    }
    export(&gateway, Caller::Inference, "/audit?format=csv").await.expect_error(403);
    // No place was kept.
    assert_eq!(export(&gateway, Caller::Management, "/audit?format=csv").await.status, 200);
}

#[tokio::test]
async fn key_runs_one_export_at_a_time() {
    let setup = Setup::new().await;
    let details = format!(r#"{{"after":"{}"}}"#, "x".repeat(10_000));
    for number in 0..3_000 {
        append(&setup.store, &format!("key {number}"), &details).await;
    }
    let gateway = setup.start();
    let bearer = Caller::Management.bearer();
    let mut paused = TcpStream::connect(gateway.address).await.unwrap();
    let head = request("GET", &format!("{BASE}/audit?format=jsonl"), &[("Authorization", &bearer)], b"");
    paused.write_all(&head).await.unwrap();
    let mut first = [0; 512];
    assert!(paused.read(&mut first).await.unwrap() > 0);
    let second = export(&gateway, Caller::Management, "/audit?format=csv&subject=none").await;
    assert!(second.expect_error(429).contains("an export of this key is running"));
    assert_eq!(second.json()["error"]["metadata"]["unit"], "exports");
    assert_eq!(export(&gateway, Caller::Inference, "/usage?format=csv").await.status, 200, "another key");
    assert_eq!(gateway.get(Caller::Management, "/audit?limit=1", &[]).await.status, 200, "a page is no export");
    drop(paused);
    let began = tokio::time::Instant::now();
    while export(&gateway, Caller::Management, "/audit?format=csv&subject=none").await.status == 429 {
        assert!(began.elapsed() < Duration::from_secs(10), "the place of a client that left is kept");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
