//! TCP connections: staggered attempts over the addresses of a name (RFC 8305).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tower_service::Service;

use crate::addresses::is_public;
use crate::body::BoxError;

/// The interval of TCP keep-alive probes.
const TCP_KEEPALIVE: Duration = Duration::from_mins(1);

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

/// A name whose look-up failed, or found no address.
#[derive(Debug, thiserror::Error)]
#[error("the host name cannot be resolved")]
pub(crate) struct UnresolvedName(#[source] pub(crate) io::Error);

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
        let connected = first_success(interleave_families(addresses), attempt).await;
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

/// The delay after which the next address is tried beside the earlier ones: RFC 8305, section 5.
const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Orders the addresses of a name: their own order, with the families alternating, so that a family without a route
/// delays a connection by one attempt.
fn interleave_families(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let addresses: Vec<SocketAddr> = addresses.into_iter().collect();
    let is_ipv6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<SocketAddr>, Vec<SocketAddr>) =
        addresses.iter().copied().partition(|address| address.is_ipv6() == is_ipv6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut ordered = Vec::with_capacity(addresses.len());
    while ordered.len() < addresses.len() {
        ordered.extend(first.next());
        ordered.extend(second.next());
    }
    ordered
}

/// Starts an attempt for each item in order, and returns the first success; the other attempts are dropped. The next
/// attempt starts after a delay, or when the last one has failed. Returns the last error if every attempt fails, and
/// `None` without items.
async fn first_success<Item, T, E, Attempt: Future<Output = Result<T, E>>>(
    items: impl IntoIterator<Item = Item>,
    attempt: impl Fn(Item) -> Attempt,
) -> Option<Result<T, E>> {
    let mut items = items.into_iter();
    let mut running = FuturesUnordered::new();
    running.push(attempt(items.next()?));
    loop {
        let ended = match timeout(CONNECTION_ATTEMPT_DELAY, running.next()).await {
            Ok(ended) => ended,
            Err(_) => match items.next() {
                Some(next) => {
                    running.push(attempt(next));
                    continue;
                }
                None => running.next().await,
            },
        };
        match (ended?, items.next()) {
            (Err(_), Some(next)) => running.push(attempt(next)),
            (Err(error), None) if running.is_empty() => return Some(Err(error)),
            (Err(_), None) => {}
            (Ok(success), _) => return Some(Ok(success)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

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

    #[test]
    fn interleave_families_alternates_and_keeps_order() {
        let ordered = |addresses: &[&str]| {
            let parsed = addresses.iter().map(|address| address.parse::<SocketAddr>().unwrap());
            interleave_families(parsed).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(ordered(&[]).is_empty());
        assert_eq!(ordered(&["1.1.1.1:1", "1.1.1.2:1"]), ["1.1.1.1:1", "1.1.1.2:1"]);
        let found = ordered(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "1.1.1.2:1"]);
        assert_eq!(found, ["[::1]:1", "1.1.1.1:1", "[::2]:1", "1.1.1.2:1", "[::3]:1"]);
        assert_eq!(ordered(&["1.1.1.1:1", "1.1.1.2:1", "[::1]:1"]), ["1.1.1.1:1", "[::1]:1", "1.1.1.2:1"]);
    }

    /// Time and end of an attempt: `None` never ends.
    type Script = Option<(u64, Result<u32, u32>)>;

    /// Runs scripted attempts and returns the end, its time and the times at which the attempts started, in ms.
    async fn run(scripts: &[Script]) -> (Option<Result<u32, u32>>, u64, Vec<u64>) {
        let began = tokio::time::Instant::now();
        let elapsed = || u64::try_from(began.elapsed().as_millis()).unwrap();
        let started = RefCell::new(Vec::new());
        let attempt = async |script: Script| {
            started.borrow_mut().push(elapsed());
            match script {
                Some((ms, end)) => {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    end
                }
                None => std::future::pending().await,
            }
        };
        let end = first_success(scripts.iter().copied(), attempt).await;
        (end, elapsed(), started.into_inner())
    }

    /// The attempts, the result, its time in milliseconds, and the times of the attempts.
    type Row = (&'static [Script], Option<Result<u32, u32>>, u64, &'static [u64]);

    #[tokio::test(start_paused = true)]
    async fn first_success_staggers_attempts() {
        let rows: [Row; 10] = [
            (&[], None, 0, &[]),
            (&[Some((5, Ok(1))), Some((5, Ok(2)))], Some(Ok(1)), 5, &[0]),
            (&[None, Some((5, Ok(2)))], Some(Ok(2)), 255, &[0, 250]),
            (&[None, None, Some((5, Ok(3)))], Some(Ok(3)), 505, &[0, 250, 500]),
            (&[Some((5, Err(1))), Some((5, Ok(2)))], Some(Ok(2)), 10, &[0, 5]),
            (&[Some((5, Err(1))), Some((9, Err(2)))], Some(Err(2)), 14, &[0, 5]),
            (&[Some((400, Err(1))), Some((500, Err(2)))], Some(Err(2)), 750, &[0, 250]),
            (&[Some((900, Ok(1))), Some((400, Err(2)))], Some(Ok(1)), 900, &[0, 250]),
            (&[Some((300, Ok(1))), Some((400, Ok(2)))], Some(Ok(1)), 300, &[0, 250]),
            (&[None, Some((100, Err(2))), Some((5, Ok(3)))], Some(Ok(3)), 355, &[0, 250, 350]),
        ];
        for (scripts, end, at, starts) in rows {
            assert_eq!(run(scripts).await, (end, at, starts.to_vec()), "{scripts:?}");
        }
    }
}
