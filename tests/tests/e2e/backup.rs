//! Backup, restore, and downloads.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tollgate_tests::{Instance, SecondHand};

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
        (Vec::new(), "not a Tollgate backup"),
        (b"PK\x03\x04 some other archive".to_vec(), "not a Tollgate backup"),
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
async fn damaged_document_is_reported_and_never_replaces_a_stored_one() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let document = promote(&gateway, "a.csv").await?;
    let blob = gateway.instance.document_blobs()?.pop().context("no blob")?;
    std::fs::write(&blob, CONTENT.to_ascii_uppercase())?;
    let said = String::from_utf8(gateway.instance.run(&["document", "get", &document]).await?.stderr)?;
    ensure!(said.contains("the server did not answer") || said.contains("incomplete"), "{said}");
    let file = gateway.instance.path().join("b");
    let name = file.display().to_string();
    let made = gateway.instance.run(&["backup", &name]).await?;
    let said = String::from_utf8(made.stderr)?;
    ensure!(made.status.code() == Some(1) && said.contains(&document), "{said}");
    ensure!(file.exists(), "the backup is written all the same");

    let other = Instance::new("")?;
    let said = other.refused(&["restore", &name]).await?;
    ensure!(said.contains("another hash") && !other.database().exists(), "{said}");
    ensure!(other.run(&["restore", &name, "--accept-problems"]).await?.status.success(), "not restored");

    // The database is lost, and the documents are not.
    let other = Instance::new("")?;
    let target = other.blobs().join(blob.strip_prefix(gateway.instance.blobs())?);
    std::fs::create_dir_all(target.parent().context("no folder")?)?;
    std::fs::write(&target, CONTENT)?;
    let said = other.refused(&["restore", &name, "--accept-problems"]).await?;
    ensure!(said.contains("with other content"), "{said}");
    ensure!(std::fs::read(&target)? == CONTENT, "the good bytes were replaced");
    Ok(())
}

#[tokio::test]
async fn damaged_document_row_is_named_and_the_others_are_saved() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let damaged = promote(&gateway, "a.csv").await?;
    let whole = promote(&gateway, "b.csv").await?;
    let database = SecondHand::open(&gateway.instance.database()).await?;
    database.execute(&format!("UPDATE documents SET created_at = 'yesterday' WHERE id = '{damaged}'")).await?;
    database.close().await?;
    let file = gateway.instance.path().join("b");
    let name = file.display().to_string();
    let made = gateway.instance.run(&["backup", &name, "--json"]).await?;
    let said = String::from_utf8(made.stderr)?;
    ensure!(made.status.code() == Some(1) && said.contains(&damaged) && !said.contains(&whole), "{said}");
    let report: Value = serde_json::from_slice(&made.stdout)?;
    ensure!(report["verified"] == false && report["documents"] == 1, "{report}");
    ensure!(report["problems"].as_array().map(Vec::len) == Some(1), "{report}");

    let other = Instance::new("")?;
    let said = other.refused(&["restore", &name]).await?;
    ensure!(said.contains(&damaged) && said.contains("1 problems"), "{said}");
    ensure!(other.run(&["restore", &name, "--accept-problems"]).await?.status.success(), "not restored");
    let got = other.run(&["document", "get", &whole]).await?;
    ensure!(got.status.success() && got.stdout == CONTENT, "{got:?}");
    Ok(())
}

#[tokio::test]
async fn restore_is_rejected_beside_the_log_of_a_lost_database() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let file = gateway.instance.path().join("b");
    backup(&gateway.instance, &file).await?;
    let name = file.display().to_string();
    for suffix in ["-wal", "-shm", ".restoring"] {
        let other = Instance::new("")?;
        let left = format!("{}{suffix}", other.database().display());
        std::fs::create_dir_all(other.path().join("data"))?;
        std::fs::write(&left, "left behind")?;
        let said = other.refused(&["restore", &name]).await?;
        ensure!(said.contains(suffix) && !other.database().exists(), "{suffix}: {said}");
        std::fs::remove_file(&left)?;
        ensure!(other.run(&["restore", &name]).await?.status.success(), "{suffix}");
    }
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
    ensure!(said.contains("not found"), "{said}");
    let other = gateway.instance.workspace("other").await?;
    for arguments in [vec!["document", "get", &document], vec!["document", "rm", &document]] {
        let said = gateway.instance.refused(&[&arguments[..], &["--workspace", &other]].concat()).await?;
        ensure!(said.contains(&format!("file \"{document}\" not found")), "{said}");
    }
    gateway.instance.json(&["document", "rm", &document]).await?;
    let said = gateway.instance.refused(&["document", "get", &document]).await?;
    ensure!(said.contains("not found"), "{said}");
    ensure!(gateway.instance.document_blobs()?.is_empty(), "its bytes are still there");
    ensure!(gateway.instance.json(&["audit", "list"]).await?.to_string().contains("document.delete"), "not audited");
    Ok(())
}
