//! The server: bound, not yet running; the binary and the tests use the same one.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_service::IntoServiceFactory;
use actix_web::dev::{Server, ServerHandle};
use actix_web::web::{self, Payload};
use actix_web::{App, HttpRequest};
use domain::decision::DraftBounds;
use futures_util::future::BoxFuture;
use ipnet::IpNet;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::gateway::{Gateway, Services};
use crate::http::body::BodyTimeout;
use crate::http::connection::{ConnectionSettings, Connections, Listener};
use crate::http::edge;
use crate::http::head_rejection::HeadRejection;
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
    /// Bounds of what a Decisions request holds.
    pub draft_bounds: DraftBounds,
    /// Most requests at once, open routes not counted; `None` is no limit.
    pub max_in_flight: Option<usize>,
    /// The deadlines and bounds of each connection.
    pub connection: ConnectionSettings,
    /// How long a client may take to send a request's body.
    pub body_timeout: Duration,
    /// How long a Decisions request may take, from its whole body to its answer.
    pub request_timeout: Duration,
    /// Connections at a time, of each worker; more wait to be accepted.
    pub max_connections: usize,
    /// Networks whose `X-Forwarded-For` is believed when the client's address is logged.
    pub trusted_proxies: Vec<IpNet>,
    /// Threads that serve; `None` is one per core.
    pub workers: Option<usize>,
    /// How long a graceful stop waits for requests in flight; whole seconds count.
    pub shutdown_timeout: Duration,
}

/// A server that has its port.
pub struct Application {
    server: Server,
    local_addr: SocketAddr,
    connections: Connections,
    stopping: BoxFuture<'static, ()>,
}

impl Application {
    /// Takes the port. Must be called inside a tokio runtime that outlives the server: work whose caller has left is
    /// finished there, on `tasks`.
    ///
    /// # Errors
    /// The address cannot be bound, or there is no runtime.
    pub fn bind(services: Services, settings: HttpSettings, tasks: TaskTracker) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let HttpSettings { listen, workers, shutdown_timeout, connection, max_connections, .. } = settings;
        let body_timeout = BodyTimeout(settings.body_timeout);
        let gateway = Arc::new(Gateway::new(services, settings, Afterlife::new(tasks, runtime)));
        let connections = Connections::default();
        let listener = Listener {
            listen,
            workers,
            max_connections,
            shutdown_timeout_secs: shutdown_timeout.as_secs(),
            settings: connection,
            connections: connections.clone(),
            reject: HeadRejection::new(Arc::clone(&gateway)).into_callback(),
        };
        let bound = listener.bind(move || {
            let gateway = Arc::clone(&gateway);
            // The whole routing is one table (`http/routes.rs`), so the framework's own has a single entry.
            App::new()
                .app_data(body_timeout)
                .default_service(web::to(move |request: HttpRequest, payload: Payload| {
                    edge::serve(Arc::clone(&gateway), request, payload)
                }))
                .into_factory()
        })?;
        Ok(Self { server: bound.server, local_addr: bound.local_addr, connections, stopping: bound.stopping })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The open connections, to drain them before a stop.
    pub fn connections(&self) -> Connections {
        self.connections.clone()
    }

    /// Stops it: `handle().stop(true)` refuses new connections and waits for requests in flight.
    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Serves until it is stopped. A graceful stop closes idle connections.
    ///
    /// # Errors
    /// The listener failed.
    pub async fn run(self) -> io::Result<()> {
        let Self { server, connections, stopping, .. } = self;
        tokio::pin!(server);
        tokio::select! {
            served = &mut server => return served,
            () = stopping => connections.close_idle(),
        }
        server.await
    }
}
