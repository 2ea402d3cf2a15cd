//! The check of a credential without a billed call.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use adapters_provider::{CredentialCheck, ProviderSettings, check_connection, check_credential};
use domain::routing::Wire;
use domain::secret::SecretString;
use support::{AMPLE, Upstream, read_request};
use tokio::io::AsyncWriteExt;

/// Serves `GET /v1/models` with one status for the right key and another one for all other requests.
async fn provider(right: u16, other: u16) -> String {
    let upstream = Upstream::start(move |mut socket| async move {
        while let Some((head, body)) = read_request(&mut socket).await {
            assert!(head.starts_with("GET /v1/models HTTP/1.1\r\n") && body.is_empty(), "{head}");
            assert!(!head.contains("content-"), "{head}");
            let status = if head.contains("authorization: Bearer sk-right\r\n") { right } else { other };
            let response = format!("HTTP/1.1 {status} .\r\ncontent-length: 2\r\n\r\n{{}}");
            if socket.write_all(response.as_bytes()).await.is_err() {
                break;
            }
        }
    });
    upstream.await.base_url()
}

async fn check(base_url: &str, key: Option<&str>) -> CredentialCheck {
    let client = support::client_of(&support::settings());
    let usual = ProviderSettings::new("acme".parse().unwrap(), base_url, Wire::SystemOne);
    let settings = ProviderSettings { api_key: key.map(|key| SecretString::new(key.to_owned())), ..usual };
    check_credential(&client, &support::clock(), &settings, AMPLE).await.unwrap()
}

#[tokio::test]
async fn credential_is_accepted_if_the_list_needs_it() {
    let base_url = provider(200, 401).await;
    assert_eq!(check(&base_url, Some("sk-right")).await, CredentialCheck::Accepted);
    assert_eq!(
        check(&base_url, Some("sk-wrong")).await,
        CredentialCheck::Rejected("GET models answered 401".to_owned())
    );
    let unknown = |reason: &str| CredentialCheck::Unknown(reason.to_owned());
    assert_eq!(check(&base_url, None).await, unknown("no API key is configured"));
    assert_eq!(check(&provider(200, 200).await, Some("sk-right")).await, unknown("its list of models is public"));
    assert_eq!(check(&provider(404, 404).await, Some("sk-right")).await, unknown("GET models answered 404"));
}

#[tokio::test]
async fn credential_check_fails_if_the_provider_is_away() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let expected = CredentialCheck::Failed("GET models failed: the connection was refused".to_owned());
    assert_eq!(check(&base_url, Some("sk-right")).await, expected);
}

/// Some providers report an invalid key as 400.
#[tokio::test]
async fn credential_is_rejected_by_the_body_of_an_error() {
    let body = r#"{"error":{"message":"API key not valid. Please pass a valid API key."}}"#;
    let answer = format!("HTTP/1.1 400 No\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let upstream = support::Upstream::answering(answer).await;
    let reason = "GET models answered 400: the provider rejected the API key".to_owned();
    assert_eq!(check(&upstream.base_url(), Some("sk-x")).await, CredentialCheck::Rejected(reason));
}

#[tokio::test]
async fn connection_is_checked_without_a_request() {
    let requests = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&requests);
    let upstream = support::Upstream::start(move |mut socket| {
        let counted = std::sync::Arc::clone(&counted);
        async move {
            while support::read_request(&mut socket).await.is_some() {
                counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        }
    })
    .await;
    let check = async |base_url: String| {
        let settings = ProviderSettings::new("acme".parse().unwrap(), base_url, Wire::SystemOne);
        check_connection(&support::client_of(&support::settings()), support::clock(), &settings).await.unwrap()
    };
    assert_eq!(check(upstream.base_url()).await, Ok(format!("{} accepts TCP connections", upstream.address)));
    let closed = support::closed_address().await;
    assert_eq!(check(format!("http://{closed}/v1")).await, Err(format!("{closed}: the connection was refused")));
    let unknown = check("http://name.invalid:8000/v1".to_owned()).await;
    assert_eq!(unknown, Err("name.invalid:8000: the host name was not found".to_owned()));
    assert_eq!(requests.load(std::sync::atomic::Ordering::SeqCst), 0);
}
