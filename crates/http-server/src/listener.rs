//! Accepts connections and hands each to a worker.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;
use std::task;
use std::thread;
use std::time::Duration;

use actix_http::{Request, Response, ServiceConfig};
use actix_web::body::BoxBody;
use actix_web::dev::{AppConfig, Server, ServerHandle, Service, ServiceFactory};
use futures_util::future::LocalBoxFuture;
use socket2::{Domain, Protocol, SockRef, Socket as SystemSocket, Type};

use super::head_error::RejectHead;
use super::registry::Connections;
use super::serve::{Context, serve};
use super::settings::ConnectionSettings;
use super::socket::{ListenSocket, Socket};
use super::stopper::{Gate, StopSettings, Stopper};

/// The length of the accept queue; the system rejects more connections.
const BACKLOG: i32 = 1_024;
/// The number of connections that each worker accepts beyond its limit, so that idle connections can be closed for
/// them.
const MAX_WAITING_PER_WORKER: usize = 16;
/// The maximum number of workers of the web framework.
const MAX_WORKERS: usize = 512;
/// The stop timeout of the framework. It is long because this crate waits for the connections itself, with millisecond
/// precision.
const FRAMEWORK_STOP_SECS: u64 = 24 * 60 * 60;
/// The longest wait for the tasks of connections that a stop has closed.
const CONNECTION_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A listening socket, and how its connections are served.
pub struct Listener {
    /// The socket.
    pub socket: ListenSocket,
    /// The number of worker threads; see [`workers`].
    pub workers: usize,
    /// The deadlines and bounds of each connection.
    pub settings: ConnectionSettings,
    /// The registry of the connections, with their limit.
    pub connections: Connections,
    /// Answers a request whose head cannot be read.
    pub reject: RejectHead,
}

/// A server whose socket listens. It serves once [`Self::run`] or [`Self::serve`] is polled.
pub struct BoundServer {
    server: Server,
    connections: Connections,
    /// Blocks new connections before a stop; the socket stays open while it exists.
    gate: Gate,
}

/// Returns the number of worker threads; the default is one per core.
pub fn workers(configured: Option<usize>) -> usize {
    configured.unwrap_or_else(|| thread::available_parallelism().map_or(2, NonZero::get)).clamp(1, MAX_WORKERS)
}

/// A socket that has its address and does not listen yet: the system rejects connections to it.
#[derive(Debug)]
pub struct BoundSocket(SystemSocket);

/// Binds a socket; port 0 takes any free port. Accepted sockets inherit its options.
///
/// # Errors
/// The address cannot be bound, for example because another socket listens on it.
pub fn bind_tcp(address: SocketAddr, settings: &ConnectionSettings) -> io::Result<BoundSocket> {
    let socket = SystemSocket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_send_buffer_size(settings.send_buffer_bytes)?;
    set_user_timeout(&SockRef::from(&socket), settings)?;
    socket.bind(&address.into())?;
    Ok(BoundSocket(socket))
}

impl BoundSocket {
    /// Begins to listen.
    ///
    /// # Errors
    /// Another socket has begun to listen on the address.
    pub fn listen(self) -> io::Result<TcpListener> {
        self.0.listen(BACKLOG)?;
        Ok(self.0.into())
    }
}

/// Makes the system close a connection whose peer acknowledges no bytes within the write timeout.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn set_user_timeout(socket: &SockRef<'_>, settings: &ConnectionSettings) -> io::Result<()> {
    socket.set_tcp_user_timeout(Some(settings.write_timeout))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set_user_timeout(_: &SockRef<'_>, _: &ConnectionSettings) -> io::Result<()> {
    Ok(())
}

impl Listener {
    /// Begins to accept. Each worker calls `app` once.
    ///
    /// # Errors
    /// The socket has failed.
    pub fn bind<F, A>(self, app: F) -> io::Result<BoundServer>
    where
        F: Fn() -> A + Send + Clone + 'static,
        A: ServiceFactory<Request, Config = AppConfig, InitError = ()> + 'static,
        A::Response: Into<Response<BoxBody>>,
        A::Error: Into<actix_web::Error>,
        A::Service: 'static,
    {
        let Self { socket, workers, settings, connections, reject } = self;
        let gate = Gate::new(&socket)?;
        let builder = Server::build()
            .disable_signals()
            .workers(workers)
            .shutdown_timeout(FRAMEWORK_STOP_SECS)
            .max_concurrent_connections(connections.limit().div_ceil(workers).saturating_add(MAX_WAITING_PER_WORKER));
        let factory = ConnectionFactory { app, settings, connections: connections.clone(), reject };
        let server = match socket {
            ListenSocket::Tcp(listener) => builder.listen("http", listener, move || factory.clone())?,
            #[cfg(unix)]
            ListenSocket::Unix(listener) => builder.listen_uds("http", listener, move || factory.clone())?,
        };
        Ok(BoundServer { server: server.run(), connections, gate })
    }
}

impl BoundServer {
    /// Returns the handle that ends the server without a drain.
    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Serves requests until the server is ended by its handle.
    ///
    /// # Errors
    /// The listener failed.
    pub async fn serve(self) -> io::Result<()> {
        self.server.await
    }

    /// Returns the future that serves requests and the handle that stops it.
    ///
    /// # Errors
    /// The future fails if the listener fails.
    pub fn run(self, settings: StopSettings) -> (impl Future<Output = io::Result<()>> + Send, Stopper) {
        let Self { server, connections, gate } = self;
        let (stopper, ended) = Stopper::new(settings, connections.clone(), gate, server.handle());
        let running = async move {
            tokio::select! {
                served = server => return served,
                () = ended.cancelled() => {}
            }
            // The server is dropped here, and its workers drop the remaining connections. Their unfinished work moves
            // to detached tasks at that point.
            let _ = tokio::time::timeout(CONNECTION_CLOSE_TIMEOUT, connections.closed()).await;
            Ok(())
        };
        (running, stopper)
    }
}

/// Creates the service of each worker.
#[derive(Clone)]
struct ConnectionFactory<F> {
    app: F,
    settings: ConnectionSettings,
    connections: Connections,
    reject: RejectHead,
}

impl<F, A, IO> ServiceFactory<IO> for ConnectionFactory<F>
where
    F: Fn() -> A,
    A: ServiceFactory<Request, Config = AppConfig, InitError = ()> + 'static,
    A::Response: Into<Response<BoxBody>>,
    A::Error: Into<actix_web::Error>,
    A::Service: 'static,
    IO: Socket + 'static,
{
    type Response = ();
    type Error = Infallible;
    type Config = ();
    type Service = ConnectionService<A::Service>;
    type InitError = ();
    type Future = LocalBoxFuture<'static, Result<Self::Service, ()>>;

    fn new_service(&self, (): ()) -> Self::Future {
        let (settings, connections, reject) = (self.settings, self.connections.clone(), Arc::clone(&self.reject));
        let app = (self.app)().new_service(AppConfig::default());
        Box::pin(async move {
            let context = Context { app: app.await?, http: ServiceConfig::default(), settings, connections, reject };
            Ok(ConnectionService(Rc::new(context)))
        })
    }
}

/// Serves connections on one worker.
struct ConnectionService<S>(Rc<Context<S>>);

impl<S, IO> Service<IO> for ConnectionService<S>
where
    S: Service<Request> + 'static,
    S::Response: Into<Response<BoxBody>>,
    S::Error: Into<actix_web::Error>,
    IO: Socket + 'static,
{
    type Response = ();
    type Error = Infallible;
    type Future = LocalBoxFuture<'static, Result<(), Infallible>>;

    fn poll_ready(&self, _: &mut task::Context<'_>) -> task::Poll<Result<(), Infallible>> {
        task::Poll::Ready(Ok(()))
    }

    fn call(&self, stream: IO) -> Self::Future {
        let context = Rc::clone(&self.0);
        Box::pin(async move {
            serve(stream, context).await;
            Ok(())
        })
    }
}

#[cfg(all(test, unix))]
mod tests;
