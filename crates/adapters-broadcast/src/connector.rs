//! The connector to a destination. It checks and dials the same resolved addresses, so that they cannot change in
//! between.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use http::uri::Scheme;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tower_service::Service;

use crate::addresses::is_public;
use crate::errors::{ForbiddenAddress, UnresolvedName};

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
            dial(&addresses).await.map(TokioIo::new).map_err(Into::into)
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

/// Returns the first connection that succeeds.
async fn dial(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
