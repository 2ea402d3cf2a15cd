//! Backup, restore, and downloads.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tollgate_tests::Instance;

use crate::gateway::{TestGateway, body};

const CONTENT: &[u8] = b"loss,epoch\n0.5,1\n";

/// Promotes a file; returns the document's id.
async fn promote(gateway: &TestGateway, path: &str) -> Result<String> {
    let file = gateway.instance.put("sess_a", path, CONTENT).await?;
    let document = gateway.server.promote(&gateway.inference.secret, "sess_a", &file).await?.ok()?;
    Ok(document["id"].as_str().context("no id")?.to_owned())
}

async fn backup(instance: &Instance, file: &Path) -> Result<Value> {
    instance.json(&["backup", &file.display().to_string()]).await
}

#[tokio::test]
async fn backup_under_load_restores_documents_keys_and_charges_elsewhere() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let document = promote(&gateway, "plots/loss.csv").await?;
    let deleted = promote(&gateway, "other.csv").await?;
    gateway.instance.json(&["document", "rm", &deleted]).await?;
    for _ in 0..20 {
        gateway.decide(body("sandbox/decider")).await?;
    }
    let file = gateway.instance.path().join("backup.tar.zst");
    let load = async {
        for _ in 0..200 {
            gateway.decide(body("sandbox/decider")).await?;
        }
        anyhow::Ok(())
    };
    let (made, load) = tokio::join!(backup(&gateway.instance, &file), load);
    load?;
    let made = made?;
    ensure!(made["verified"] == true && made["documents"] == 1, "{made}");
    let records = made["records"].as_u64().context("no records")?;
    ensure!((20..=220).contains(&records), "charges from before the backup are in it: {made}");
    ensure!(std::fs::metadata(&file)?.permissions().mode() & 0o777 == 0o600, "others can read it");
    ensure!(!gateway.instance.path().join("backup.tar.zst.partial").exists(), "the work folder is left behind");

    let other = Instance::new("")?;
    let said = String::from_utf8(other.run(&["restore", &file.display().to_string()]).await?.stdout)?;
    ensure!(said.contains("1 documents"), "{said}");
    let names = std::fs::read_dir(other.path().join("data"))?.map(|entry| Ok(entry?.file_name()));
    let mut names: Vec<_> = names.collect::<Result<_>>()?;
    names.sort();
    ensure!(names == ["blobs", "tollgate.db"], "{names:?}");

    let server = other.serve().await?;
    server.decide(&gateway.inference.secret, body("sandbox/decider")).await?.ok()?;
    let audit = other.json(&["doctor", "--audit"]).await?;
    ensure!(audit["ok"] == true && audit["records"].as_u64() == Some(records + 1), "{audit} after {made}");
    ensure!(other.json(&["audit", "verify"]).await?["verified"] == true, "the audit log is not whole");
    let entries = other.json(&["audit", "list"]).await?.to_string();
    ensure!(entries.contains("instance.restore"), "{entries}");
    let got = other.run(&["document", "get", &document]).await?;
    ensure!(got.status.success() && got.stdout == CONTENT, "{got:?}");
    let listed = other.json(&["document", "list"]).await?;
    ensure!(listed["data"].as_array().map(Vec::len) == Some(1) && listed["data"][0]["id"] == *document, "{listed}");
    Ok(())
}

#[tokio::test]
async fn backup_and_restore_do_not_overwrite_files() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let file = gateway.instance.path().join("b");
    let name = file.display().to_string();
    std::fs::write(&file, "precious")?;
    let said = gateway.instance.refused(&["backup", &name]).await?;
    ensure!(said.contains("never replaces a file"), "{said}");
    ensure!(std::fs::read(&file)? == b"precious", "the file was replaced");
    std::fs::remove_file(&file)?;
    backup(&gateway.instance, &file).await?;
    let said = gateway.instance.refused(&["restore", &name]).await?;
    ensure!(said.contains("never replaces a database"), "{said}");
    gateway.decide(body("sandbox/decider")).await?;

    std::fs::create_dir(gateway.instance.path().join("c.partial"))?;
    let said = gateway.instance.refused(&["backup", "c"]).await?;
    ensure!(said.contains("another backup to this file is running"), "{said}");
    Ok(())
}

#[tokio::test]
async fn damaged_backup_is_rejected_and_leaves_no_database() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    promote(&gateway, "a.csv").await?;
    let file = gateway.instance.path().join("b");
    backup(&gateway.instance, &file).await?;
    let whole = std::fs::read(&file)?;
    let other = Instance::new("")?;
    let damaged = other.path().join("damaged");
    let name = damaged.display().to_string();
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for (content, expected) in [
        (Vec::new(), "no backup of Tollgate"),
        (b"PK\x03\x04 some other archive".to_vec(), "no backup of Tollgate"),
        (whole[..whole.len() / 2].to_vec(), "cannot restore"),
        (whole[..whole.len() - 1].to_vec(), "cannot restore"),
        (flipped, "cannot restore"),
    ] {
        std::fs::write(&damaged, &content)?;
        let said = other.refused(&["restore", &name]).await?;
        ensure!(said.contains(expected), "{} bytes: {said}", content.len());
        ensure!(!other.database().exists(), "a database is in place after {said}");
    }
    std::fs::write(&damaged, &whole)?;
    other.json(&["restore", &name]).await.err();
    ensure!(other.run(&["restore", &name]).await?.status.code() == Some(1), "restored twice");
    ensure!(other.database().exists(), "the whole backup was not restored");
    Ok(())
}

#[tokio::test]
async fn container_files_and_documents_can_be_downloaded_and_deleted() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let document = promote(&gateway, "plots/a.csv").await?;
    let run = async |arguments: &[&str]| gateway.instance.run(arguments).await;
    let got = run(&["container", "get", "sess_a", "plots/a.csv"]).await?;
    ensure!(got.status.success() && got.stdout == CONTENT, "{got:?}");
    let target = gateway.instance.path().join("out");
    let written = gateway.instance.json(&["document", "get", &document, "--output", "out"]).await?;
    ensure!(written["size_bytes"] == CONTENT.len() && std::fs::read(&target)? == CONTENT, "{written}");
    let said = gateway.instance.refused(&["document", "get", &document, "--output", "out"]).await?;
    ensure!(said.contains("cannot create"), "{said}");

    gateway.instance.json(&["container", "rm", "sess_a", "plots/a.csv"]).await?;
    let said = gateway.instance.refused(&["container", "get", "sess_a", "plots/a.csv"]).await?;
    ensure!(said.contains("has no file plots/a.csv"), "{said}");
    let other = gateway.instance.workspace("other").await?;
    for arguments in [vec!["document", "get", &document], vec!["document", "rm", &document]] {
        let said = gateway.instance.refused(&[&arguments[..], &["--workspace", &other]].concat()).await?;
        ensure!(said.contains("has no document"), "{said}");
    }
    gateway.instance.json(&["document", "rm", &document]).await?;
    let said = gateway.instance.refused(&["document", "get", &document]).await?;
    ensure!(said.contains("has no document"), "{said}");
    ensure!(gateway.instance.document_blobs()?.is_empty(), "its bytes are still there");
    ensure!(gateway.instance.json(&["audit", "list"]).await?.to_string().contains("document.delete"), "not audited");
    Ok(())
}
