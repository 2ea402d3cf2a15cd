//! The server: bound, not yet running; the binary and the tests use the same one.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_service::IntoServiceFactory;
use actix_web::dev::Server;
use actix_web::web::{self, Payload};
use actix_web::{App, HttpRequest};
use domain::decision::DraftBounds;
use ipnet::IpNet;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::gateway::{Gateway, Services};
use crate::http::admission::InFlightCounts;
use crate::http::admission_bound::AdmissionSettings;
use crate::http::body::BodyTimeout;
use crate::http::connection::{ConnectionSettings, Connections, Listener, Preemption};
use crate::http::edge;
use crate::http::head_rejection::HeadRejection;
use crate::http::outlive::Afterlife;
use crate::http::wire_names::WireNames;
use crate::stopper::Stopper;

/// How long the end of connections that were cut off is waited for.
const CUT_OFF: Duration = Duration::from_secs(1);

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
    /// Bounds of what a Decisions request holds.
    pub draft_bounds: DraftBounds,
    /// Bounds on operations in flight and on the memory of their bodies.
    pub admission: AdmissionSettings,
    /// The deadlines and bounds of each connection.
    pub connection: ConnectionSettings,
    /// How long a client may take to send a request's body.
    pub body_timeout: Duration,
    /// How long a Decisions request may take, from its whole body to its answer.
    pub request_timeout: Duration,
    /// Connections that are served at a time, of each worker; where all are taken, idle ones give way to new ones.
    pub max_connections: usize,
    /// Networks whose `X-Forwarded-For` is believed when the client's address is logged.
    pub trusted_proxies: Vec<IpNet>,
    /// Threads that serve; `None` is one per core.
    pub workers: Option<usize>,
    /// How long answers carry `Connection: close` before a stop closes the listener.
    pub drain_period: Duration,
    /// How long a stop waits for requests in flight after that.
    pub shutdown_timeout: Duration,
}

/// A server that has its port.
pub struct Application {
    server: Server,
    local_addr: SocketAddr,
    connections: Connections,
    stopper: Stopper,
    ended: CancellationToken,
    gateway: Arc<Gateway>,
}

impl Application {
    /// Takes the port. Must be called inside a tokio runtime that outlives the server: work whose caller has left is
    /// finished there, on `tasks`.
    ///
    /// # Errors
    /// The address cannot be bound, or there is no runtime.
    pub fn bind(services: Services, settings: HttpSettings, tasks: TaskTracker) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let HttpSettings { listen, drain_period, shutdown_timeout, connection, .. } = settings;
        let workers = Listener::workers(settings.workers);
        let connections = Connections::new(settings.max_connections.saturating_mul(workers), Preemption::Idle);
        let body_timeout = BodyTimeout(settings.body_timeout);
        let afterlife = Afterlife::new(tasks, runtime);
        let gateway = Arc::new(Gateway::new(services, settings, afterlife, connections.clone()));
        let listener = Listener {
            listen,
            workers,
            settings: connection,
            connections: connections.clone(),
            reject: HeadRejection::new(Arc::clone(&gateway)).into_callback(),
        };
        let served = Arc::clone(&gateway);
        let bound = listener.bind(move || {
            let gateway = Arc::clone(&served);
            // The whole routing is one table (`http/routes.rs`), so the framework's own has a single entry.
            App::new()
                .app_data(body_timeout)
                .default_service(web::to(move |request: HttpRequest, payload: Payload| {
                    edge::serve(Arc::clone(&gateway), request, payload)
                }))
                .into_factory()
        })?;
        let ended = CancellationToken::new();
        let stopper = Stopper {
            connections: connections.clone(),
            gate: bound.gate,
            server: bound.server.handle(),
            drain_period,
            timeout: shutdown_timeout,
            ended: ended.clone().drop_guard(),
        };
        Ok(Self { server: bound.server, local_addr: bound.local_addr, connections, stopper, ended, gateway })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The open connections.
    pub fn connections(&self) -> Connections {
        self.connections.clone()
    }

    /// Reads the bytes that bodies take, for metrics.
    pub fn body_memory(&self) -> impl Fn() -> usize + Send + Sync + 'static {
        let memory = Arc::clone(&self.gateway.body_memory);
        move || memory.held()
    }

    /// Reads the largest shares of places, for metrics.
    pub fn in_flight_counts(&self) -> impl Fn() -> InFlightCounts + Clone + Send + Sync + 'static {
        let admission = Arc::clone(&self.gateway.admission);
        move || admission.counts()
    }

    /// Serves until it is stopped; the future is the server, the other part stops it.
    ///
    /// # Errors
    /// Of the future: the listener failed.
    pub fn run(self) -> (impl Future<Output = io::Result<()>> + Send, Stopper) {
        let Self { server, connections, ended, .. } = self;
        let running = async move {
            tokio::select! {
                served = server => return served,
                () = ended.cancelled() => {}
            }
            // The server is dropped by now, and its workers drop the connections that are left. What their requests
            // have begun is handed over in that moment.
            let _ = tokio::time::timeout(CUT_OFF, connections.closed()).await;
            Ok(())
        };
        (running, self.stopper)
    }
}
