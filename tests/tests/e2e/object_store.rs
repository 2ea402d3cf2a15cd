//! Container files and documents in a bucket.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use test_object_store::{ACCESS_KEY_ID, BUCKET, ObjectStore, SECRET_ACCESS_KEY};
use tokio::time::{Instant, sleep};
use tollgate_tests::{Call, Instance, files_below, promotion};

use crate::downloads::download;
use crate::gateway::{TestGateway, body};
use crate::promote::file_id;
use crate::stores::unavailable;

const CONTENT: &[u8] = b"loss,epoch\n0.5,1\n";
/// The time within which an outage is noticed.
const NOTICED: Duration = Duration::from_secs(20);

/// Returns an installation whose files are in the bucket, below a prefix.
fn instance(store: &ObjectStore, prefix: &str) -> Result<Instance> {
    let mut instance = Instance::new("")?;
    for (name, value) in [
        ("TOLLGATE__BLOBS__URL", format!("s3://{BUCKET}/{prefix}")),
        ("TOLLGATE__BLOBS__ENDPOINT", store.endpoint()),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY.to_owned()),
    ] {
        instance.set_env(name, value);
    }
    Ok(instance)
}

async fn start() -> Result<(ObjectStore, TestGateway)> {
    let store = ObjectStore::start()?;
    let gateway = TestGateway::of(instance(&store, "tollgate")?).await?;
    Ok((store, gateway))
}

/// Returns the objects of documents in the bucket.
fn document_objects(store: &ObjectStore) -> Result<Vec<PathBuf>> {
    files_below(&store.bucket().join("tollgate/documents"))
}

fn id_of(document: &Value) -> Result<String> {
    Ok(document["id"].as_str().with_context(|| format!("no id in {document}"))?.to_owned())
}

async fn promote(gateway: &TestGateway, path: &str) -> Result<String> {
    let file = gateway.instance.put("sess_a", path, CONTENT).await?;
    id_of(&gateway.server.promote(&gateway.inference.secret, "sess_a", &file).await?.ok()?)
}

#[tokio::test]
async fn container_files_and_documents_are_objects_of_the_bucket() -> Result<()> {
    let (store, gateway) = start().await?;
    let path = "plots/a b+c%2F é.csv";
    let document = promote(&gateway, path).await?;
    let workspace = gateway.instance.default_workspace().await?;
    let object = store.bucket().join("tollgate/containers").join(&workspace).join("sess_a").join(path);
    ensure!(std::fs::read(object)? == CONTENT, "the file is not at its name");
    ensure!(document_objects(&store)?.len() == 1);
    ensure!(!gateway.instance.blobs().exists(), "a local folder was created");
    let got = gateway.instance.run(&["container", "get", "sess_a", path]).await?;
    ensure!(got.status.success() && got.stdout == CONTENT, "{got:?}");
    let listed = gateway.instance.json(&["container", "list", "sess_a"]).await?;
    ensure!(listed.to_string().contains("plots/a b+c%2F é.csv"), "{listed}");
    let content = format!("/files/{document}/content");
    let whole = download(&gateway, &content, &[]).await?;
    ensure!(whole.status == 200 && whole.body == CONTENT, "{}: {}", whole.status, whole.text());
    let part = download(&gateway, &content, &[("range", "bytes=5-9")]).await?;
    ensure!(part.status == 206 && part.body == CONTENT[5..10], "{}: {}", part.status, part.text());
    gateway.instance.json(&["container", "rm", "sess_a", path]).await?;
    gateway.server.promote(&gateway.inference.secret, "sess_a", &file_id(path)).await?.envelope(404)?;
    let got = gateway.instance.run(&["document", "get", &document]).await?;
    ensure!(got.status.success() && got.stdout == CONTENT, "{got:?}");
    let doctor = gateway.instance.json(&["doctor"]).await?.to_string();
    ensure!(doctor.contains(&format!("s3://{BUCKET}/tollgate can be written")), "{doctor}");
    gateway.instance.json(&["document", "rm", &document]).await?;
    ensure!(document_objects(&store)?.is_empty(), "the bytes of a deleted document are kept");
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn replicas_share_a_bucket() -> Result<()> {
    let (store, gateway) = start().await?;
    let beside = gateway.instance.serve_beside().await?;
    let file = gateway.instance.put("sess_a", "a", CONTENT).await?;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..16 {
        let address = if number % 2 == 0 { gateway.server.address() } else { beside.address() };
        let key = format!("k{}", number / 4);
        let call = promotion(&gateway.inference.secret, "sess_a", &file).header("idempotency-key", key);
        calls.spawn(async move { call.send(address).await });
    }
    let mut documents = std::collections::BTreeSet::new();
    while let Some(reply) = calls.join_next().await {
        documents.insert(id_of(&reply??.ok()?)?);
    }
    ensure!(documents.len() == 4 && document_objects(&store)?.len() == 4, "{documents:?}");
    beside.stop().await?;
    gateway.server.stop().await
}

/// Repeats a promotion until it succeeds.
async fn wait_until_promoted(gateway: &TestGateway, file: &str) -> Result<()> {
    let since = Instant::now();
    loop {
        let reply = gateway.server.promote(&gateway.inference.secret, "sess_a", file).await?;
        if reply.status == 200 {
            return Ok(());
        }
        unavailable(&reply)?;
        ensure!(since.elapsed() < NOTICED, "still {}", reply.text());
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn outage_of_the_object_store_makes_promotions_unavailable_and_nothing_else() -> Result<()> {
    let (mut store, gateway) = start().await?;
    let document = promote(&gateway, "a").await?;
    let file = file_id("a");
    let ready = Call::get("/health/ready");
    store.stop();
    let since = Instant::now();
    for file in [&file, &file_id("absent")] {
        unavailable(&gateway.server.promote(&gateway.inference.secret, "sess_a", file).await?)?;
    }
    ensure!(since.elapsed() < NOTICED, "it took {:?}", since.elapsed());
    let degraded = gateway.server.send(&ready).await?.ok()?;
    ensure!(degraded == json!({"status": "degraded", "unavailable": ["blobs"]}), "{degraded}");
    gateway.decide(body("sandbox/decider")).await?;
    let said = gateway.instance.refused(&["document", "get", &document]).await?;
    ensure!(said.contains("unavailable"), "{said}");
    let doctor = String::from_utf8(gateway.instance.run(&["doctor"]).await?.stdout)?;
    ensure!(doctor.contains("cannot connect") && doctor.contains(&format!("s3://{BUCKET}/tollgate")), "{doctor}");
    // A restart during the outage serves decisions too.
    let beside = gateway.instance.serve_beside().await?;
    ensure!(beside.output().contains("object store unavailable at start"), "{}", beside.output());
    beside.stop().await?;

    store.resume()?;
    wait_until_promoted(&gateway, &file).await?;
    ensure!(gateway.server.send(&ready).await?.ok()?["status"] == "ok");
    ensure!(document_objects(&store)?.len() == 2, "a failed promotion left a document");
    let output = gateway.server.output();
    ensure!(!output.contains(SECRET_ACCESS_KEY) && !output.contains("Signature="), "{output}");
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn bucket_that_disappears_is_an_outage_and_not_a_missing_file() -> Result<()> {
    let (store, gateway) = start().await?;
    let file = gateway.instance.put("sess_a", "a", CONTENT).await?;
    let away = store.folder().join("away-bucket");
    std::fs::rename(store.bucket(), &away)?;
    unavailable(&gateway.server.promote(&gateway.inference.secret, "sess_a", &file).await?)?;
    let degraded = gateway.server.send(&Call::get("/health/ready")).await?.ok()?;
    ensure!(degraded["unavailable"] == json!(["blobs"]), "{degraded}");
    std::fs::rename(&away, store.bucket())?;
    wait_until_promoted(&gateway, &file).await?;
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn promotion_that_is_killed_leaves_no_document_and_its_object_is_removed() -> Result<()> {
    const SIZE: u64 = 90_000_000;
    let (store, gateway) = start().await?;
    let workspace = gateway.instance.default_workspace().await?;
    let small = gateway.instance.put("sess_a", "small", b"x").await?;
    let large = store.bucket().join("tollgate/containers").join(&workspace).join("sess_a/large");
    File::create(large)?.set_len(SIZE)?;
    let call = promotion(&gateway.inference.secret, "sess_a", &file_id("large"));
    let calling = call.send(gateway.server.address());
    tokio::pin!(calling);
    let copied = async {
        while document_objects(&store)?.is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        reply = &mut calling => anyhow::bail!("it was done before the process died: {}", reply?.text()),
        copied = copied => copied?,
    }
    let TestGateway { instance, server, inference, management } = gateway;
    server.kill().await?;
    ensure!(calling.await.is_err(), "an answer came from a dead process");
    ensure!(instance.json(&["document", "list"]).await?["data"] == json!([]), "half a document is visible");
    // An object whose row was removed before its bytes.
    let orphan = store.bucket().join("tollgate/documents").join(&workspace);
    let orphan = orphan.join("tgfile_00000000000000000000000000000001");
    let file = File::create(&orphan)?;
    let now = file.metadata()?.modified()?;
    file.set_modified(now - Duration::from_hours(2))?;

    let gateway = TestGateway { server: instance.serve().await?, instance, inference, management };
    let since = Instant::now();
    while orphan.exists() || !document_objects(&store)?.is_empty() {
        ensure!(since.elapsed() < NOTICED, "{:?} is left: {}", document_objects(&store)?, gateway.server.output());
        sleep(Duration::from_millis(20)).await;
    }
    gateway.server.promote(&gateway.inference.secret, "sess_a", &small).await?.ok()?;
    gateway.server.stop().await
}

#[tokio::test]
async fn backup_contains_documents_of_a_bucket_and_restores_them_elsewhere() -> Result<()> {
    let (store, gateway) = start().await?;
    let document = promote(&gateway, "a.csv").await?;
    let file = gateway.instance.path().join("backup.tar.zst").display().to_string();
    let made = gateway.instance.json(&["backup", &file]).await?;
    ensure!(made["verified"] == true && made["documents"] == 1, "{made}");
    for (other, place) in [
        (instance(&store, "restored")?, format!("s3://{BUCKET}/restored")),
        (Instance::new("")?, "data/blobs".to_owned()),
    ] {
        let said = String::from_utf8(other.run(&["restore", &file]).await?.stdout)?;
        ensure!(said.contains("1 documents") && said.contains(&place), "{said}");
        let got = other.run(&["document", "get", &document]).await?;
        ensure!(got.status.success() && got.stdout == CONTENT, "{got:?}");
    }
    Ok(())
}

#[tokio::test]
async fn migrate_up_creates_a_missing_bucket_when_asked() -> Result<()> {
    let store = ObjectStore::start()?;
    let mut instance = instance(&store, "tollgate")?;
    instance.set_env("TOLLGATE__BLOBS__URL", "s3://new-bucket/files");
    let bucket = store.folder().join("new-bucket");
    instance.json(&["migrate", "up"]).await?;
    ensure!(!bucket.exists(), "a bucket was created without --create-bucket");
    let said = instance.refused_serving().await?;
    ensure!(said.contains("migrate up --create-bucket"), "{said}");
    for said in ["created", "exists"] {
        let ended = instance.run(&["migrate", "up", "--create-bucket"]).await?;
        let noted = String::from_utf8(ended.stderr)?;
        ensure!(ended.status.success() && noted.contains(&format!("bucket of blobs.url: {said}")), "{noted}");
    }
    let gateway = TestGateway::of(instance).await?;
    promote(&gateway, "a").await?;
    ensure!(files_below(&bucket.join("files/documents"))?.len() == 1);
    gateway.server.stop().await?;
    let folder = Instance::new("")?;
    let said = folder.refused(&["migrate", "up", "--create-bucket"]).await?;
    ensure!(said.contains("blobs.url is a folder"), "{said}");
    Ok(())
}

#[tokio::test]
async fn server_does_not_start_with_a_bucket_that_rejects_it() -> Result<()> {
    let store = ObjectStore::start()?;
    for (name, value, expected) in [
        ("AWS_SECRET_ACCESS_KEY", "wrong", "SignatureDoesNotMatch"),
        ("AWS_SECRET_ACCESS_KEY", "", "an access key has an id and a secret"),
        ("TOLLGATE__BLOBS__URL", "s3://no-such-bucket", "create the bucket, or correct blobs.url"),
        ("TOLLGATE__BLOBS__CA_FILE", "absent.pem", "absent.pem cannot be read"),
    ] {
        let mut instance = instance(&store, "tollgate")?;
        instance.set_env(name, value);
        let said = instance.refused_serving().await?;
        ensure!(said.contains(expected) && !said.contains(SECRET_ACCESS_KEY), "{name}={value}: {said}");
    }
    let mut instance = instance(&store, "tollgate")?;
    instance.set_env("AWS_ACCESS_KEY_ID", "");
    instance.set_env("AWS_SECRET_ACCESS_KEY", "");
    let said = instance.refused_serving().await?;
    ensure!(said.contains("no credentials for blobs.url: set AWS_ACCESS_KEY_ID"), "{said}");
    let checked = instance.run(&["config", "check"]).await?;
    ensure!(String::from_utf8_lossy(&checked.stdout).contains("no credentials for blobs.url"), "{checked:?}");
    Ok(())
}
