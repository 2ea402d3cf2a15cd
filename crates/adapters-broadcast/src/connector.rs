//! The connector to a destination. It checks and dials the same resolved addresses, so that they cannot change in
//! between.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use http::uri::Scheme;
use http_client::{CONNECTION_ATTEMPT_DELAY, first_success, interleave_families};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tower_service::Service;

use crate::errors::{ForbiddenAddress, UnresolvedName};
use http_client::is_public;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Dials public addresses only, unless the operator allows others.
#[derive(Debug, Clone)]
pub(crate) struct CheckedConnector {
    pub(crate) allow_private_addresses: bool,
}

impl Service<Uri> for CheckedConnector {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let allow_private_addresses = self.allow_private_addresses;
        Box::pin(async move {
            let addresses = resolve(&target).await?;
            // A single non-public address suffices: a name server with such a mixture is not trusted.
            if !allow_private_addresses && !addresses.iter().all(|address| is_public(address.ip())) {
                return Err(ForbiddenAddress.into());
            }
            dial(addresses).await.map(TokioIo::new).map_err(Into::into)
        })
    }
}

async fn resolve(target: &Uri) -> Result<Vec<SocketAddr>, BoxError> {
    let host = target.host().ok_or(UnresolvedName)?;
    let default = if target.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let port = target.port_u16().unwrap_or(default);
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = literal.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let found: Vec<SocketAddr> = lookup_host((host, port)).await.map_err(|_| UnresolvedName)?.collect();
    if found.is_empty() { Err(UnresolvedName.into()) } else { Ok(found) }
}

/// Connects to the first address that answers, by staggered attempts.
async fn dial(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let delay = || tokio::time::sleep(CONNECTION_ATTEMPT_DELAY);
    let connected = first_success(interleave_families(addresses), TcpStream::connect, delay).await;
    let stream = connected.unwrap_or_else(|| Err(io::ErrorKind::AddrNotAvailable.into()))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    #[tokio::test]
    async fn dial_passes_address_that_swallows_handshakes() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let full = socket.listen(0).unwrap();
        let _queued = TcpStream::connect(full.local_addr().unwrap()).await.unwrap();
        let good = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addresses = [&full, &good].map(|listener| listener.local_addr().unwrap());
        let dialled = tokio::time::timeout(Duration::from_secs(20), dial(addresses.to_vec()));
        let dialled = dialled.await.expect("the first address blocks the second").unwrap();
        assert_eq!(dialled.peer_addr().unwrap(), addresses[1]);
        assert!(dial(Vec::new()).await.is_err());
    }
}
