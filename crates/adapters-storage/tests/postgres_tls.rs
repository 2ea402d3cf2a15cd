//! Encrypted connections to PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::error::Error;
use std::time::Duration;

use adapters_storage::{Database, StorageSettings};
use common::clock;
use domain::error::StoreError;
use domain::system::HealthProbe;
use sea_orm::{ConnectionTrait, DbBackend, Statement};
use test_servers::{Authority, CERTIFIED_USER, Postgres};
use tokio::sync::OnceCell;

/// The server of this test program, and the authority of its certificate.
static SERVER: OnceCell<(Postgres, Authority)> = OnceCell::const_new();

async fn server() -> &'static (Postgres, Authority) {
    let start = async || {
        let authority = Authority::create().unwrap();
        (Postgres::start_encrypted(&authority).unwrap(), authority)
    };
    SERVER.get_or_init(start).await
}

fn reason(error: &StoreError) -> String {
    error.source().map(ToString::to_string).unwrap_or_default()
}

/// Migrates a database, and returns the encrypted connections that the server counts then.
async fn encrypted_connections(url: &str) -> Result<i64, String> {
    let settings = StorageSettings { busy_timeout: Duration::from_secs(10), ..StorageSettings::new(url) };
    let database = Database::open(&settings, clock()).await.map_err(|error| reason(&error))?;
    database.migrate().await.map_err(|error| reason(&error))?;
    database.probe().await.map_err(|error| reason(&error))?;
    let base = url.split_once('?').map_or(url, |(base, _)| base).replace("certified@", "tollgate@");
    let raw = sea_orm::Database::connect(format!("{base}?sslmode=require")).await.unwrap();
    let count = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl \
                 AND application_name = 'tollgate' AND datname = current_database()";
    let row = raw.query_one_raw(Statement::from_string(DbBackend::Postgres, count)).await.unwrap().unwrap();
    database.close().await;
    Ok(row.try_get_by_index(0).unwrap())
}

/// Creates a database, and returns its URL with a host and parameters.
async fn url(host: &str, parameters: &str) -> String {
    let (server, _) = server().await;
    format!("{}?{parameters}", server.create_database().unwrap().replace("127.0.0.1", host))
}

fn root(authority: &Authority) -> String {
    format!("sslrootcert={}", authority.certificate().display())
}

#[tokio::test]
async fn connection_is_encrypted_with_require_and_with_verified_certificate() {
    let (_, authority) = server().await;
    let verified = format!("sslmode=verify-full&{}", root(authority));
    for (host, parameters) in
        [("127.0.0.1", "sslmode=require"), ("localhost", &verified), ("localhost", &root(authority))]
    {
        let count = encrypted_connections(&url(host, parameters).await).await.unwrap();
        assert!(count >= 2, "{parameters}: {count}");
    }
}

#[tokio::test]
async fn verification_rejects_other_authorities_and_other_hosts() {
    let (_, authority) = server().await;
    let other = Authority::create().unwrap();
    for (host, parameters, expected) in [
        ("localhost", "sslmode=verify-full".to_owned(), "sslrootcert=/path/to/ca.pem in storage.url"),
        ("localhost", root(&other), "sslrootcert=/path/to/ca.pem in storage.url"),
        ("127.0.0.1", root(authority), "use a host name in storage.url that the server's certificate contains"),
        ("localhost", "sslmode=disable".to_owned(), "add sslmode=verify-full to storage.url"),
        ("localhost", "application_name=tollgate".to_owned(), "add sslmode=verify-full to storage.url"),
    ] {
        let error = encrypted_connections(&url(host, &parameters).await).await.unwrap_err();
        assert!(error.contains(expected), "{parameters}: {error}");
    }
}

#[tokio::test]
async fn client_certificate_identifies_user() {
    let (_, authority) = server().await;
    let client = authority.issue(CERTIFIED_USER).unwrap();
    let files = format!("sslcert={}&sslkey={}", client.certificate.display(), client.key.display());
    let certified = |url: String| url.replace("tollgate@", &format!("{CERTIFIED_USER}@"));
    let with = certified(url("localhost", &format!("{}&{files}", root(authority))).await);
    assert!(encrypted_connections(&with).await.unwrap() >= 2);
    let without = certified(url("localhost", &root(authority)).await);
    let error = encrypted_connections(&without).await.unwrap_err();
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn server_without_encryption_is_rejected() {
    let server = Postgres::start().unwrap();
    for mode in ["require", "verify-full"] {
        let url = format!("{}?sslmode={mode}", server.create_database().unwrap());
        let error = encrypted_connections(&url).await.unwrap_err();
        assert!(error.contains("set ssl = on in the server's configuration, or sslmode=disable"), "{error}");
    }
}
