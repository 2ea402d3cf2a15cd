//! Accepts connections and hands each to a worker.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use actix_http::{Request, Response, ServiceConfig};
use actix_web::body::BoxBody;
use actix_web::dev::{AppConfig, Server, Service, ServiceFactory, fn_factory, fn_service};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::TcpStream;

use super::gate::Gate;
use super::head_error::RejectHead;
use super::registry::Connections;
use super::serve::{Context, serve};
use super::settings::ConnectionSettings;

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

/// A listen address and the settings of its connections.
pub(crate) struct Listener {
    pub(crate) listen: SocketAddr,
    pub(crate) workers: usize,
    pub(crate) settings: ConnectionSettings,
    pub(crate) connections: Connections,
    pub(crate) reject: RejectHead,
}

/// A server that is bound to its port.
pub(crate) struct BoundServer {
    pub(crate) server: Server,
    pub(crate) local_addr: SocketAddr,
    /// Blocks new connections before a stop; the port stays bound while it exists.
    pub(crate) gate: Gate,
}

impl Listener {
    /// Returns the number of worker threads; the default is one per core.
    pub(crate) fn workers(configured: Option<usize>) -> usize {
        configured.unwrap_or_else(|| thread::available_parallelism().map_or(2, NonZero::get)).clamp(1, MAX_WORKERS)
    }

    /// Binds the port. Each worker calls `app` once.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub(crate) fn bind<F, A>(self, app: F) -> io::Result<BoundServer>
    where
        F: Fn() -> A + Send + Clone + 'static,
        A: ServiceFactory<Request, Config = AppConfig, InitError = ()> + 'static,
        A::Response: Into<Response<BoxBody>>,
        A::Error: Into<actix_web::Error>,
        A::Service: 'static,
    {
        let listener = open_socket(self.listen, &self.settings)?;
        let local_addr = listener.local_addr()?;
        let gate = Gate::new(&listener)?;
        let Self { settings, connections, reject, .. } = self;
        let builder = Server::build()
            .disable_signals()
            .workers(self.workers)
            .shutdown_timeout(FRAMEWORK_STOP_SECS)
            .max_concurrent_connections(
                connections.limit().div_ceil(self.workers).saturating_add(MAX_WAITING_PER_WORKER),
            );
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
        Ok(BoundServer { server: server.run(), local_addr, gate })
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

/// Opens a listening socket. Accepted sockets inherit its options.
fn open_socket(address: SocketAddr, settings: &ConnectionSettings) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_send_buffer_size(settings.send_buffer_bytes)?;
    set_user_timeout(&SockRef::from(&socket), settings)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use actix_service::IntoServiceFactory;
    use actix_web::{App, HttpResponse, web};
    use bytes::Bytes;
    use futures_util::{StreamExt, stream};
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpSocket;
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::http::connection::settings::Preemption;

    const PIECE: usize = 64 * 1024;

    #[tokio::test]
    async fn unread_response_is_produced_up_to_one_mebibyte() {
        let made = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&made);
        let listener = Listener {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            workers: 1,
            settings: ConnectionSettings::default(),
            connections: Connections::new(1, Preemption::Idle),
            reject: Arc::new(|_, _| HttpResponse::BadRequest().finish()),
        };
        let bound = listener.bind(move || {
            let counted = Arc::clone(&counted);
            let serve = move || {
                let counted = Arc::clone(&counted);
                let piece = move |_| {
                    counted.fetch_add(PIECE, Ordering::SeqCst);
                    Ok::<_, actix_web::Error>(Bytes::from(vec![b'x'; PIECE]))
                };
                async move { HttpResponse::Ok().streaming(stream::iter(0..1_000).map(piece)) }
            };
            App::new().default_service(web::to(serve)).into_factory()
        });
        let BoundServer { server, local_addr, .. } = bound.unwrap();
        let tasks = TaskTracker::new();
        let (handle, running) = (server.handle(), tasks.spawn(server));
        let client = TcpSocket::new_v4().unwrap();
        client.set_recv_buffer_size(64 * 1024).unwrap();
        let mut client = client.connect(local_addr).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut before = 0;
        let stalled_at = loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = made.load(Ordering::SeqCst);
            if now > 0 && now == before {
                break now;
            }
            before = now;
        };
        // The client's receive buffer holds part of the response.
        assert!(stalled_at <= (1 << 20) + 4 * PIECE, "{stalled_at}");
        handle.stop(false).await;
        running.await.unwrap().unwrap();
    }

    #[test]
    fn accepted_sockets_have_a_bounded_send_buffer_and_the_write_timeout() {
        let settings = ConnectionSettings {
            send_buffer_bytes: 64 * 1024,
            write_timeout: Duration::from_secs(7),
            ..ConnectionSettings::default()
        };
        for (settings, most) in [(settings, 128 * 1024), (ConnectionSettings::default(), 1024 * 1024)] {
            let listener = open_socket(SocketAddr::from(([127, 0, 0, 1], 0)), &settings).unwrap();
            let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            let socket = SockRef::from(&accepted);
            let bytes = socket.send_buffer_size().unwrap();
            assert!((64 * 1024..=most).contains(&bytes), "{bytes}");
            assert!(socket.tcp_nodelay().unwrap());
            #[cfg(target_os = "linux")]
            assert_eq!(socket.tcp_user_timeout().unwrap(), Some(settings.write_timeout));
        }
    }
}
