//! Calls over a Unix socket.

use http::header::HOST;
use http::{HeaderValue, Request, Response};
use hyper::client::conn::http1;
use hyper::rt::Executor as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixStream;

use crate::body::{ReceivedBody, RequestBody, received};
use crate::errors::{Error, Loss};

/// Sends a request over a connected Unix socket and returns the head of the answer, of any status. The connection ends
/// with the body of the answer.
///
/// # Errors
/// The connection broke before the head of the answer.
pub async fn send_over(stream: UnixStream, mut request: Request<RequestBody>) -> Result<Response<ReceivedBody>, Error> {
    request.headers_mut().entry(HOST).or_insert(HeaderValue::from_static("localhost"));
    let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await.map_err(Error::Handshake)?;
    TokioExecutor::new().execute(async move { drop(driver.await) });
    let answer = sender.send_request(request).await;
    let answer = answer.map_err(|source| Error::Lost { loss: Loss::Unknown, source })?;
    Ok(answer.map(received))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::body::full;

    #[tokio::test]
    async fn request_is_answered_over_the_socket() {
        let (client, mut server) = UnixStream::pair().unwrap();
        let answering = async {
            let mut head = vec![0; 1024];
            let length = server.read(&mut head).await.unwrap();
            server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
            String::from_utf8_lossy(&head[..length]).into_owned()
        };
        let request = Request::get("/keys?limit=1").body(full("")).unwrap();
        let (answer, head) = tokio::join!(send_over(client, request), answering);
        assert!(head.starts_with("GET /keys?limit=1 HTTP/1.1\r\nhost: localhost\r\n"), "{head}");
        assert_eq!(answer.unwrap().into_body().collect().await.unwrap().to_bytes(), "{}");
    }

    #[tokio::test]
    async fn server_that_stops_is_a_loss() {
        let (client, server) = UnixStream::pair().unwrap();
        drop(server);
        let request = Request::get("/").body(full("")).unwrap();
        let lost = send_over(client, request).await.unwrap_err();
        assert!(matches!(lost, Error::Lost { .. } | Error::Handshake(_)), "{lost:?}");
    }
}
