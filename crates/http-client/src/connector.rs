//! The connector: opens a connection directly or through a proxy, within a timeout.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::{PathAndQuery, Scheme};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::Connection;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::body::BoxError;
use crate::deadline::before_deadline;
use crate::dialer::Dialer;
use crate::errors::{ConnectTimedOut, ProxyUnreachable};
use crate::meter::{Meter, MeteredStream};
use crate::proxy::Proxies;
use crate::{Http2, HttpClientSettings};

/// The connection to the target's host: directly or through a tunnel, or to a proxy, with TLS if that has an `https://`
/// address.
type Tcp = MaybeHttpsStream<TokioIo<TcpStream>>;
type Connecting = Pin<Box<dyn Future<Output = Result<Tcp, BoxError>> + Send>>;
/// The stream of a connection: plain TCP or TLS.
pub(crate) type Io = TokioIo<MeteredStream<TokioIo<MaybeHttpsStream<Tcp>>>>;

/// The connector, TLS included, with a timeout.
#[derive(Clone)]
pub(crate) struct Connector {
    https_connector: HttpsConnector<FirstHop>,
    first: FirstHop,
    timeout: Duration,
    max_header_bytes: u64,
    http2_only: bool,
}

impl Connector {
    pub(crate) fn new(tls: rustls::ClientConfig, proxies: Arc<Proxies>, settings: &HttpClientSettings) -> Self {
        let http2_only = settings.http2 == Http2::PriorKnowledge;
        let tcp = Dialer::new(settings.public_addresses_only);
        let to_proxy = HttpsConnectorBuilder::new()
            .with_tls_config(tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp.clone());
        let first = FirstHop { direct: tcp, to_proxy, proxies, tunnel_all: http2_only };
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        let https_connector = match settings.http2 {
            Http2::Off => builder.enable_http1().wrap_connector(first.clone()),
            Http2::Negotiated => builder.enable_all_versions().wrap_connector(first.clone()),
            Http2::PriorKnowledge => builder.enable_http2().wrap_connector(first.clone()),
        };
        Self {
            https_connector,
            first,
            timeout: settings.connect_timeout,
            max_header_bytes: settings.max_header_bytes,
            http2_only,
        }
    }

    /// Opens a connection to the host of an address.
    pub(crate) async fn connect(mut self, address: Uri) -> Result<Link, BoxError> {
        let forwarded = self.first.forwarding(&address).is_some();
        let connecting = async {
            poll_fn(|cx| self.https_connector.poll_ready(cx)).await?;
            self.https_connector.call(address).await
        };
        let stream = before_deadline(self.timeout, connecting).await.ok_or(ConnectTimedOut)??;
        let http2 = self.http2_only || stream.connected().is_negotiated_h2();
        let stream = MeteredStream::new(TokioIo::new(stream), self.max_header_bytes, http2);
        Ok(Link { meter: stream.meter().clone(), io: TokioIo::new(stream), http2, forwarded })
    }
}

/// A connection on which no HTTP was sent yet.
pub(crate) struct Link {
    pub(crate) io: Io,
    pub(crate) meter: Meter,
    /// True for HTTP/2.
    pub(crate) http2: bool,
    /// True if a proxy forwards the requests.
    pub(crate) forwarded: bool,
}

/// The connector to the target's host: directly, by a tunnel, or to a forwarding proxy.
#[derive(Clone)]
pub(crate) struct FirstHop {
    direct: Dialer,
    to_proxy: HttpsConnector<Dialer>,
    proxies: Arc<Proxies>,
    /// True if plain HTTP needs a tunnel too: proxies forward HTTP/1.1 only.
    tunnel_all: bool,
}

impl FirstHop {
    /// Returns the proxy that forwards the requests to a target, if one does.
    fn forwarding(&self, target: &Uri) -> Option<Intercept> {
        let is_forwarded = target.scheme() == Some(&Scheme::HTTP) && !self.tunnel_all;
        is_forwarded.then(|| self.proxies.intercept(target)).flatten()
    }

    async fn connect(mut self, target: Uri) -> Result<Tcp, BoxError> {
        if let Some(proxy) = self.forwarding(&target) {
            return Ok(self.to_proxy.call(proxy.uri().clone()).await.map_err(ProxyUnreachable)?);
        }
        let Some(proxy) = self.proxies.intercept(&target) else {
            return Ok(MaybeHttpsStream::Http(self.direct.call(target).await?));
        };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.to_proxy);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        let target = with_port(&target).ok_or_else(|| io::Error::other("the target has no host"))?;
        Ok(tunnel.call(target).await?)
    }
}

/// Returns the target with an explicit port, which a tunnel needs.
fn with_port(target: &Uri) -> Option<Uri> {
    let default = if target.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
    let authority = format!("{}:{}", target.host()?, target.port_u16().unwrap_or(default));
    let mut parts = target.clone().into_parts();
    parts.authority = Some(authority.parse().ok()?);
    parts.path_and_query = Some(PathAndQuery::from_static("/"));
    Uri::from_parts(parts).ok()
}

impl Service<Uri> for FirstHop {
    type Response = Tcp;
    type Error = BoxError;
    type Future = Connecting;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        Box::pin(self.clone().connect(target))
    }
}
