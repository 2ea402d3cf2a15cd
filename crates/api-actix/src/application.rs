//! The HTTP server, which listens on its port and the operator's socket before it runs. The binary and the tests use the
//! same one.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use actix_service::IntoServiceFactory;
use actix_web::web::Payload;
use actix_web::{App, HttpRequest, web};
use http_server::{BoundServer, BoundSocket, Connections, ListenSocket, Listener, Preemption, StopSettings, Stopper};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::app::{ROUTES, openapi_document};
use crate::gateway::{Gateway, HttpSettings};
use crate::http::admission::InFlightCounts;
use crate::http::detach::DetachOnDisconnect;
use crate::http::edge;
use crate::http::edge::HeadRejection;
use crate::http::routes::RouteTable;
use crate::operator::{Door, OperatorSocket};
use crate::rendered_openapi::RenderedOpenApi;
use crate::services::Services;

/// Concurrent connections of the operator.
const OPERATOR_CONNECTIONS: usize = 64;

/// A server that is bound to its port, and optionally to the operator's socket.
pub struct Application {
    bound: BoundServer,
    local_addr: SocketAddr,
    connections: Connections,
    operator: Option<(BoundServer, Connections)>,
    stop: StopSettings,
    gateway: Arc<Gateway>,
}

impl Application {
    /// Listens on the port. Must be called inside a tokio runtime that outlives the server: work of disconnected clients
    /// is finished there, on `tasks`.
    ///
    /// # Errors
    /// Another socket listens on the address, or there is no runtime.
    pub fn listen(
        socket: BoundSocket,
        services: Services,
        settings: HttpSettings,
        tasks: TaskTracker,
    ) -> io::Result<Self> {
        let HttpSettings { drain_period, shutdown_timeout, .. } = settings;
        let socket = socket.listen()?;
        let local_addr = socket.local_addr()?;
        let workers = http_server::workers(settings.workers);
        let connections = Connections::new(settings.max_connections.saturating_mul(workers), Preemption::Idle);
        let gateway = gateway(services, settings, Some(local_addr), tasks, connections.clone())?;
        let socket = ListenSocket::Tcp(socket);
        let bound = bind(&gateway, socket, Door::Port, workers, connections.clone())?;
        let stopping = gateway.stopping.clone();
        let stop = StopSettings { drain_period, timeout: shutdown_timeout, stopping };
        Ok(Self { bound, local_addr, connections, operator: None, stop, gateway })
    }

    /// Serves the operator over a Unix socket, too, until the requests of the port have ended.
    ///
    /// # Errors
    /// The socket cannot be used.
    pub fn listen_for_operator(&mut self, socket: OperatorSocket) -> io::Result<()> {
        let connections = Connections::new(OPERATOR_CONNECTIONS, Preemption::Idle);
        self.operator = Some((bind_operator(&self.gateway, socket, connections.clone())?, connections));
        Ok(())
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
        let timeout = self.stop.timeout;
        let (running, stopper) = self.bound.run(self.stop);
        let operator = self.operator;
        let running = async move {
            let Some((operator, connections)) = operator else { return running.await };
            let mut operator = pin!(operator.serve());
            let served = tokio::select! {
                served = running => served,
                served = &mut operator => return served,
            };
            connections.begin_drain();
            connections.close_idle();
            tokio::select! {
                ended = &mut operator => return ended,
                _ = tokio::time::timeout(timeout, connections.closed()) => {}
            }
            served
        };
        (running, stopper)
    }
}

/// Serves the operator alone over a Unix socket, without a port. It ends when it is dropped.
///
/// # Errors
/// The socket cannot be used, or there is no runtime.
pub fn serve_operator(
    services: Services,
    settings: HttpSettings,
    tasks: TaskTracker,
    socket: OperatorSocket,
) -> io::Result<impl Future<Output = io::Result<()>>> {
    let connections = Connections::new(OPERATOR_CONNECTIONS, Preemption::Idle);
    let gateway = gateway(services, settings, None, tasks, connections.clone())?;
    Ok(bind_operator(&gateway, socket, connections)?.serve())
}

fn gateway(
    services: Services,
    settings: HttpSettings,
    address: Option<SocketAddr>,
    tasks: TaskTracker,
    connections: Connections,
) -> io::Result<Arc<Gateway>> {
    let detach = DetachOnDisconnect::new(tasks, Handle::try_current().map_err(io::Error::other)?);
    let openapi = RenderedOpenApi::new(openapi_document(&settings.base_path));
    Ok(Arc::new(Gateway::new(services, settings, address, openapi, detach, connections)))
}

fn bind_operator(
    gateway: &Arc<Gateway>,
    OperatorSocket { listener, actor }: OperatorSocket,
    connections: Connections,
) -> io::Result<BoundServer> {
    bind(gateway, ListenSocket::Unix(listener), Door::Operator(actor), 1, connections)
}

fn bind(
    gateway: &Arc<Gateway>,
    socket: ListenSocket,
    door: Door,
    workers: usize,
    connections: Connections,
) -> io::Result<BoundServer> {
    let reject = HeadRejection::new(Arc::clone(gateway)).into_callback();
    let listener = Listener { socket, workers, settings: gateway.settings.connection, connections, reject };
    let gateway = Arc::clone(gateway);
    listener.bind(move || {
        let (gateway, door) = (Arc::clone(&gateway), door.clone());
        // The whole routing is one table (`app.rs`), so the framework's own has a single entry.
        App::new()
            .default_service(web::to(move |request: HttpRequest, payload: Payload| {
                edge::serve(Arc::clone(&gateway), RouteTable(ROUTES), door.clone(), request, payload)
            }))
            .into_factory()
    })
}
