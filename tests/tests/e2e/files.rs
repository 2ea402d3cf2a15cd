//! The documents of a workspace over HTTP.

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::Value;
use tollgate_tests::{Call, promotion};

use crate::gateway::TestGateway;

/// Promotes a file and returns the document's id.
pub async fn promote(gateway: &TestGateway, path: &str, content: &[u8]) -> Result<String> {
    let file = gateway.instance.put("sess_a", path, content).await?;
    let document = gateway.server.promote(&gateway.inference.secret, "sess_a", &file).await?.ok()?;
    Ok(document["id"].as_str().context("no id")?.to_owned())
}

/// Returns a request on a file, with the key of the gateway.
pub fn call(gateway: &TestGateway, method: Method, path: &str) -> Call {
    Call::new(method, format!("/api/v1{path}")).key(&gateway.inference.secret)
}

async fn list(gateway: &TestGateway, query: &str) -> Result<Value> {
    gateway.server.send(&call(gateway, Method::GET, &format!("/files{query}"))).await?.ok()
}

#[tokio::test]
async fn documents_are_listed_in_pages_as_published_clients_read_them() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let agent = "speakeasy-sdk/python 1.3.84 2.914.0 1.0.0 openrouter";
    let mut documents = Vec::new();
    for number in 0..5 {
        documents.push(promote(&gateway, &format!("out/{number}.csv"), b"a,b\n").await?);
    }
    // The client repeats its parameters and goes on while `cursor` is not empty and `data` neither.
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = call(&gateway, Method::GET, &format!("/files?limit=2{cursor}")).header("user-agent", agent);
        let page = gateway.server.send(&page).await?.ok()?;
        ensure!(page["_shape"] == "openrouter" && page["data"][0]["_shape"] == "openrouter", "{page}");
        let rows = page["data"].as_array().context("no data")?;
        seen.extend(rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)));
        let Some(next) = page["cursor"].as_str().filter(|_| !rows.is_empty()) else { break };
        cursor = format!("&cursor={next}");
    }
    ensure!(seen == documents, "{seen:?}");

    let record = gateway.server.send(&call(&gateway, Method::GET, &format!("/files/{}", documents[0]))).await?.ok()?;
    ensure!(record["filename"] == "out/0.csv" && record["downloadable"] == true, "{record}");
    let workspace = gateway.instance.workspace("other").await?;
    let other = gateway.instance.key(&["--name", "o", "--workspace", &workspace]).await?;
    for method in [Method::GET, Method::DELETE] {
        let foreign = Call::new(method, format!("/api/v1/files/{}", documents[0])).key(&other.secret);
        gateway.server.send(&foreign).await?.error(404, "Resource not found")?;
    }
    Ok(())
}

#[tokio::test]
async fn deletion_frees_quota_bytes_and_idempotency_key_once() -> Result<()> {
    let gateway = TestGateway::start("[limits]\nworkspace_quota_bytes = 100000\n").await?;
    let file = gateway.instance.put("sess_a", "a", &vec![b'a'; 60_000]).await?;
    let promote = promotion(&gateway.inference.secret, "sess_a", &file).header("idempotency-key", "k");
    let first = gateway.server.send(&promote).await?.ok()?;
    ensure!(gateway.server.send(&promote).await?.ok()?["id"] == first["id"]);
    let id = first["id"].as_str().context("no id")?;
    let delete = call(&gateway, Method::DELETE, &format!("/files/{id}"));
    let (one, other) = tokio::join!(gateway.server.send(&delete), gateway.server.send(&delete));
    let mut statuses = [one?.status, other?.status];
    statuses.sort_unstable();
    ensure!(statuses == [200, 404], "{statuses:?}");
    gateway.server.send(&delete).await?.envelope(404)?;
    ensure!(gateway.instance.document_blobs()?.is_empty(), "its bytes are left");

    // A second document of this size has no room beside the first one.
    let second = gateway.server.send(&promote).await?.ok()?;
    ensure!(second["id"] != first["id"], "the key still names the deleted document");
    ensure!(list(&gateway, "").await?["data"].as_array().is_some_and(|rows| rows.len() == 1));
    let audit = gateway.instance.json(&["audit", "list"]).await?;
    let deletions = audit.to_string().matches(&format!("document {id}")).count();
    ensure!(deletions == 1 && audit.to_string().contains(&format!("key:{}", gateway.inference.id)), "{audit}");
    Ok(())
}

#[tokio::test]
async fn doctor_reports_a_store_without_the_documents_of_the_database() -> Result<()> {
    const FOREIGN: &str = "is blobs.url another store";
    let gateway = TestGateway::start("").await?;
    let said = async || -> Result<String> {
        Ok(String::from_utf8(gateway.instance.run(&["doctor", "--json"]).await?.stdout)?)
    };
    promote(&gateway, "a.csv", b"a,b\n").await?;
    let report = said().await?;
    ensure!(report.contains("can be written") && !report.contains(FOREIGN), "{report}");
    let blobs = gateway.instance.blobs();
    std::fs::rename(&blobs, blobs.with_extension("moved"))?;
    std::fs::create_dir(&blobs)?;
    let report = said().await?;
    ensure!(report.contains(FOREIGN), "{report}");
    ensure!(std::fs::read_dir(&blobs)?.next().is_none(), "the diagnosis wrote into the folder of another store");
    gateway.server.stop().await
}

#[tokio::test]
async fn commands_report_a_missing_blobs_folder_and_create_none() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    gateway.server.stop().await?;
    let (instance, blobs) = (&gateway.instance, gateway.instance.blobs());
    std::fs::rename(&blobs, blobs.with_extension("moved"))?;
    let missing = format!("the blobs folder {} does not exist", blobs.display());
    let doctor = instance.run(&["doctor"]).await?;
    let report = String::from_utf8(doctor.stdout)?;
    ensure!(!doctor.status.success() && report.contains(&missing), "{report}");
    ensure!(report.contains("migrations"), "the database is not checked: {report}");
    instance.json(&["key", "list"]).await?;
    let put = instance.run(&["container", "put", "sess_a", "a", "test.toml"]).await?;
    let said = String::from_utf8(put.stderr)?;
    ensure!(!put.status.success() && said.contains(&missing), "{said}");
    ensure!(!blobs.exists(), "a command created the blobs folder");
    Ok(())
}
