//! TCP connections to the service: staggered attempts over the addresses of its name, within one time limit.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use http_client::{CONNECTION_ATTEMPT_DELAY, first_success, interleave_families};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{sleep, timeout};
use tower_service::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The interval of TCP keep-alive probes.
const TCP_KEEPALIVE: Duration = Duration::from_mins(1);

/// Opens TCP connections. An address that does not answer delays a connection by one attempt only.
#[derive(Clone)]
pub(crate) struct Dialer {
    tcp: HttpConnector,
    limit: Duration,
}

impl Dialer {
    pub(crate) fn new(limit: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(TCP_KEEPALIVE));
        Self { tcp, limit }
    }

    async fn connect(&self, addresses: Vec<SocketAddr>) -> Result<TokioIo<TcpStream>, BoxError> {
        let attempt = async |address: SocketAddr| {
            let target = format!("http://{address}").parse::<Uri>()?;
            Ok(self.tcp.clone().call(target).await?)
        };
        let addresses = interleave_families(addresses);
        let connected = first_success(addresses, attempt, || sleep(CONNECTION_ATTEMPT_DELAY)).await;
        connected.unwrap_or_else(|| Err("the host name has no address".into()))
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
            let connecting = async { dialer.connect(resolve(&target).await?).await };
            let late = |_| Err(format!("no connection within {} ms", dialer.limit.as_millis()).into());
            timeout(dialer.limit, connecting).await.unwrap_or_else(late)
        })
    }
}

async fn resolve(target: &Uri) -> io::Result<Vec<SocketAddr>> {
    let host = target.host().unwrap_or_default();
    let default_port = if target.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let port = target.port_u16().unwrap_or(default_port);
    if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    Ok(lookup_host((host, port)).await?.collect())
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    #[tokio::test]
    async fn connect_passes_address_that_swallows_handshakes() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let full = socket.listen(0).unwrap();
        let _queued = TcpStream::connect(full.local_addr().unwrap()).await.unwrap();
        let good = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addresses = [&full, &good].map(|listener| listener.local_addr().unwrap());
        let connecting = timeout(Duration::from_secs(20), Dialer::new(Duration::MAX).connect(addresses.to_vec())).await;
        let connected = connecting.expect("the first address blocks the second").unwrap();
        assert_eq!(connected.inner().peer_addr().unwrap(), addresses[1]);

        let silent = Uri::try_from(format!("http://{}", addresses[0])).unwrap();
        let error = Dialer::new(Duration::from_millis(30)).call(silent).await.unwrap_err();
        assert_eq!(error.to_string(), "no connection within 30 ms");
    }
}
