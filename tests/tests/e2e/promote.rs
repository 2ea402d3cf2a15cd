//! Promotions of container files to documents.

use std::fs::File;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tollgate_tests::{Report, promotion};

use crate::gateway::TestGateway;

/// Returns the id of a container's file, as clients compute it.
pub fn file_id(path: impl AsRef<[u8]>) -> String {
    use base64::Engine;
    format!("cfile_{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(path))
}

/// Creates a sparse file where a sandbox runtime would write it.
pub async fn sparse(gateway: &TestGateway, container: &str, path: &str, size: u64) -> Result<()> {
    let workspace = gateway.instance.default_workspace().await?;
    File::create(gateway.instance.container_file(&workspace, container, path)?)?.set_len(size)?;
    Ok(())
}

fn members(body: &Value) -> Vec<&str> {
    body.as_object().map(|members| members.keys().map(String::as_str).collect()).unwrap_or_default()
}

fn is_utc(text: &str) -> bool {
    text.len() >= 20 && text.as_bytes()[10] == b'T' && text.ends_with('Z')
}

#[tokio::test]
async fn each_promotion_creates_a_document_that_outlives_the_container() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let content = b"loss,epoch\n0.5,1\n0.25,2\n";
    let id = gateway.instance.put("sess_a-r1", "plots/loss.csv", content).await?;
    ensure!(id == file_id("plots/loss.csv"), "{id}");
    let first = gateway.server.promote(&gateway.inference.secret, "sess_a-r1", &id).await?.ok()?;
    ensure!(first["filename"] == "plots/loss.csv" && first["size_bytes"] == content.len(), "{first}");
    ensure!(first["mime_type"] == "text/csv", "{first}");
    ensure!(first["id"].as_str().is_some_and(|id| id.starts_with("tgfile_")), "{first}");
    ensure!(first["created_at"].as_str().is_some_and(is_utc), "{first}");
    let second = gateway.server.promote(&gateway.inference.secret, "sess_a-r1", &id).await?.ok()?;
    ensure!(first["id"] != second["id"], "the second call got the first document");

    std::fs::remove_dir_all(gateway.instance.blobs().join("containers"))?;
    gateway.server.promote(&gateway.inference.secret, "sess_a-r1", &id).await?.envelope(404)?;
    let blobs = gateway.instance.document_blobs()?;
    ensure!(blobs.len() == 2, "{blobs:?}");
    for document in [&first, &second] {
        let name = document["id"].as_str().context("no id")?;
        let blob = blobs.iter().find(|blob| blob.ends_with(name)).with_context(|| format!("{name} has no blob"))?;
        ensure!(std::fs::read(blob)? == content, "{name} has other bytes");
    }
    Ok(())
}

#[tokio::test]
async fn promotion_ignores_request_body() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let id = gateway.instance.put("sess_a", "a", b"x").await?;
    let call = promotion(&gateway.inference.secret, "sess_a", &id);
    gateway.server.send(&call.clone().json("{}")).await?.ok()?;
    gateway.server.send(&call.body("nonsense")).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn media_type_comes_from_content_and_extension() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let mut report = Report::default();
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
    let cases: [(&str, &[u8], &str); 7] = [
        ("a.png", png, "image/png"),
        ("a.txt", png, "image/png"),
        ("noext", png, "image/png"),
        ("a.pdf", b"%PDF-1.7\n1 0 obj\n", "application/pdf"),
        ("a.json", b"{\"a\":1}", "application/json"),
        ("a.txt", b"plain words", "text/plain"),
        ("a.bin", b"\x00\x01\x02\x03\xff\xfe\xfd", "application/octet-stream"),
    ];
    for (path, content, expected) in cases {
        let id = gateway.instance.put("sess_a", path, content).await?;
        let reply = gateway.server.promote(&gateway.inference.secret, "sess_a", &id).await?;
        report.case(
            &format!("{path} as {expected}"),
            reply.ok().and_then(|file| {
                ensure!(file["mime_type"] == expected, "{}", file["mime_type"]);
                Ok(())
            }),
        );
    }
    let id = gateway.instance.put("sess_a", "empty", b"").await?;
    let empty = gateway.server.promote(&gateway.inference.secret, "sess_a", &id).await?;
    report.case(
        "empty",
        empty.ok().and_then(|file| {
            ensure!(file["size_bytes"] == 0, "{file}");
            Ok(())
        }),
    );
    report.finish()
}

#[tokio::test]
async fn request_headers_select_response_format_and_profile() -> Result<()> {
    let cases: [(&[(&str, &str)], usize); 8] = [
        (&[], 0),
        (&[("user-agent", "curl/8.0")], 0),
        (&[("anthropic-version", "2023-06-01")], 1),
        (&[("anthropic-version", "2023-06-01"), ("x-stainless-lang", "python")], 1),
        (&[("anthropic-version", "2023-06-01"), ("user-agent", "OpenAI/Python 3.52.0")], 1),
        (&[("user-agent", "OpenAI/Python 3.52.0")], 2),
        (&[("user-agent", "AsyncOpenAI/Python 3.52.0")], 2),
        (&[("x-stainless-lang", "js")], 2),
    ];
    for (profile, names) in
        [("interface", ["native", "vendor_a", "vendor_b"]), ("openrouter", ["openrouter", "anthropic", "openai"])]
    {
        let gateway = TestGateway::start(&format!("[server]\nwire_names = \"{profile}\"\n")).await?;
        let id = gateway.instance.put("sess_a", "out/a.txt", b"hello").await?;
        let mut report = Report::default();
        for (headers, shape) in cases {
            let mut call = promotion(&gateway.inference.secret, "sess_a", &id);
            for (name, value) in headers {
                call = call.header(name, value);
            }
            let reply = gateway.server.send(&call).await?;
            report.case(
                &format!("{profile}, {headers:?}"),
                reply.ok().and_then(|file| {
                    // A published package gets its own names, whatever the configuration.
                    let is_package = headers.iter().any(|(_, value)| value.contains("OpenAI/"));
                    let expected = if is_package { ["openrouter", "anthropic", "openai"] } else { names };
                    ensure!(file["_shape"] == expected[shape], "{file}");
                    let mut got = members(&file);
                    got.sort_unstable();
                    let own =
                        ["_shape", "created_at", "downloadable", "filename", "id", "mime_type", "size_bytes", "type"];
                    let openai = ["_shape", "bytes", "created_at", "filename", "id", "object", "purpose", "status"];
                    if shape == 2 {
                        ensure!(got == openai, "{file}");
                        ensure!(
                            file["object"] == "file" && file["bytes"] == 5 && file["created_at"].is_i64(),
                            "{file}"
                        );
                        ensure!(file["purpose"] == "assistants_output" && file["status"] == "processed", "{file}");
                    } else {
                        ensure!(got == own, "{file}");
                        ensure!(
                            file["type"] == "file" && file["downloadable"] == true && file["size_bytes"] == 5,
                            "{file}"
                        );
                    }
                    ensure!(file["filename"] == "out/a.txt", "{file}");
                    Ok(())
                }),
            );
        }
        report.finish()?;
    }
    Ok(())
}

#[tokio::test]
async fn file_above_limit_is_rejected_with_413() -> Result<()> {
    let gateway = TestGateway::start("[limits]\nmax_file_bytes = 100000\n").await?;
    let at = gateway.instance.put("sess_a", "at", &vec![b'a'; 100_000]).await?;
    // A sandbox runtime may write larger files into a container.
    sparse(&gateway, "sess_a", "over", 100_001).await?;
    let over = file_id("over");
    gateway.server.promote(&gateway.inference.secret, "sess_a", &at).await?.ok()?;
    let reply = gateway.server.promote(&gateway.inference.secret, "sess_a", &over).await?;
    reply.error(413, "Request payload too large")?;
    ensure!(gateway.instance.document_blobs()?.len() == 1);
    Ok(())
}

#[tokio::test]
async fn default_file_limit_is_100_mib() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    sparse(&gateway, "sess_a", "over", (100 << 20) + 1).await?;
    gateway.server.promote(&gateway.inference.secret, "sess_a", &file_id("over")).await?.envelope(413)?;
    Ok(())
}

#[tokio::test]
async fn full_quota_is_rejected_with_403_and_figures() -> Result<()> {
    let gateway = TestGateway::start("[limits]\nworkspace_quota_bytes = 1000000\n").await?;
    let id = gateway.instance.put("sess_a", "a", &vec![b'a'; 100_000]).await?;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let (call, address) = (promotion(&gateway.inference.secret, "sess_a", &id), gateway.server.address());
        calls.spawn(async move { call.send(address).await });
    }
    let mut made = 0;
    while let Some(reply) = calls.join_next().await {
        let reply = reply??;
        if reply.status == 200 {
            made += 1;
            continue;
        }
        let metadata = reply.envelope(403)?["error"]["metadata"].clone();
        ensure!(metadata["quota_bytes"] == 1_000_000 && metadata["file_bytes"] == 100_000, "{metadata}");
        ensure!(metadata["used_bytes"].as_u64().is_some_and(|used| used <= 1_000_000), "{metadata}");
    }
    ensure!(made == 10, "{made} documents of a tenth of the quota each");
    ensure!(gateway.instance.document_blobs()?.len() == 10);
    ensure!(used_bytes(&gateway).await? == 1_000_000);

    // Each workspace has its own quota.
    let workspace = gateway.instance.workspace("other").await?;
    let other = gateway.instance.key(&["--name", "o", "--workspace", &workspace]).await?;
    std::fs::write(gateway.instance.container_file(&workspace, "sess_a", "a")?, b"x")?;
    gateway.server.promote(&other.secret, "sess_a", &file_id("a")).await?.ok()?;
    Ok(())
}

/// Returns the size of the default workspace's documents, pending ones included, from a rejected promotion.
pub async fn used_bytes(gateway: &TestGateway) -> Result<u64> {
    sparse(gateway, "sess_probe", "larger-than-any-quota", 90 << 20).await?;
    let reply =
        gateway.server.promote(&gateway.inference.secret, "sess_probe", &file_id("larger-than-any-quota")).await?;
    let envelope = reply.envelope(403)?;
    envelope["error"]["metadata"]["used_bytes"].as_u64().with_context(|| format!("no used_bytes: {envelope}"))
}
