//! The HTTP server, bound to its port before it runs. The binary and the tests use the same one.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use actix_service::IntoServiceFactory;
use actix_web::web::Payload;
use actix_web::{App, HttpRequest, web};
use http_server::{BoundServer, Connections, ListenSocket, Listener, Preemption, StopSettings, Stopper, listen_tcp};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::app::{ROUTES, openapi_document};
use crate::gateway::{Gateway, HttpSettings};
use crate::http::admission::InFlightCounts;
use crate::http::detach::DetachOnDisconnect;
use crate::http::edge;
use crate::http::edge::HeadRejection;
use crate::http::routes::RouteTable;
use crate::rendered_openapi::RenderedOpenApi;
use crate::services::Services;

/// A server that is bound to its port.
pub struct Application {
    bound: BoundServer,
    local_addr: SocketAddr,
    connections: Connections,
    stop: StopSettings,
    gateway: Arc<Gateway>,
}

impl Application {
    /// Binds the port. Must be called inside a tokio runtime that outlives the server: work of disconnected clients is
    /// finished there, on `tasks`.
    ///
    /// # Errors
    /// The address cannot be bound, or there is no runtime.
    pub fn bind(services: Services, settings: HttpSettings, tasks: TaskTracker) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let HttpSettings { listen, drain_period, shutdown_timeout, connection, .. } = settings;
        let socket = listen_tcp(listen, &connection)?;
        let local_addr = socket.local_addr()?;
        let workers = http_server::workers(settings.workers);
        let connections = Connections::new(settings.max_connections.saturating_mul(workers), Preemption::Idle);
        let detach = DetachOnDisconnect::new(tasks, runtime);
        let openapi = RenderedOpenApi::new(openapi_document(&settings.base_path));
        let gateway = Arc::new(Gateway::new(services, settings, openapi, detach, connections.clone()));
        let listener = Listener {
            socket: ListenSocket::Tcp(socket),
            workers,
            settings: connection,
            connections: connections.clone(),
            reject: HeadRejection::new(Arc::clone(&gateway)).into_callback(),
        };
        let served = Arc::clone(&gateway);
        let bound = listener.bind(move || {
            let gateway = Arc::clone(&served);
            // The whole routing is one table (`app.rs`), so the framework's own has a single entry.
            App::new()
                .default_service(web::to(move |request: HttpRequest, payload: Payload| {
                    edge::serve(Arc::clone(&gateway), RouteTable(ROUTES), request, payload)
                }))
                .into_factory()
        })?;
        let stopping = gateway.stopping.clone();
        let stop = StopSettings { drain_period, timeout: shutdown_timeout, stopping };
        Ok(Self { bound, local_addr, connections, stop, gateway })
    }

    /// Returns the bound address.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Returns the open connections.
    pub fn connections(&self) -> Connections {
        self.connections.clone()
    }

    /// Returns a function that reads the bytes held by request bodies, for metrics.
    pub fn body_memory(&self) -> impl Fn() -> usize + Send + Sync + 'static {
        let memory = Arc::clone(&self.gateway.body_memory);
        move || memory.held()
    }

    /// Returns a function that reads the largest shares of in-flight operations, for metrics.
    pub fn in_flight_counts(&self) -> impl Fn() -> InFlightCounts + Clone + Send + Sync + 'static {
        let admission = Arc::clone(&self.gateway.admission);
        move || admission.counts()
    }

    /// Returns the future that serves requests and the handle that stops it.
    ///
    /// # Errors
    /// The future fails if the listener fails.
    pub fn run(self) -> (impl Future<Output = io::Result<()>> + Send, Stopper) {
        self.bound.run(self.stop)
    }
}
