//! Container files become documents.

use std::fs::File;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tollgate_tests::{Report, promotion};

use crate::world::World;

/// The id of a container's file, as any client would make it.
pub fn file_id(path: impl AsRef<[u8]>) -> String {
    use base64::Engine;
    format!("cfile_{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(path))
}

/// A file of zeros that takes no room, where a sandbox runtime would write it.
pub async fn sparse(world: &World, container: &str, path: &str, size: u64) -> Result<()> {
    let workspace = world.instance.default_workspace().await?;
    File::create(world.instance.container_file(&workspace, container, path)?)?.set_len(size)?;
    Ok(())
}

fn members(body: &Value) -> Vec<&str> {
    body.as_object().map(|members| members.keys().map(String::as_str).collect()).unwrap_or_default()
}

fn is_utc(text: &str) -> bool {
    text.len() >= 20 && text.as_bytes()[10] == b'T' && text.ends_with('Z')
}

#[tokio::test]
async fn a_promoted_file_is_a_new_document_at_each_call_and_outlives_the_container() -> Result<()> {
    let world = World::start("").await?;
    let content = b"loss,epoch\n0.5,1\n0.25,2\n";
    let id = world.instance.put("sess_a-r1", "plots/loss.csv", content).await?;
    ensure!(id == file_id("plots/loss.csv"), "{id}");
    let first = world.server.promote(&world.inference.secret, "sess_a-r1", &id).await?.ok()?;
    ensure!(first["filename"] == "plots/loss.csv" && first["size_bytes"] == content.len(), "{first}");
    ensure!(first["mime_type"] == "text/csv", "{first}");
    ensure!(first["id"].as_str().is_some_and(|id| id.starts_with("tgfile_")), "{first}");
    ensure!(first["created_at"].as_str().is_some_and(is_utc), "{first}");
    let second = world.server.promote(&world.inference.secret, "sess_a-r1", &id).await?.ok()?;
    ensure!(first["id"] != second["id"], "the second call got the first document");

    std::fs::remove_dir_all(world.instance.blobs().join("containers"))?;
    world.server.promote(&world.inference.secret, "sess_a-r1", &id).await?.envelope(404)?;
    let blobs = world.instance.document_blobs()?;
    ensure!(blobs.len() == 2, "{blobs:?}");
    for document in [&first, &second] {
        let name = document["id"].as_str().context("no id")?;
        let blob = blobs.iter().find(|blob| blob.ends_with(name)).with_context(|| format!("{name} has no blob"))?;
        ensure!(std::fs::read(blob)? == content, "{name} has other bytes");
    }
    Ok(())
}

#[tokio::test]
async fn a_request_body_is_not_needed_and_does_no_harm() -> Result<()> {
    let world = World::start("").await?;
    let id = world.instance.put("sess_a", "a", b"x").await?;
    let call = promotion(&world.inference.secret, "sess_a", &id);
    world.server.send(&call.clone().json("{}")).await?.ok()?;
    world.server.send(&call.body("nonsense")).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn content_tells_the_media_type_and_the_extension_helps() -> Result<()> {
    let world = World::start("").await?;
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
        let id = world.instance.put("sess_a", path, content).await?;
        let reply = world.server.promote(&world.inference.secret, "sess_a", &id).await?;
        report.case(
            &format!("{path} as {expected}"),
            reply.ok().and_then(|file| {
                ensure!(file["mime_type"] == expected, "{}", file["mime_type"]);
                Ok(())
            }),
        );
    }
    let id = world.instance.put("sess_a", "empty", b"").await?;
    let empty = world.server.promote(&world.inference.secret, "sess_a", &id).await?;
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
async fn the_callers_headers_choose_the_shape_and_the_profile_names_it() -> Result<()> {
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
        let world = World::start(&format!("[server]\nwire_names = \"{profile}\"\n")).await?;
        let id = world.instance.put("sess_a", "out/a.txt", b"hello").await?;
        let mut report = Report::default();
        for (headers, shape) in cases {
            let mut call = promotion(&world.inference.secret, "sess_a", &id);
            for (name, value) in headers {
                call = call.header(name, value);
            }
            let reply = world.server.send(&call).await?;
            report.case(
                &format!("{profile}, {headers:?}"),
                reply.ok().and_then(|file| {
                    ensure!(file["_shape"] == names[shape], "{file}");
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
async fn a_file_at_the_limit_is_promoted_and_one_byte_more_is_a_413() -> Result<()> {
    let world = World::start("[limits]\nmax_file_bytes = 100000\n").await?;
    let at = world.instance.put("sess_a", "at", &vec![b'a'; 100_000]).await?;
    // The limit binds the promotion, not what lies in a container.
    let over = world.instance.put("sess_a", "over", &vec![b'a'; 100_001]).await?;
    world.server.promote(&world.inference.secret, "sess_a", &at).await?.ok()?;
    let reply = world.server.promote(&world.inference.secret, "sess_a", &over).await?;
    reply.error(413, "Request payload too large")?;
    ensure!(world.instance.document_blobs()?.len() == 1);
    Ok(())
}

#[tokio::test]
async fn the_default_limit_is_100_mib() -> Result<()> {
    let world = World::start("").await?;
    sparse(&world, "sess_a", "over", (100 << 20) + 1).await?;
    world.server.promote(&world.inference.secret, "sess_a", &file_id("over")).await?.envelope(413)?;
    Ok(())
}

#[tokio::test]
async fn a_full_quota_is_a_403_with_the_figures_and_is_never_exceeded() -> Result<()> {
    let world = World::start("[limits]\nworkspace_quota_bytes = 1000000\n").await?;
    let id = world.instance.put("sess_a", "a", &vec![b'a'; 100_000]).await?;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let (call, address) = (promotion(&world.inference.secret, "sess_a", &id), world.server.address());
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
    ensure!(world.instance.document_blobs()?.len() == 10);
    ensure!(used_bytes(&world).await? == 1_000_000);

    // A workspace's quota is its own.
    let workspace = world.instance.workspace("other").await?;
    let other = world.instance.key(&["--name", "o", "--workspace", &workspace]).await?;
    std::fs::write(world.instance.container_file(&workspace, "sess_a", "a")?, b"x")?;
    world.server.promote(&other.secret, "sess_a", &file_id("a")).await?.ok()?;
    Ok(())
}

/// What the default workspace's documents hold, those in the making included, as a refused promotion tells it.
pub async fn used_bytes(world: &World) -> Result<u64> {
    sparse(world, "sess_probe", "larger-than-any-quota", 90 << 20).await?;
    let reply = world.server.promote(&world.inference.secret, "sess_probe", &file_id("larger-than-any-quota")).await?;
    let envelope = reply.envelope(403)?;
    envelope["error"]["metadata"]["used_bytes"].as_u64().with_context(|| format!("no used_bytes: {envelope}"))
}
