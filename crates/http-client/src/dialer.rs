//! TCP connections: staggered attempts over the addresses of a name.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tower_service::Service;

use crate::addresses::is_public;
use crate::staggered::{CONNECTION_ATTEMPT_DELAY, first_success, interleave_families};

/// The interval of TCP keep-alive probes.
const TCP_KEEPALIVE: Duration = Duration::from_mins(1);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Opens TCP connections. An address that does not answer delays a connection by one attempt only.
#[derive(Clone)]
pub(crate) struct Dialer {
    tcp: HttpConnector,
    /// The checked addresses are those that are dialled, so that they cannot change in between.
    public_only: bool,
}

/// An address that must not be dialled.
#[derive(Debug, thiserror::Error)]
#[error("the address is not public")]
pub(crate) struct ForbiddenAddress;

/// A name without any address.
#[derive(Debug, thiserror::Error)]
#[error("the host name cannot be resolved")]
pub(crate) struct UnresolvedName(#[source] io::Error);

impl Dialer {
    pub(crate) fn new(public_only: bool) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(TCP_KEEPALIVE));
        Self { tcp, public_only }
    }

    async fn connect(&self, addresses: Vec<SocketAddr>) -> Result<TokioIo<TcpStream>, BoxError> {
        let attempt = async |address: SocketAddr| {
            let target = format!("http://{address}").parse::<Uri>()?;
            Ok(self.tcp.clone().call(target).await?)
        };
        let delay = || tokio::time::sleep(CONNECTION_ATTEMPT_DELAY);
        let connected = first_success(interleave_families(addresses), attempt, delay).await;
        connected.unwrap_or_else(|| Err(UnresolvedName(io::Error::other("the host name has no address")).into()))
    }
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move {
            let addresses = resolve(&target).await?;
            // A single non-public address suffices: a name server with such a mixture is not trusted.
            if dialer.public_only && !addresses.iter().all(|address| is_public(address.ip())) {
                return Err(ForbiddenAddress.into());
            }
            dialer.connect(addresses).await
        })
    }
}

async fn resolve(target: &Uri) -> Result<Vec<SocketAddr>, UnresolvedName> {
    let host = target.host().unwrap_or_default();
    let default_port = if target.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let port = target.port_u16().unwrap_or(default_port);
    if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    Ok(lookup_host((host, port)).await.map_err(UnresolvedName)?.collect())
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    /// Returns a listener whose queue is full, so that it swallows handshakes, and the connection in its queue.
    async fn swallowing(address: &str) -> (TcpListener, TcpStream) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(address.parse().unwrap()).unwrap();
        let listener = socket.listen(0).unwrap();
        let queued = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (listener, queued)
    }

    /// The timeout of an attempt of the operating system is minutes.
    #[tokio::test]
    async fn connect_passes_addresses_that_swallow_handshakes() {
        let (first, _queued) = swallowing("127.0.0.2:0").await;
        let (second, _queued_too) = swallowing("127.0.0.3:0").await;
        let good = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addresses = [&first, &second, &good].map(|listener| listener.local_addr().unwrap());
        let dialer = Dialer::new(false);
        let connecting = tokio::time::timeout(Duration::from_secs(20), dialer.connect(addresses.to_vec()));
        let connected = connecting.await.expect("the first address blocks the others").unwrap();
        assert_eq!(connected.inner().peer_addr().unwrap(), addresses[2]);
        assert!(connected.inner().nodelay().unwrap());
    }

    #[tokio::test]
    async fn connect_passes_addresses_that_refuse() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let good = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let unroutable = "[::1]:9".parse().unwrap();
        let addresses = vec![closed, unroutable, good.local_addr().unwrap()];
        assert!(Dialer::new(false).connect(addresses).await.is_ok());
        assert!(Dialer::new(false).connect(vec![closed]).await.is_err());
        assert!(Dialer::new(false).connect(Vec::new()).await.unwrap_err().is::<UnresolvedName>());
    }

    #[tokio::test]
    async fn resolve_reads_literals_and_default_ports() {
        for (target, expected) in [
            ("http://10.0.0.1/v1", "10.0.0.1:80"),
            ("https://10.0.0.1", "10.0.0.1:443"),
            ("https://[2001:db8::1]:8443", "[2001:db8::1]:8443"),
        ] {
            let addresses = resolve(&target.parse().unwrap()).await.unwrap();
            assert_eq!(addresses, [expected.parse().unwrap()], "{target}");
        }
        assert!(!resolve(&Uri::from_static("http://localhost:1")).await.unwrap().is_empty());
        assert!(resolve(&Uri::from_static("http://name.invalid")).await.is_err());
    }
}
