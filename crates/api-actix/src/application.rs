//! The server: bound, not yet running; the binary and the tests use the same one.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::web::{self, Payload};
use actix_web::{App, HttpRequest, HttpServer};
use ipnet::IpNet;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::gateway::{Gateway, Services};
use crate::http::body::BodyTimeout;
use crate::http::edge;
use crate::http::outlive::Afterlife;
use crate::http::wire_names::WireNames;

/// How the server listens and what it takes.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Where to listen; port 0 takes any free one.
    pub listen: SocketAddr,
    /// What stands before every path of the interface, such as `/api/v1`; may be empty.
    pub base_path: String,
    /// Which literal names answers carry.
    pub wire_names: WireNames,
    /// Most bytes of a JSON body.
    pub max_json_bytes: usize,
    /// Most requests at once, open routes not counted; `None` is no limit.
    pub max_in_flight: Option<usize>,
    /// How long a client may take to send a request's head.
    pub head_timeout: Duration,
    /// How long a client may take to send a request's body.
    pub body_timeout: Duration,
    /// Connections at a time, of each worker; more wait to be accepted.
    pub max_connections: usize,
    /// Networks whose `X-Forwarded-For` is believed when the client's address is logged.
    pub trusted_proxies: Vec<IpNet>,
    /// Threads that serve; `None` is one per core.
    pub workers: Option<usize>,
    /// How long a graceful stop waits for requests in flight; whole seconds count.
    pub shutdown_timeout: Duration,
}

/// How long an idle connection is kept.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// Connections that may wait to be accepted; the system refuses more.
const BACKLOG: u32 = 1_024;

/// How long a client that was answered before it had sent all may go on sending into the void; cut off at once, many
/// would never see the answer.
const LINGER: Duration = Duration::from_secs(5);

/// A server that has its port.
pub struct Application {
    server: Server,
    local_addr: SocketAddr,
}

impl Application {
    /// Takes the port. Must be called inside a tokio runtime that outlives the server: work whose caller has left is
    /// finished there, on `tasks`.
    ///
    /// # Errors
    /// The address cannot be bound, or there is no runtime.
    pub fn bind(services: Services, settings: HttpSettings, tasks: TaskTracker) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let HttpSettings { listen, workers, shutdown_timeout, head_timeout, max_connections, .. } = settings;
        let body_timeout = BodyTimeout(settings.body_timeout);
        let gateway = Arc::new(Gateway::new(services, settings, Afterlife::new(tasks, runtime)));
        let factory = move || {
            let gateway = Arc::clone(&gateway);
            // The whole routing is one table (`http/routes.rs`), so the framework's own has a single entry.
            App::new().app_data(body_timeout).default_service(web::to(move |request: HttpRequest, payload: Payload| {
                edge::serve(Arc::clone(&gateway), request, payload)
            }))
        };
        let mut server = HttpServer::new(factory)
            .disable_signals()
            .shutdown_timeout(shutdown_timeout.as_secs())
            .client_request_timeout(head_timeout)
            .max_connections(max_connections)
            .backlog(BACKLOG)
            .client_disconnect_timeout(LINGER)
            .keep_alive(KEEP_ALIVE)
            .tcp_nodelay(true)
            // A client that closes its side has left: its request is dropped, which is how it is noticed.
            .h1_allow_half_closed(false);
        if let Some(workers) = workers {
            server = server.workers(workers);
        }
        let server = server.bind(listen)?;
        let local_addr = server.addrs().first().copied().ok_or_else(|| io::Error::other("no address was bound"))?;
        Ok(Self { server: server.run(), local_addr })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Stops it: `handle().stop(true)` refuses new connections and waits for requests in flight.
    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Serves until it is stopped.
    pub async fn run(self) -> io::Result<()> {
        self.server.await
    }
}
