//! The files of containers over HTTP.

use std::os::unix::fs::symlink;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::Value;

use crate::downloads::download;
use crate::files::call;
use crate::gateway::TestGateway;
use crate::promote::file_id;

async fn list(gateway: &TestGateway, query: &str) -> Result<Value> {
    gateway.server.send(&call(gateway, Method::GET, &format!("/containers/sess_a/files{query}"))).await?.ok()
}

#[tokio::test]
async fn container_files_are_listed_downloaded_and_deleted() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    for (path, content) in [("out/b.csv", "bb"), ("out.txt", "a"), ("éß/🦀 \"x\".txt", "crab")] {
        gateway.instance.put("sess_a", path, content.as_bytes()).await?;
    }
    let mut paths: Vec<String> = Vec::new();
    let mut after = String::new();
    loop {
        let page = list(&gateway, &format!("?limit=1{after}")).await?;
        let row = &page["data"][0];
        ensure!(row["source"] == "assistant" && row["container_id"] == "sess_a", "{page}");
        paths.push(row["path"].as_str().context("no path")?.to_owned());
        if page["has_more"] == false {
            break;
        }
        after = format!("&after={}", page["last_id"].as_str().context("no last_id")?);
    }
    ensure!(paths == ["out.txt", "out/b.csv", "éß/🦀 \"x\".txt"], "{paths:?}");

    let path = format!("/containers/sess_a/files/{}", file_id("éß/🦀 \"x\".txt"));
    let content = download(&gateway, &format!("{path}/content"), &[]).await?;
    ensure!(content.status == 200 && content.body == "crab", "{}: {}", content.status, content.text());
    ensure!(content.header("content-disposition").ends_with("filename*=UTF-8''%F0%9F%A6%80%20%22x%22.txt"));
    let document =
        gateway.server.promote(&gateway.inference.secret, "sess_a", &file_id("éß/🦀 \"x\".txt")).await?.ok()?;
    let deleted = gateway.server.send(&call(&gateway, Method::DELETE, &path)).await?.ok()?;
    ensure!(deleted["object"] == "container.file.deleted" && deleted["deleted"] == true, "{deleted}");
    for (method, end) in [(Method::GET, ""), (Method::GET, "/content"), (Method::DELETE, "")] {
        gateway.server.send(&call(&gateway, method, &format!("{path}{end}"))).await?.envelope(404)?;
    }
    let id = document["id"].as_str().context("no id")?;
    let kept = download(&gateway, &format!("/files/{id}/content"), &[]).await?;
    ensure!(kept.body == "crab", "the document went with its source");
    Ok(())
}

#[tokio::test]
async fn file_is_written_to_each_free_name_and_replaces_no_folder_or_link() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    for path in ["a/b/c", "a/b", "a"] {
        gateway.instance.put("sess_a", path, b"x").await?;
        let file = format!("/containers/sess_a/files/{}", file_id(path));
        gateway.server.send(&call(&gateway, Method::DELETE, &file)).await?.ok()?;
    }
    let workspace = gateway.instance.json(&["workspace", "list"]).await?["data"][0]["id"].clone();
    let workspace = workspace.as_str().context("no workspace")?;
    let container = gateway.instance.blobs().join(format!("containers/{workspace}/sess_a"));
    ensure!(std::fs::read_dir(&container)?.count() == 0, "a deletion left a folder");
    std::fs::create_dir(container.join("folder"))?;
    symlink("/tmp", container.join("link"))?;
    ensure!(Command::new("mkfifo").arg(container.join("pipe")).status()?.success());
    let put = |path: &str| {
        let path = format!("/api/v1/containers/sess_a/files?path={path}&workspace_id={workspace}");
        tollgate_tests::Call::new(Method::PUT, path).body("content").key(&gateway.management.secret)
    };
    for path in ["folder", "link/x", "pipe/x"] {
        gateway.server.send(&put(path)).await?.error(409, "in the way")?;
    }
    // Links and pipes are no files, so a file replaces them.
    for path in ["link", "pipe", "folder/x"] {
        gateway.server.send(&put(path)).await?.ok()?;
    }
    ensure!(!std::path::Path::new("/tmp/x").exists(), "a link was followed");
    Ok(())
}

#[tokio::test]
async fn concurrent_deletions_find_the_file_once() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let path = format!("/containers/sess_a/files/{}", file_id("a.txt"));
    for round in 0..20 {
        gateway.instance.put("sess_a", "a.txt", b"a").await?;
        let delete = || async { anyhow::Ok(gateway.server.send(&call(&gateway, Method::DELETE, &path)).await?.status) };
        let (one, two, three, four) = tokio::try_join!(delete(), delete(), delete(), delete())?;
        let mut found = [one, two, three, four];
        found.sort_unstable();
        ensure!(found == [200, 404, 404, 404], "round {round}: {found:?}");
    }
    Ok(())
}

#[tokio::test]
async fn links_and_special_files_are_absent() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let workspace = gateway.instance.default_workspace().await?;
    let secret = gateway.instance.path().join("secret");
    std::fs::write(&secret, "secret")?;
    let at = |name: &str| gateway.instance.container_file(&workspace, "sess_a", name);
    std::fs::write(at("file")?, "x")?;
    symlink(&secret, at("symbolic")?)?;
    std::fs::hard_link(&secret, at("hard")?)?;
    symlink(gateway.instance.path(), at("folder")?)?;
    std::fs::create_dir(at("empty")?)?;
    ensure!(Command::new("mkfifo").arg(at("pipe")?).status()?.success(), "no pipe");
    let listed = list(&gateway, "").await?;
    let rows = listed["data"].as_array().context("no data")?;
    ensure!(rows.len() == 1 && rows[0]["path"] == "file", "{listed}");
    for name in ["symbolic", "hard", "folder", "folder/secret", "empty", "pipe"] {
        for (method, end) in
            [(Method::GET, ""), (Method::GET, "/content"), (Method::HEAD, "/content"), (Method::DELETE, "")]
        {
            let path = format!("/containers/sess_a/files/{}{end}", file_id(name));
            let reply = gateway.server.send(&call(&gateway, method.clone(), &path)).await?;
            ensure!(reply.status == 404 && !reply.text().contains("secret"), "{method} {name}{end}: {}", reply.status);
        }
    }
    ensure!(std::fs::read(&secret)? == b"secret" && at("hard")?.exists(), "something was deleted");
    Ok(())
}
