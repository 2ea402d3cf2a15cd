//! The connector: opens a connection directly or through a proxy, within a timeout.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::{PathAndQuery, Scheme};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::deadline::before_deadline;
use crate::dialer::Dialer;
use crate::errors::{BoxError, ConnectTimedOut, ProxyUnreachable};
use crate::meter::{Meter, MeteredStream};
use crate::proxy::Proxies;
use crate::{Http2, HttpClientSettings};

type BoxConnecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;
/// The stream of a connection: plain TCP or TLS.
pub(crate) type Io = TokioIo<MeteredStream<TokioIo<MaybeHttpsStream<Hop>>>>;

/// The connector, TLS included, with a timeout.
#[derive(Clone)]
pub(crate) struct Connector {
    https_connector: HttpsConnector<FirstHop>,
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
            Http2::Off => builder.enable_http1().wrap_connector(first),
            Http2::Negotiated => builder.enable_all_versions().wrap_connector(first),
            Http2::PriorKnowledge => builder.enable_http2().wrap_connector(first),
        };
        Self {
            https_connector,
            timeout: settings.connect_timeout,
            max_header_bytes: settings.max_header_bytes,
            http2_only,
        }
    }
}

impl Connector {
    /// Opens a connection to the host of an address.
    pub(crate) async fn connect(mut self, address: Uri) -> Result<Link, BoxError> {
        let (timeout, limit) = (self.timeout, self.max_header_bytes);
        let connecting = async {
            poll_fn(|cx| self.https_connector.poll_ready(cx)).await?;
            self.https_connector.call(address).await
        };
        let stream = before_deadline(timeout, connecting).await.ok_or(ConnectTimedOut)??;
        let connected = stream.connected();
        let http2 = self.http2_only || connected.is_negotiated_h2();
        let stream = MeteredStream::new(TokioIo::new(stream), limit, http2);
        Ok(Link { meter: stream.meter().clone(), io: TokioIo::new(stream), http2, forwarded: connected.is_proxied() })
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
    fn by_proxy(&self, proxy: &Intercept, target: &Uri) -> BoxConnecting<Hop> {
        let mut to_proxy = self.to_proxy.clone();
        if target.scheme() == Some(&Scheme::HTTP) && !self.tunnel_all {
            let connecting = to_proxy.call(proxy.uri().clone());
            return Box::pin(async move {
                let link = connecting.await.map_err(ProxyUnreachable)?;
                Ok(Hop { link, forwarded: true })
            });
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        let Some(target) = with_port(target) else {
            return Box::pin(async { Err(io::Error::other("the target has no host").into()) });
        };
        let connecting = tunnel.call(target);
        Box::pin(async move { Ok(Hop { link: connecting.await?, forwarded: false }) })
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
    type Response = Hop;
    type Error = BoxError;
    type Future = BoxConnecting<Hop>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(cx)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        if let Some(proxy) = self.proxies.intercept(&target) {
            return self.by_proxy(&proxy, &target);
        }
        let connecting = self.direct.call(target);
        Box::pin(async move { Ok(Hop { link: MaybeHttpsStream::Http(connecting.await?), forwarded: false }) })
    }
}

/// The connection from [`FirstHop`].
pub(crate) struct Hop {
    link: MaybeHttpsStream<TokioIo<TcpStream>>,
    /// True if a proxy forwards the requests, which then contain the whole target.
    forwarded: bool,
}

impl Connection for Hop {
    fn connected(&self) -> Connected {
        // Without the addresses of the link, which nothing uses and each answer would copy.
        Connected::new().proxy(self.forwarded)
    }
}

impl Read for Hop {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.link).poll_read(cx, buf)
    }
}

impl Write for Hop {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.link).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.link).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.link).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.link.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.link).poll_write_vectored(cx, bufs)
    }
}
