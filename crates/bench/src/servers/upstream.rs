//! A provider that answers at once.

use std::convert::Infallible;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

/// Answers to the three questions of the benchmark's request, as a System One provider gives them.
const ANSWER: &str = r#"{"model":"decider-1","answers":{"refund":{"type":"noul","noul":0.97},"queue":{"type":"choice","choice":"billing","confidence":0.61,"probabilities":{"billing":0.74,"hardware":0.24,"other":0.02}},"heat":{"type":"score","score":1.32,"confidence":0.55,"probabilities":{"0":0.06,"1":0.56,"2":0.38}}},"usage":{"input_tokens":212,"output_tokens":31}}"#;

/// Serves until it is killed.
pub async fn upstream() -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    super::say_address(listener.local_addr()?)?;
    let tasks = TaskTracker::new();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tasks.spawn(async move {
            // A connection that breaks is the other side's business.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let _ = request.into_body().collect().await;
    let mut response = Response::new(Full::new(Bytes::from_static(ANSWER.as_bytes())));
    response
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    Ok(response)
}
