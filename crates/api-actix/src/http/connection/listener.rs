//! Accepts connections and hands each to a worker's loop.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;

use actix_http::{Request, Response, ServiceConfig};
use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::dev::{AppConfig, Server, Service, ServiceFactory, fn_factory, fn_service};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::TcpStream;

use super::fault::HeadFault;
use super::registry::Connections;
use super::serve::{Context, serve};
use super::settings::ConnectionSettings;

/// Answers a request whose head cannot be read, and logs it.
pub(crate) type RejectHead = Arc<dyn Fn(HeadFault, Option<SocketAddr>) -> HttpResponse + Send + Sync>;

/// Connections that may wait to be accepted; the system refuses more.
const BACKLOG: i32 = 1_024;
/// The most unacknowledged bytes that the system keeps for one connection. A body that waits behind them stays where
/// it lies.
const SEND_BUFFER: usize = 512 * 1024;

/// A port and the settings of its connections.
pub(crate) struct Listener {
    pub(crate) listen: SocketAddr,
    pub(crate) workers: Option<usize>,
    /// Connections at a time, of each worker; more wait to be accepted.
    pub(crate) max_connections: usize,
    /// How long a graceful stop waits for connections; whole seconds count.
    pub(crate) shutdown_timeout_secs: u64,
    pub(crate) settings: ConnectionSettings,
    pub(crate) connections: Connections,
    pub(crate) reject: RejectHead,
}

/// A server that has its port.
pub(crate) struct Bound {
    pub(crate) server: Server,
    pub(crate) local_addr: SocketAddr,
    /// Resolves when the server begins a graceful stop.
    pub(crate) stopping: BoxFuture<'static, ()>,
}

impl Listener {
    /// Takes the port. `app` is called once by each worker.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub(crate) fn bind<F, A>(self, app: F) -> io::Result<Bound>
    where
        F: Fn() -> A + Send + Clone + 'static,
        A: ServiceFactory<Request, Config = AppConfig, InitError = ()> + 'static,
        A::Response: Into<Response<BoxBody>>,
        A::Error: Into<actix_web::Error>,
        A::Service: 'static,
    {
        let listener = bound(self.listen, &self.settings)?;
        let local_addr = listener.local_addr()?;
        let mut builder = Server::build()
            .disable_signals()
            .shutdown_timeout(self.shutdown_timeout_secs)
            .max_concurrent_connections(self.max_connections);
        if let Some(workers) = self.workers {
            builder = builder.workers(workers);
        }
        let stopping = builder.graceful_shutdown_signal();
        let stopping = async move { stopping.notified().await }.boxed();
        let Self { settings, connections, reject, .. } = self;
        let server = builder.listen("http", listener, move || {
            let (app, connections, reject) = (app.clone(), connections.clone(), Arc::clone(&reject));
            fn_factory(move || {
                let (connections, reject) = (connections.clone(), Arc::clone(&reject));
                let app = app().new_service(AppConfig::default());
                async move {
                    let app = app.await?;
                    let context = Context { app, http: ServiceConfig::default(), settings, connections, reject };
                    Ok::<_, ()>(connection_service(Rc::new(context)))
                }
            })
        })?;
        Ok(Bound { server: server.run(), local_addr, stopping })
    }
}

fn connection_service<S>(context: Rc<Context<S>>) -> impl Service<TcpStream, Response = (), Error = Infallible>
where
    S: Service<Request> + 'static,
    S::Response: Into<Response<BoxBody>>,
    S::Error: Into<actix_web::Error>,
{
    fn_service::<_, _, _, _, _, ()>(move |stream: TcpStream| {
        let context = Rc::clone(&context);
        async move {
            let peer = stream.peer_addr().ok();
            serve(stream, peer, context).await;
            Ok(())
        }
    })
}

/// A listening socket. Accepted sockets inherit its options.
fn bound(address: SocketAddr, settings: &ConnectionSettings) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    set_user_timeout(&SockRef::from(&socket), settings)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The system ends a connection whose peer acknowledges no byte for as long as the client may take none.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn set_user_timeout(socket: &SockRef<'_>, settings: &ConnectionSettings) -> io::Result<()> {
    socket.set_tcp_user_timeout(Some(settings.write_timeout))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set_user_timeout(_: &SockRef<'_>, _: &ConnectionSettings) -> io::Result<()> {
    Ok(())
}
