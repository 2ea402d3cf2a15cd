//! An origin (scheme, host and port) and its connections.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::Uri;
use http::uri::{Authority, Scheme};
use hyper::client::conn::http2::Builder;
use hyper::rt::Executor;
use hyper_util::rt::TokioExecutor;
use tokio::time::Instant;

use crate::connections::{Http1Connection, Http2Call, Http2Connection, http2_builder};
use crate::connector::Connector;
use crate::errors::{Error, Loss};
use crate::meter::Meter;
use crate::pool::{Pool, PooledConnection};
use crate::{Http2, HttpClientSettings};

/// The origins that a client calls.
#[derive(Clone)]
pub(crate) struct Origins {
    opener: Opener,
    settings: Arc<HttpClientSettings>,
    known: Arc<Mutex<HashMap<OriginKey, Arc<Origin>>>>,
}

type OriginKey = (Option<Scheme>, Option<Authority>);

impl Origins {
    pub(crate) fn new(connector: Connector, settings: &Arc<HttpClientSettings>) -> Self {
        let opener = Opener { connector, http2: http2_builder(settings) };
        Self { opener, settings: Arc::clone(settings), known: Arc::default() }
    }

    /// Returns the origin of an address. Addresses of the same origin share its connections. Origins without users and
    /// connections are forgotten.
    pub(crate) fn of(&self, uri: &Uri) -> Arc<Origin> {
        let key = (uri.scheme().cloned(), uri.authority().cloned());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(origin) = known.get(&key) {
            return Arc::clone(origin);
        }
        known.retain(|_, origin| Arc::strong_count(origin) > 1 || !origin.pools.iter().all(Pool::is_unused));
        let origin = Arc::new(Origin::new(uri, &self.opener, &self.settings));
        known.insert(key, Arc::clone(&origin));
        origin
    }
}

/// An origin and its pools, as many as configured. The thread that opened a connection wakes it, so each thread keeps
/// to one pool.
pub(crate) struct Origin {
    address: Uri,
    opener: Opener,
    pools: Box<[Arc<Pool>]>,
    http2_only: bool,
}

impl Origin {
    fn new(address: &Uri, opener: &Opener, settings: &HttpClientSettings) -> Self {
        let pool = |_| Arc::new(Pool::new(settings.pool_idle_timeout, settings.pool_max_idle_per_host));
        Self {
            address: address.clone(),
            opener: opener.clone(),
            pools: (0..settings.pools.max(1)).map(pool).collect(),
            http2_only: settings.http2 == Http2::PriorKnowledge,
        }
    }

    /// Opens a connection and closes it.
    pub(crate) async fn probe(&self) -> Result<(), Error> {
        self.opener.open(&self.address).await.map(drop)
    }

    /// Returns a connection for one call: an idle one, or a new one. A repeated call gets no idle connection of
    /// HTTP/1.1: it may have ended like the one before.
    pub(crate) async fn connection(
        &self,
        deadline: Option<Instant>,
        is_repeat: bool,
    ) -> Result<ConnectionInUse, Error> {
        let pool = &self.pools[thread_number() % self.pools.len()];
        let take = || if is_repeat { pool.take_shared() } else { pool.take() };
        if let Some(kept) = take() {
            return Ok(mark_in_use(kept, pool, deadline));
        }
        if self.http2_only {
            let _one_at_a_time = pool.opening.lock().await;
            if let Some(kept) = take() {
                return Ok(mark_in_use(kept, pool, deadline));
            }
            let opened = self.opener.open(&self.address).await?;
            return Ok(admit(opened, pool, deadline));
        }
        if is_repeat {
            return Ok(admit(self.opener.open(&self.address).await?, pool, deadline));
        }
        let mut idle = pool.wait();
        let mut opening = self.opener.open(&self.address);
        tokio::select! {
            biased;
            Ok(connection) = &mut idle => {
                let pool = Arc::clone(pool);
                // The handshake continues, and the connection serves another call.
                TokioExecutor::new().execute({
                    let pool = Arc::clone(&pool);
                    async move { opening.await.map_or((), |opened| keep(opened, &pool)) }
                });
                Ok(ConnectionInUse::Http1 { connection, pool })
            }
            opened = &mut opening => {
                idle.close();
                if let Ok(connection) = idle.try_recv() {
                    pool.put(connection);
                }
                Ok(admit(opened?, pool, deadline))
            }
        }
    }
}

/// A connection in use. Dropped without [`Self::release`], one of HTTP/1.1 closes.
pub(crate) enum ConnectionInUse {
    Http1 { connection: Box<Http1Connection>, pool: Arc<Pool> },
    Http2(Http2Call),
}

impl ConnectionInUse {
    pub(crate) fn meter(&self) -> &Meter {
        match self {
            Self::Http1 { connection, .. } => &connection.meter,
            Self::Http2(call) => call.meter(),
        }
    }

    pub(crate) fn is_reused(&self) -> bool {
        match self {
            Self::Http1 { connection, .. } => connection.is_reused,
            Self::Http2(call) => call.is_reused,
        }
    }

    /// Closes the connection to later calls.
    pub(crate) fn retire(&self) {
        if let Self::Http2(call) = self {
            call.retire();
        }
    }

    /// Keeps the connection for the next call.
    pub(crate) fn release(self) {
        if let Self::Http1 { connection, pool } = self {
            pool.put(connection);
        }
    }
}

fn mark_in_use(kept: PooledConnection, pool: &Arc<Pool>, deadline: Option<Instant>) -> ConnectionInUse {
    match kept {
        PooledConnection::Http1(connection) => ConnectionInUse::Http1 { connection, pool: Arc::clone(pool) },
        PooledConnection::Http2(connection) => ConnectionInUse::Http2(Http2Call::new(connection, true, deadline)),
    }
}

/// Marks a new connection as in use.
fn admit(opened: PooledConnection, pool: &Arc<Pool>, deadline: Option<Instant>) -> ConnectionInUse {
    match opened {
        PooledConnection::Http1(connection) => ConnectionInUse::Http1 { connection, pool: Arc::clone(pool) },
        PooledConnection::Http2(connection) => {
            let (connection, is_reused) = pool.share(connection);
            ConnectionInUse::Http2(Http2Call::new(connection, is_reused, deadline))
        }
    }
}

/// Puts a new connection into the pool.
fn keep(opened: PooledConnection, pool: &Arc<Pool>) {
    match opened {
        PooledConnection::Http1(connection) => pool.put(connection),
        PooledConnection::Http2(connection) => drop(pool.share(connection)),
    }
}

/// The opener of connections.
#[derive(Clone)]
struct Opener {
    connector: Connector,
    http2: Builder<TokioExecutor>,
}

impl Opener {
    /// Opens a connection. Boxed, because most calls open none and should not reserve stack for it.
    fn open(&self, address: &Uri) -> Pin<Box<dyn Future<Output = Result<PooledConnection, Error>> + Send>> {
        let (connector, http2, address) = (self.connector.clone(), self.http2.clone(), address.clone());
        Box::pin(async move {
            let link = connector.connect(address).await.map_err(Error::connect)?;
            let meter = link.meter.clone();
            let opened = if link.http2 {
                Http2Connection::open(link, &http2).await.map(PooledConnection::Http2)
            } else {
                Http1Connection::open(link).await.map(PooledConnection::Http1)
            };
            opened.map_err(|error| match meter.violation() {
                Some(violation) => Error::TooManyBytes { loss: Loss::NotProcessed, violation },
                None => Error::Handshake(error),
            })
        })
    }
}

/// Returns the thread's number, in the order of first calls.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: OnceCell<usize> = const { OnceCell::new() };
    }
    OWN.with(|own| *own.get_or_init(|| NEXT.fetch_add(1, Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_number_is_stable_and_unique() {
        let mine = thread_number();
        assert_eq!(thread_number(), mine);
        let other = std::thread::scope(|scope| scope.spawn(thread_number).join().unwrap());
        assert_ne!(other, mine);
    }
}
