//! Pools of connections, one a thread.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper_util::client::legacy::Client;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::connector::Connector;
use super::payload::Tracked;
use super::tls::Tls;
use super::{Http2, HttpClientSettings};

/// The longest header section over HTTP/2, in bytes of uncompressed names and values.
const HTTP2_MAX_HEADER_LIST: u32 = 16 << 10;

type Pool = Client<Connector, Tracked>;

/// As many pools as the settings say. A connection is driven by the thread that opened it; when another thread takes
/// it from a shared pool, each of its answers wakes two threads. So every thread keeps to a pool.
#[derive(Clone)]
pub(super) struct Pools(Arc<[Pool]>);

impl Pools {
    pub(super) fn new(settings: &HttpClientSettings, tls: &Tls, proxies: &Arc<Matcher>) -> Self {
        Self((0..settings.pools.max(1)).map(|_| pool(settings, tls, proxies)).collect())
    }

    /// The pool of the thread that asks.
    pub(super) fn own(&self) -> &Pool {
        &self.0[thread_number() % self.0.len()]
    }
}

/// Threads are numbered in the order in which they first ask.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: OnceCell<usize> = const { OnceCell::new() };
    }
    OWN.with(|own| *own.get_or_init(|| NEXT.fetch_add(1, Ordering::Relaxed)))
}

fn pool(settings: &HttpClientSettings, tls: &Tls, proxies: &Arc<Matcher>) -> Pool {
    let connector = Connector::new(tls.config.clone(), Arc::clone(proxies), settings);
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .pool_idle_timeout(settings.pool_idle_timeout)
        .pool_max_idle_per_host(settings.pool_max_idle_per_host)
        .http2_only(settings.http2 == Http2::PriorKnowledge)
        .http2_adaptive_window(true)
        .http2_max_header_list_size(HTTP2_MAX_HEADER_LIST);
    if let Some(pings) = settings.http2_pings {
        builder
            .http2_keep_alive_interval(pings.interval)
            .http2_keep_alive_timeout(pings.timeout)
            .http2_keep_alive_while_idle(true);
    }
    builder.build(connector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_to_its_number_and_another_has_another() {
        let mine = thread_number();
        assert_eq!(thread_number(), mine);
        let other = std::thread::scope(|scope| scope.spawn(thread_number).join().unwrap());
        assert_ne!(other, mine);
    }
}
