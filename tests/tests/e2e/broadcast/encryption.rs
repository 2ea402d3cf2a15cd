//! Destinations with encrypted secrets, and without their key.

use anyhow::{Result, ensure};
use tollgate_tests::{Behaviour, Instance, Upstream};

use super::{SECRET, collect, create, decide, local_receivers, wait_until, webhook};
use crate::gateway::TestGateway;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const WRONG_KEY: &str = "AQECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Returns true if a file of the database contains the secret of the destination.
fn holds_secret(instance: &Instance) -> Result<bool> {
    for suffix in ["", "-wal"] {
        let path = instance.database().with_file_name(format!("tollgate.db{suffix}"));
        let bytes = if path.exists() { std::fs::read(path)? } else { Vec::new() };
        if bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[tokio::test]
async fn deliveries_wait_for_the_key_of_their_destination() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let plain = local_receivers("");
    let encrypted = format!("{plain}[storage]\nencryption_key = \"env:SECRETS_KEY\"\n");
    let mut instance = Instance::new(&encrypted)?;
    instance.set_env("SECRETS_KEY", KEY);
    let mut gateway = TestGateway::of(instance).await?;
    create(&gateway, &webhook(&receiver)).await?;
    ensure!(!holds_secret(&gateway.instance)?, "the secret is stored in plain text");
    receiver.behave(Behaviour::status(503));
    let ids = decide(&gateway.server, &gateway.inference, 2).await?;
    wait_until(&gateway.instance, "pending", 2).await?;
    gateway.server.stop().await?;

    gateway.instance.configure(&plain)?;
    let said = gateway.instance.refused_serving().await?;
    ensure!(said.contains("are encrypted") && said.contains("storage.encryption_key"), "{said}");
    let report = gateway.instance.run(&["doctor"]).await?;
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    ensure!(report.contains("are encrypted"), "{report}");
    gateway.instance.json(&["key", "list"]).await?;
    gateway.instance.configure(&encrypted)?;
    gateway.instance.set_env("SECRETS_KEY", WRONG_KEY);
    let said = gateway.instance.refused_serving().await?;
    ensure!(said.contains("another key"), "{said}");
    wait_until(&gateway.instance, "pending", 2).await?;

    gateway.instance.set_env("SECRETS_KEY", KEY);
    receiver.behave(Behaviour::status(200));
    let server = gateway.instance.serve().await?;
    collect(&receiver, &ids).await?;
    server.stop().await
}

#[tokio::test]
async fn destination_is_deleted_after_a_loss_of_the_key() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let plain = local_receivers("");
    let mut instance = Instance::new(&format!("{plain}[storage]\nencryption_key = \"env:SECRETS_KEY\"\n"))?;
    instance.set_env("SECRETS_KEY", KEY);
    let gateway = TestGateway::of(instance).await?;
    let id = create(&gateway, &webhook(&receiver)).await?;
    gateway.server.stop().await?;
    gateway.instance.configure(&plain)?;
    let said = gateway.instance.refused_serving().await?;
    ensure!(said.contains(&id), "it names no destination: {said}");
    gateway.instance.json(&["destination", "delete", &id]).await?;
    let server = gateway.instance.serve().await?;
    create(&TestGateway { server, ..gateway }, &webhook(&receiver)).await?;
    Ok(())
}

#[tokio::test]
async fn only_servers_and_users_of_secrets_need_the_variable_of_the_key() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let encrypted = format!("{}[storage]\nencryption_key = \"env:SECRETS_KEY\"\n", local_receivers(""));
    let mut instance = Instance::new(&encrypted)?;
    instance.set_env("SECRETS_KEY", KEY);
    let mut gateway = TestGateway::of(instance).await?;
    create(&gateway, &webhook(&receiver)).await?;
    gateway.server.stop().await?;
    gateway.instance.set_env("SECRETS_KEY", "");
    for command in [["key", "list"], ["workspace", "list"], ["migrate", "status"]] {
        gateway.instance.json(&command).await?;
    }
    let said = gateway.instance.refused(&["destination", "list"]).await?;
    ensure!(said.contains("storage.encryption_key names an environment variable that is not set"), "{said}");
    let said = gateway.instance.refused_serving().await?;
    ensure!(said.contains("storage.encryption_key names an environment variable that is not set"), "{said}");
    let report = gateway.instance.run(&["config", "check"]).await?;
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    ensure!(report.contains("encryption key") && report.contains("not set"), "{report}");
    gateway.instance.set_env("SECRETS_KEY", KEY);
    gateway.instance.json(&["destination", "list"]).await?;
    Ok(())
}

#[tokio::test]
async fn plain_secrets_are_read_with_a_key_and_encrypted_when_changed() -> Result<()> {
    let receiver = Upstream::start(Behaviour::status(200)).await?;
    let plain = local_receivers("");
    let gateway = TestGateway::start(&plain).await?;
    let id = create(&gateway, &webhook(&receiver)).await?;
    gateway.server.stop().await?;
    ensure!(holds_secret(&gateway.instance)?, "this test looks in the wrong place");
    std::fs::write(gateway.instance.path().join("secrets.key"), KEY)?;
    gateway.instance.configure(&format!("{plain}[storage]\nencryption_key = \"file:secrets.key\"\n"))?;
    let report = gateway.instance.run(&["doctor"]).await?;
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    ensure!(report.contains("1 in plain text"), "{report}");
    gateway.instance.json(&["destination", "update", &id, "--name", "changed"]).await?;
    let report = gateway.instance.run(&["doctor"]).await?;
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    ensure!(report.contains("1 encrypted, 0 in plain text"), "{report}");
    let server = gateway.instance.serve().await?;
    decide(&server, &gateway.inference, 1).await?;
    wait_until(&gateway.instance, "pending", 0).await?;
    server.stop().await
}
