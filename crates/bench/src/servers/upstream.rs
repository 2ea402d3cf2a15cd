//! Providers of every wire that answer immediately.

use std::convert::Infallible;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use crate::wires::OUTBOUND;

/// Serves until it is killed.
pub async fn upstream() -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    super::print_address(listener.local_addr()?)?;
    let tasks = TaskTracker::new();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tasks.spawn(async move {
            // A broken connection is handled by the client.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let outbound = OUTBOUND.iter().find(|outbound| outbound.path == request.uri().path());
    let _ = request.into_body().collect().await;
    let Some(outbound) = outbound else {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    };
    let mut response = Response::new(Full::new(Bytes::from_static(outbound.answer.as_bytes())));
    response
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    Ok(response)
}
