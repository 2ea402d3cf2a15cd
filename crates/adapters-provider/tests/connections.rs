//! Connections: reuse, HTTP/2, TLS, proxies.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::convert::Infallible;
use std::sync::Arc;

use adapters_provider::{ProviderSettings, http_provider};
use bytes::Bytes;
use domain::routing::{AttemptFailureKind, FailureCause, Wire};
use http::header::HOST;
use http::{Request, Response, Version};
use http_body_util::Full;
use http_client::{Http2, HttpClient, HttpClientError, HttpClientSettings, ProxySettings};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rstest::rstest;
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use support::{Upstream, closed, decide, fixture, provider, provider_with, read_request};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

#[tokio::test]
async fn connection_is_reused_by_sequential_calls() {
    let upstream = Upstream::answering(support::ok(support::ANSWER)).await;
    let provider = provider(&upstream);
    for _ in 0..20 {
        decide(&provider).await.unwrap();
    }
    assert_eq!(upstream.seen(), 1);
}

#[tokio::test]
async fn concurrent_calls_use_separate_connections() {
    // No call is answered before all have arrived.
    let all = Arc::new(tokio::sync::Barrier::new(3));
    let upstream = Upstream::start(move |mut socket| {
        let all = Arc::clone(&all);
        async move {
            while read_request(&mut socket).await.is_some() {
                all.wait().await;
                if socket.write_all(support::ok(support::ANSWER).as_bytes()).await.is_err() {
                    break;
                }
            }
        }
    })
    .await;
    let provider = provider(&upstream);
    let (a, b, c) = tokio::join!(decide(&provider), decide(&provider), decide(&provider));
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(upstream.seen(), 3);
}

#[tokio::test]
async fn connection_closes_after_non_json_answer() {
    let page = "<h1>hello</h1>";
    let upstream = Upstream::answering(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n{page}",
        page.len()
    ))
    .await;
    let provider = provider(&upstream);
    for _ in 0..2 {
        decide(&provider).await.unwrap_err();
    }
    assert_eq!(upstream.seen(), 2);
}

#[tokio::test]
async fn call_succeeds_after_idle_connection_closed() {
    let upstream = Upstream::start(|mut socket| async move {
        read_request(&mut socket).await;
        socket.write_all(support::ok(support::ANSWER).as_bytes()).await.unwrap();
    })
    .await;
    let provider = provider(&upstream);
    for _ in 0..3 {
        decide(&provider).await.unwrap();
        // Waits until the end of the connection has arrived.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(upstream.seen(), 3);
}

/// Returns a valid answer with the `host` header of the request as `seen-host`, and notes the HTTP version.
fn answer(request: &Request<Incoming>, versions: &Versions) -> Response<Full<Bytes>> {
    versions.lock().unwrap().push(request.version());
    let mut response = Response::builder().header("content-type", "application/json");
    if let Some(host) = request.headers().get(HOST) {
        response = response.header("seen-host", host);
    }
    response.body(Full::from(support::ANSWER)).unwrap()
}

type Versions = Arc<std::sync::Mutex<Vec<Version>>>;

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, h2: bool, versions: Versions) {
    let service = service_fn(|request| {
        let versions = Arc::clone(&versions);
        async move { Ok::<_, Infallible>(answer(&request, &versions)) }
    });
    let io = TokioIo::new(stream);
    // The client decides how a connection ends.
    let _ = if h2 {
        http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await
    } else {
        http1::Builder::new().serve_connection(io, service).await
    };
}

#[tokio::test]
async fn http2_by_prior_knowledge() {
    let versions = Versions::default();
    let noted = Arc::clone(&versions);
    let upstream = Upstream::start(move |socket| serve(socket, true, Arc::clone(&noted))).await;
    let settings = HttpClientSettings { http2: Http2::PriorKnowledge, ..support::settings() };
    let provider = provider_with(&settings, &upstream.base_url());
    decide(&provider).await.unwrap();
    let (a, b) = tokio::join!(decide(&provider), decide(&provider));
    assert!(a.is_ok() && b.is_ok());
    assert_eq!(*versions.lock().unwrap(), [Version::HTTP_2; 3]);
    assert_eq!(upstream.seen(), 1, "one connection carries all");
}

/// Starts a TLS server that offers these protocols.
async fn tls_upstream(offered: &'static [&'static str], versions: Versions) -> Upstream {
    start_tls(tls_config("server", None), offered, versions).await
}

/// Returns the configuration of a server with this certificate, which requires client certificates of an authority.
fn tls_config(name: &str, client_authority: Option<&str>) -> rustls::ServerConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let certificate = |file: &str| CertificateDer::from_pem_file(fixture(file)).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture(&format!("{name}-key.pem"))).unwrap();
    let verifier = client_authority.map_or_else(WebPkiClientVerifier::no_client_auth, |authority| {
        let mut roots = RootCertStore::empty();
        roots.add(certificate(authority)).unwrap();
        WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider)).build().unwrap()
    });
    rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate(&format!("{name}.pem"))], key)
        .unwrap()
}

async fn start_tls(mut config: rustls::ServerConfig, offered: &'static [&'static str], versions: Versions) -> Upstream {
    config.alpn_protocols = offered.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Upstream::start(move |socket| {
        let (acceptor, versions) = (acceptor.clone(), Arc::clone(&versions));
        async move {
            let Ok(stream) = acceptor.accept(socket).await else { return };
            let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            serve(stream, h2, versions).await;
        }
    })
    .await
}

fn trusting() -> HttpClientSettings {
    HttpClientSettings { extra_ca_file: Some(fixture("ca.pem")), ..support::settings() }
}

#[rstest]
#[case::the_server_picks_2(&["h2", "http/1.1"], Http2::Negotiated, Version::HTTP_2)]
#[case::the_server_picks_1(&["http/1.1"], Http2::Negotiated, Version::HTTP_11)]
#[case::the_server_picks_nothing(&[], Http2::Negotiated, Version::HTTP_11)]
#[case::switched_off(&["h2", "http/1.1"], Http2::Off, Version::HTTP_11)]
#[case::known(&["h2"], Http2::PriorKnowledge, Version::HTTP_2)]
#[tokio::test]
async fn tls_accepts_configured_authority(
    #[case] offered: &'static [&'static str],
    #[case] http2: Http2,
    #[case] spoken: Version,
) {
    let versions = Versions::default();
    let upstream = tls_upstream(offered, Arc::clone(&versions)).await;
    let settings = HttpClientSettings { http2, ..trusting() };
    for host in ["localhost", "127.0.0.1"] {
        let base_url = format!("https://{host}:{}/v1", upstream.address.port());
        let provider = provider_with(&settings, &base_url);
        for _ in 0..3 {
            decide(&provider).await.unwrap();
        }
    }
    assert_eq!(*versions.lock().unwrap(), [spoken; 6]);
    assert_eq!(upstream.seen(), 2, "a connection a pool");
}

#[tokio::test]
async fn host_header_is_sent_over_http1_only() {
    let client = support::client_of(&trusting());
    for (offered, expected) in [(&["h2"][..], None), (&["http/1.1"], Some("other.example"))] {
        let upstream = tls_upstream(offered, Versions::default()).await;
        let url = format!("https://localhost:{}/", upstream.address.port());
        let request = Request::get(url).header(HOST, "other.example").body(Bytes::new()).unwrap();
        let answer = client.send(request).await.unwrap();
        assert_eq!(answer.headers().get("seen-host").map(|host| host.to_str().unwrap()), expected, "{offered:?}");
    }
}

#[tokio::test]
async fn tls_rejects_unknown_authority() {
    let versions = Versions::default();
    let upstream = tls_upstream(&[], Arc::clone(&versions)).await;
    let base_url = format!("https://localhost:{}/v1", upstream.address.port());
    let failure = decide(&provider_with(&support::settings(), &base_url)).await.unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::ConnectFailed);
    let without_any = "https is not possible: no certificate authorities found; set ca_file";
    let has_trusted_authorities = support::client_of(&support::settings()).has_trusted_authorities();
    assert_eq!(
        failure.detail,
        if has_trusted_authorities { FailureCause::CertificateUntrusted.sentence() } else { without_any }
    );
    assert!(versions.lock().unwrap().is_empty(), "no request was sent");
}

#[tokio::test]
async fn tls_presents_client_certificate() {
    for offered in [&["h2"][..], &["http/1.1"]] {
        let upstream = start_tls(tls_config("server", Some("ca.pem")), offered, Versions::default()).await;
        let base_url = format!("https://localhost:{}/v1", upstream.address.port());
        let client_identity = Some((fixture("client.pem"), fixture("client-key.pem")));
        decide(&provider_with(&HttpClientSettings { client_identity, ..trusting() }, &base_url)).await.unwrap();
        assert!(decide(&provider_with(&trusting(), &base_url)).await.is_err(), "without a certificate");
    }
}

/// The certificate that `openssl req -x509` makes without options is an authority.
#[tokio::test]
async fn tls_explains_authority_as_server_certificate() {
    let upstream = start_tls(tls_config("authority", None), &[], Versions::default()).await;
    let base_url = format!("https://localhost:{}/v1", upstream.address.port());
    let settings = HttpClientSettings { extra_ca_file: Some(fixture("authority.pem")), ..support::settings() };
    let failure = decide(&provider_with(&settings, &base_url)).await.unwrap_err();
    assert_eq!(failure.cause, Some(FailureCause::CertificateIsAuthority));
}

#[test]
fn client_identity_must_be_usable() {
    let new = |certificate: &str, key: &str| {
        let client_identity = Some((fixture(certificate), fixture(key)));
        let settings = HttpClientSettings { client_identity, ..support::settings() };
        HttpClient::new(&settings).err()
    };
    assert!(new("client.pem", "client-key.pem").is_none());
    assert!(matches!(new("missing.pem", "client-key.pem"), Some(HttpClientError::ClientCertificate(_))));
    assert!(matches!(new("client-key.pem", "client-key.pem"), Some(HttpClientError::ClientCertificate(_))));
    assert!(matches!(new("client.pem", "missing.pem"), Some(HttpClientError::ClientKey)));
    assert!(matches!(new("client.pem", "client.pem"), Some(HttpClientError::ClientKey)));
    assert!(matches!(new("client.pem", "server-key.pem"), Some(HttpClientError::ClientIdentity(_))));
}

#[tokio::test]
async fn tls_rejects_certificate_of_another_host() {
    let upstream = tls_upstream(&[], Versions::default()).await;
    let base_url = format!("https://127.0.0.2:{}/v1", upstream.address.port());
    // The loopback range reaches the listener only if it listens on the whole range, so the test uses a proxy.
    let proxy = Upstream::start(move |mut socket| async move {
        read_request(&mut socket).await;
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let mut target = TcpStream::connect(upstream.address).await.unwrap();
        let _ = copy_bidirectional(&mut socket, &mut target).await;
    })
    .await;
    let settings = HttpClientSettings { proxy: https_proxy(&proxy, ""), ..trusting() };
    let failure = decide(&provider_with(&settings, &base_url)).await.unwrap_err();
    assert_eq!(failure.cause, Some(FailureCause::CertificateName));
}

fn https_proxy(proxy: &Upstream, credentials: &str) -> ProxySettings {
    let address = format!("http://{credentials}{}", proxy.address);
    ProxySettings { https_proxy: Some(address), ..ProxySettings::default() }
}

/// Starts a proxy that tunnels everything to one address and reports the requested targets.
async fn tunnelling(target: std::net::SocketAddr) -> (Upstream, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let (tell, requests) = tokio::sync::mpsc::unbounded_channel();
    let proxy = Upstream::start(move |mut socket| {
        let tell = tell.clone();
        async move {
            tell.send(read_request(&mut socket).await.unwrap().0).unwrap();
            socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let mut target = TcpStream::connect(target).await.unwrap();
            let _ = copy_bidirectional(&mut socket, &mut target).await;
        }
    })
    .await;
    (proxy, requests)
}

#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let versions = Versions::default();
    let upstream = tls_upstream(&["h2"], Arc::clone(&versions)).await;
    let (proxy, mut requests) = tunnelling(upstream.address).await;
    let settings = HttpClientSettings { proxy: https_proxy(&proxy, "me:secret@"), ..trusting() };
    decide(&provider_with(&settings, "https://provider.test/v1")).await.unwrap();
    let head = requests.recv().await.unwrap();
    assert!(head.starts_with("CONNECT provider.test:443 HTTP/1.1\r\n"), "{head}");
    // base64 of me:secret
    assert!(head.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"), "{head}");
    assert!(!head.contains("sk-provider"), "{head}");
    assert_eq!(*versions.lock().unwrap(), [Version::HTTP_2], "the tunnel carries what the two ends agreed on");
}

#[tokio::test]
async fn plain_http2_goes_through_a_tunnel() {
    let versions = Versions::default();
    let noted = Arc::clone(&versions);
    let upstream = Upstream::start(move |socket| serve(socket, true, Arc::clone(&noted))).await;
    let (proxy, mut requests) = tunnelling(upstream.address).await;
    let http_proxy = Some(format!("http://{}", proxy.address));
    let proxy = ProxySettings { http_proxy, ..ProxySettings::default() };
    let settings = HttpClientSettings { http2: Http2::PriorKnowledge, proxy, ..support::settings() };
    decide(&provider_with(&settings, "http://provider.test/v1")).await.unwrap();
    assert!(requests.recv().await.unwrap().starts_with("CONNECT provider.test:80 HTTP/1.1\r\n"));
    assert_eq!(*versions.lock().unwrap(), [Version::HTTP_2]);
}

#[tokio::test]
async fn plain_http_is_forwarded_by_a_proxy() {
    let (tell, mut requests) = tokio::sync::mpsc::unbounded_channel();
    let proxy = Upstream::start(move |mut socket| {
        let tell = tell.clone();
        async move {
            tell.send(read_request(&mut socket).await.unwrap().0).unwrap();
            socket.write_all(support::ok(support::ANSWER).as_bytes()).await.unwrap();
            closed(&mut socket).await;
        }
    })
    .await;
    let http_proxy = Some(format!("http://me:secret@{}", proxy.address));
    let proxy = ProxySettings { http_proxy, ..ProxySettings::default() };
    let settings = HttpClientSettings { proxy, ..support::settings() };
    decide(&provider_with(&settings, "http://provider.test/v1")).await.unwrap();
    let head = requests.recv().await.unwrap();
    assert!(head.starts_with("POST http://provider.test/v1/systemone HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("proxy-authorization: Basic bWU6c2VjcmV0\r\n"), "{head}");
}

#[tokio::test]
async fn no_proxy_hosts_are_called_directly() {
    let upstream = Upstream::answering(support::ok(support::ANSWER)).await;
    let proxy = Upstream::answering("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n").await;
    let http_proxy = Some(format!("http://{}", proxy.address));
    for (no_proxy, past) in [(None, false), (Some("127.0.0.0/8,elsewhere.test"), true), (Some("elsewhere.test"), false)]
    {
        let no_proxy = no_proxy.map(str::to_owned);
        let proxy = ProxySettings { http_proxy: http_proxy.clone(), no_proxy: no_proxy.clone(), https_proxy: None };
        let settings = HttpClientSettings { proxy, ..support::settings() };
        let end = decide(&provider_with(&settings, &upstream.base_url())).await;
        assert_eq!(end.is_ok(), past, "{no_proxy:?}");
    }
    assert_eq!((upstream.seen(), proxy.seen()), (1, 2));
}

#[tokio::test]
async fn connect_fails_when_proxy_rejects_tunnel() {
    for (status, cause) in
        [(407, FailureCause::ProxyCredentials), (403, FailureCause::ProxyRejected), (502, FailureCause::ProxyRejected)]
    {
        let proxy = Upstream::answering(format!("HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n")).await;
        let settings = HttpClientSettings { proxy: https_proxy(&proxy, ""), ..trusting() };
        let failure = decide(&provider_with(&settings, "https://provider.test/v1")).await.unwrap_err();
        assert_eq!((failure.kind, failure.upstream_status), (AttemptFailureKind::ConnectFailed, None));
        assert_eq!((failure.cause, failure.detail.as_str()), (Some(cause), cause.sentence()));
    }
}

/// Both kinds of proxies: one that forwards, and one that tunnels.
#[tokio::test]
async fn connect_fails_when_proxy_is_unreachable_or_needs_credentials() {
    let gone = Upstream { address: support::closed_address().await, connections: Arc::default() };
    for scheme in ["http", "https"] {
        let both = |proxy: &Upstream| {
            let address = Some(format!("http://{}", proxy.address));
            ProxySettings { http_proxy: address.clone(), https_proxy: address, ..ProxySettings::default() }
        };
        let base_url = format!("{scheme}://provider.test/v1");
        let settings = HttpClientSettings { proxy: both(&gone), ..trusting() };
        let failure = decide(&provider_with(&settings, &base_url)).await.unwrap_err();
        assert_eq!(
            (failure.kind, failure.cause),
            (AttemptFailureKind::ConnectFailed, Some(FailureCause::ProxyUnreachable))
        );
        let strict = Upstream::answering("HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n").await;
        let settings = HttpClientSettings { proxy: both(&strict), ..trusting() };
        let failure = decide(&provider_with(&settings, &base_url)).await.unwrap_err();
        assert_eq!(
            (failure.kind, failure.cause),
            (AttemptFailureKind::ConnectFailed, Some(FailureCause::ProxyCredentials))
        );
    }
}

#[tokio::test]
async fn connect_fails_with_the_cause() {
    let speaking = Upstream::start(|mut socket| async move {
        socket.write_all(b"220 mail.example ESMTP\r\n").await.unwrap();
        closed(&mut socket).await;
    })
    .await;
    for (base_url, cause) in [
        ("http://name.invalid/v1".to_owned(), FailureCause::NameNotFound),
        (format!("http://{}/v1", support::closed_address().await), FailureCause::ConnectionRefused),
        (format!("https://{}/v1", speaking.address), FailureCause::NoTls),
    ] {
        let failure = decide(&provider_with(&trusting(), &base_url)).await.unwrap_err();
        assert_eq!((failure.kind, failure.cause), (AttemptFailureKind::ConnectFailed, Some(cause)), "{base_url}");
        assert_eq!(failure.detail, cause.sentence());
    }
}

#[tokio::test]
async fn reconfigured_client_keeps_trusted_authorities() {
    let versions = Versions::default();
    let upstream = tls_upstream(&["h2", "http/1.1"], Arc::clone(&versions)).await;
    let client = support::client_of(&trusting()).reconfigured(|settings| settings.http2 = Http2::Off);
    let base_url = format!("https://localhost:{}/v1", upstream.address.port());
    let settings = ProviderSettings::new("acme".parse().unwrap(), base_url, Wire::SystemOne);
    decide(&http_provider(client, support::clock(), Wire::SystemOne, settings).unwrap()).await.unwrap();
    assert_eq!(*versions.lock().unwrap(), [Version::HTTP_11]);
}

#[test]
fn client_rejects_invalid_settings() {
    let new = |settings: HttpClientSettings| HttpClient::new(&settings).err();
    let ca = |name| HttpClientSettings { extra_ca_file: Some(fixture(name)), ..support::settings() };
    assert!(matches!(new(ca("missing.pem")), Some(HttpClientError::CaFile { .. })));
    assert!(matches!(new(ca("make-certificates.sh")), Some(HttpClientError::EmptyCaFile(_))));
    assert!(new(ca("ca.pem")).is_none());
    let agent = HttpClientSettings { user_agent: "a\nb".to_owned(), ..support::settings() };
    assert!(matches!(new(agent), Some(HttpClientError::UserAgent)));
    for (address, understood) in [
        ("http://h:1", true),
        ("https://u:p@h", true),
        ("h:1", true),
        ("", true),
        ("socks5://h:1", false),
        ("ftp://h", false),
        ("::", false),
    ] {
        let proxy = ProxySettings { https_proxy: Some(address.to_owned()), ..ProxySettings::default() };
        let refused = new(HttpClientSettings { proxy, ..support::settings() });
        assert_eq!(refused.is_none(), understood, "{address}: {refused:?}");
    }
}

#[test]
fn debug_redacts_proxy_credentials() {
    let http_proxy = Some("http://me:secret@h:1".to_owned());
    let proxy = ProxySettings { http_proxy, ..ProxySettings::default() };
    let shown = format!("{:?}", HttpClientSettings { proxy, ..support::settings() });
    assert!(!shown.contains("secret"), "{shown}");
}
