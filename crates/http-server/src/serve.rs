//! The request loop of a connection.

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use actix_http::{ConnectionType, HttpMessage as _, Request, Response, ServiceConfig};
use actix_web::body::BoxBody;
use actix_web::dev::{Payload, Service};
use actix_web::http::{Method, Version};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::head_error::{HeadError, RejectHead};
use super::registry::{Connections, OpenConnection};
use super::response;
use super::settings::ConnectionSettings;
use super::slots::State;
use super::socket::{Peer, Socket};
use super::transport::{Head, RequestBody, Transport};

/// The response to an HTTP/2 client: empty SETTINGS, then GOAWAY with the code `HTTP_1_1_REQUIRED`.
const HTTP_1_1_REQUIRED: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0d";

/// The state that all connections of a worker share.
pub(super) struct Context<S> {
    pub(super) app: S,
    pub(super) http: ServiceConfig,
    pub(super) settings: ConnectionSettings,
    pub(super) connections: Connections,
    pub(super) reject: RejectHead,
}

/// Serves the requests of one connection until either side closes it, once it has a slot.
pub(super) async fn serve<IO, S>(io: IO, context: Rc<Context<S>>)
where
    IO: Socket + 'static,
    S: Service<Request>,
    S::Response: Into<Response<BoxBody>>,
    S::Error: Into<actix_web::Error>,
{
    let connection = context.connections.register();
    connection.wait_for_slot().await;
    tokio::select! {
        biased;
        () = serve_requests(io, &connection, &context) => {}
        () = connection.wait_for_preemption() => {}
    }
}

async fn serve_requests<IO, S>(io: IO, connection: &OpenConnection, context: &Context<S>)
where
    IO: Socket + 'static,
    S: Service<Request>,
    S::Response: Into<Response<BoxBody>>,
    S::Error: Into<actix_web::Error>,
{
    let peer = io.peer();
    let transport = Transport::new(io, context.http.clone(), context.settings);
    let transport = Rc::new(RefCell::new(transport));
    loop {
        let request = match poll_fn(|cx| transport.borrow_mut().poll_head(cx, connection)).await {
            Head::Request(request) => request,
            Head::Closed => return,
            Head::Fault(fault) => {
                connection.set(State::InRequest, Instant::now());
                return reject(&transport, fault, peer.address(), context).await;
            }
        };
        connection.set(State::InRequest, transport.borrow().head_began());
        let request = Incoming::new(request, peer, &transport);
        let Incoming { head_only, upgrade, .. } = request;
        let Some(mut response) = answer(request.request, &transport, &context.app).await else { return };
        let close_reason = close_reason(&transport, connection, upgrade);
        if close_reason != CloseReason::Client {
            response.head_mut().set_connection_type(ConnectionType::Close);
        }
        if response::write(&transport, response, head_only).await.is_err() {
            return;
        }
        if !transport.borrow().codec.keep_alive() {
            return close(&transport, matches!(close_reason, CloseReason::Server | CloseReason::Unread)).await;
        }
        let now = Instant::now();
        transport.borrow_mut().await_next(now);
        connection.set(State::Idle, now);
    }
}

struct Incoming {
    request: Request,
    head_only: bool,
    upgrade: bool,
}

impl Incoming {
    fn new<IO>(mut request: Request, peer: Peer, transport: &Rc<RefCell<Transport<IO>>>) -> Self
    where
        IO: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let head = request.head_mut();
        head.peer_addr = peer.address();
        let head_only = head.method == Method::HEAD;
        let upgrade = head.version == Version::HTTP_11 && head.connection_type() == ConnectionType::Upgrade;
        #[cfg(unix)]
        if let Peer::Credentials(Some(credentials)) = peer {
            request.extensions_mut().insert(credentials);
        }
        if let Some(body) = RequestBody::current(transport) {
            *request.payload() = Payload::Stream { payload: Box::pin(body) };
        }
        Self { request, head_only, upgrade }
    }
}

/// The reason to close or keep the connection after a response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CloseReason {
    /// The request of the client decides.
    Client,
    /// The server closes: it drains, or the client asked for another protocol.
    Server,
    /// The server closes, because another connection waits for the slot.
    Crowded,
    /// The server must close, because the start of the next request is unknown.
    Unread,
}

fn close_reason<IO: AsyncRead + AsyncWrite + Unpin>(
    transport: &RefCell<Transport<IO>>,
    connection: &OpenConnection,
    upgrade: bool,
) -> CloseReason {
    let Transport { body, codec, read_buf, .. } = &mut *transport.borrow_mut();
    body.skip(codec, read_buf);
    match body.is_complete() {
        false => CloseReason::Unread,
        true if upgrade || connection.is_draining() => CloseReason::Server,
        true if connection.is_crowded() => CloseReason::Crowded,
        true => CloseReason::Client,
    }
}

/// Runs the handler; returns `None` if the client disconnected first.
async fn answer<IO, S>(request: Request, transport: &RefCell<Transport<IO>>, app: &S) -> Option<Response<BoxBody>>
where
    IO: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request>,
    S::Response: Into<Response<BoxBody>>,
    S::Error: Into<actix_web::Error>,
{
    let mut call = pin!(app.call(request));
    let outcome = poll_fn(|cx| match call.as_mut().poll(cx) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending => transport.borrow_mut().poll_disconnect(cx).map(|()| None),
    });
    Some(match outcome.await? {
        Ok(response) => response.into(),
        Err(error) => error.into().error_response().into(),
    })
}

/// Answers a request whose head cannot be read, and closes the connection.
async fn reject<IO, S>(
    transport: &Rc<RefCell<Transport<IO>>>,
    fault: HeadError,
    peer: Option<SocketAddr>,
    context: &Context<S>,
) where
    IO: Socket,
{
    let response = (context.reject)(fault, peer);
    let written = if fault == HeadError::Http2 {
        response::write_bytes(transport, HTTP_1_1_REQUIRED).await
    } else {
        // The codec keeps state of the previous request, which must not affect this response.
        transport.borrow_mut().codec = actix_http::h1::Codec::new(context.http.clone());
        let mut response: Response<BoxBody> = response.into();
        response.head_mut().set_connection_type(ConnectionType::Close);
        response::write(transport, response, false).await
    };
    if written.is_ok() {
        close(transport, true).await;
    }
}

/// Closes the sending side, then discards input within limits. Bytes that arrive at a closed socket would reset the
/// connection, and the client could lose the response.
async fn close<IO: Socket>(transport: &RefCell<Transport<IO>>, expects_input: bool) {
    let until = Instant::now() + transport.borrow().settings.linger_timeout;
    let shut = poll_fn(|cx| Pin::new(&mut transport.borrow_mut().io).poll_shutdown(cx));
    if tokio::time::timeout_at(until, shut).await.is_err() || transport.borrow().ended() {
        return;
    }
    if expects_input || transport.borrow().io.has_input() {
        let mut left = transport.borrow().settings.linger_bytes;
        poll_fn(|cx| transport.borrow_mut().poll_discard(cx, until, &mut left)).await;
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
