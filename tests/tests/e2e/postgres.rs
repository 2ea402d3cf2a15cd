//! Servers on PostgreSQL over TLS.

use anyhow::{Result, ensure};
use test_servers::{Authority, Postgres};
use tollgate_tests::{Instance, SecondHand};

use crate::gateway::{TestGateway, body};

#[tokio::test]
async fn server_works_over_verified_tls() -> Result<()> {
    let authority = Authority::create()?;
    let server = Postgres::start_encrypted(&authority)?;
    let database = server.create_database()?.replace("127.0.0.1", "localhost");
    let root = authority.certificate().display().to_string();
    let instance = Instance::on_database("", format!("{database}?sslmode=verify-full&sslrootcert={root}"))?;
    let gateway = TestGateway::of(instance).await?;
    gateway.decide(body("sandbox/decider")).await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    let plain = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                 WHERE application_name = 'tollgate' AND NOT ssl";
    ensure!(hand.number(plain).await? == 0, "a connection is not encrypted");
    let encrypted = plain.replace("NOT ssl", "ssl");
    ensure!(hand.number(&encrypted).await? >= 2, "no connection of the server is encrypted");
    hand.close().await?;
    gateway.server.stop().await
}

/// The platform's authorities count where no other is named.
#[tokio::test]
async fn authorities_of_platform_are_trusted() -> Result<()> {
    let authority = Authority::create()?;
    let server = Postgres::start_encrypted(&authority)?;
    let database = server.create_database()?.replace("127.0.0.1", "localhost");
    let mut instance = Instance::on_database("", format!("{database}?sslmode=verify-full"))?;
    let error = instance.refused(&["migrate", "up"]).await?;
    ensure!(error.contains("sslrootcert=/path/to/ca.pem"), "{error}");
    instance.set_env("SSL_CERT_FILE", authority.certificate().display().to_string());
    let output = instance.run(&["migrate", "up"]).await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
