//! A separate listener for metrics, so that a full API listener does not block scrapes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use actix_service::IntoServiceFactory;
use actix_web::dev::ServerHandle;
use actix_web::http::header::{ALLOW, CONTENT_TYPE};
use actix_web::{App, HttpRequest, HttpResponse, web};
use http_server::{
    BoundServer, BoundSocket, ConnectionSettings, Connections, ListenSocket, Listener, Preemption, RejectHead,
};

use crate::endpoints::health;

/// The source of the metrics text.
#[derive(Clone)]
pub struct Exposition {
    /// The media type of the text.
    pub content_type: &'static str,
    /// Returns the current metrics. MUST NOT block: no store is queried.
    pub text: Arc<dyn Fn() -> String + Send + Sync>,
}

/// The settings of the metrics listener.
#[derive(Debug, Clone, Copy)]
pub struct MetricsSettings {
    /// The maximum number of connections. At the limit, the connection without progress for the longest time is closed
    /// for a new one, so slow clients cannot shut out a scraper.
    pub max_connections: usize,
    /// The deadlines and bounds of each connection.
    pub connection: ConnectionSettings,
}

/// A server of `/metrics` and `/health/live` that listens on its port. It has no authentication: access depends on the
/// listen address.
pub struct MetricsServer {
    bound: BoundServer,
    local_addr: SocketAddr,
}

impl MetricsServer {
    /// Listens on the port.
    ///
    /// # Errors
    /// Another socket listens on the address.
    pub fn listen(socket: BoundSocket, settings: MetricsSettings, exposition: Exposition) -> io::Result<Self> {
        let MetricsSettings { max_connections, connection } = settings;
        let reject: RejectHead = Arc::new(|fault, _| HttpResponse::build(fault.status()).body(format!("{fault}\n")));
        let socket = socket.listen()?;
        let local_addr = socket.local_addr()?;
        let listener = Listener {
            socket: ListenSocket::Tcp(socket),
            workers: 1,
            settings: connection,
            connections: Connections::new(max_connections, Preemption::Any),
            reject,
        };
        let bound = listener.bind(move || {
            let exposition = exposition.clone();
            let serve = move |request: HttpRequest| {
                let answer = answer(&request, &exposition);
                async move { answer }
            };
            App::new().default_service(web::to(serve)).into_factory()
        })?;
        Ok(Self { bound, local_addr })
    }

    /// Returns the bound address.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Returns the handle that stops the server.
    pub fn handle(&self) -> ServerHandle {
        self.bound.handle()
    }

    /// Serves requests until the server is stopped.
    ///
    /// # Errors
    /// The listener failed.
    pub async fn run(self) -> io::Result<()> {
        self.bound.serve().await
    }
}

fn answer(request: &HttpRequest, exposition: &Exposition) -> HttpResponse {
    let known = ["/metrics", "/health/live"].contains(&request.path());
    match request.method().as_str() {
        _ if !known => HttpResponse::NotFound().body("Resource not found\n"),
        "GET" | "HEAD" if request.path() == "/metrics" => {
            HttpResponse::Ok().insert_header((CONTENT_TYPE, exposition.content_type)).body((exposition.text)())
        }
        "GET" | "HEAD" => health::alive(),
        _ => HttpResponse::MethodNotAllowed().insert_header((ALLOW, "GET, HEAD")).body("Method not allowed\n"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use actix_web::body::to_bytes;
    use actix_web::http::Method;
    use actix_web::test::TestRequest;
    use http_server::bind_tcp;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio_util::task::TaskTracker;

    use super::*;

    fn fixed() -> Exposition {
        Exposition { content_type: "text/x-measures", text: Arc::new(|| "measures".to_owned()) }
    }

    #[actix_web::test]
    async fn metrics_server_serves_only_metrics_and_liveness() {
        for (method, path, status, body) in [
            (Method::GET, "/metrics", 200, "measures"),
            (Method::HEAD, "/metrics", 200, "measures"),
            (Method::GET, "/health/live", 200, r#"{"status":"ok"}"#),
            (Method::POST, "/metrics", 405, "Method not allowed\n"),
            (Method::GET, "/", 404, "Resource not found\n"),
            (Method::GET, "/health/ready", 404, "Resource not found\n"),
            (Method::POST, "/metrics/", 404, "Resource not found\n"),
        ] {
            let request = TestRequest::with_uri(path).method(method).to_http_request();
            let response = answer(&request, &fixed());
            assert_eq!(response.status(), status, "{path}");
            if status == 405 {
                assert_eq!(response.headers().get(ALLOW).unwrap(), "GET, HEAD");
            }
            assert_eq!(to_bytes(response.into_body()).await.unwrap(), body, "{path}");
        }
    }

    async fn scrape(address: SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        said
    }

    #[tokio::test]
    async fn scrape_succeeds_beside_stalled_clients() {
        let settings = MetricsSettings {
            max_connections: 8,
            // No connection ends during this test.
            connection: ConnectionSettings {
                header_timeout: Duration::from_mins(5),
                linger_timeout: Duration::from_mins(1),
                ..ConnectionSettings::default()
            },
        };
        let socket = bind_tcp(SocketAddr::from(([127, 0, 0, 1], 0)), &settings.connection).unwrap();
        let server = MetricsServer::listen(socket, settings, fixed()).unwrap();
        let (address, handle) = (server.local_addr(), server.handle());
        let running = TaskTracker::new().spawn(server.run());
        let beginnings = [
            "",
            "GET /met",
            "GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n",
            "POST /metrics HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n",
            "\r\n",
        ];
        let mut slow = Vec::new();
        for number in 0..100 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(beginnings[number % beginnings.len()].as_bytes()).await.unwrap();
            slow.push(stream);
            if number % 10 == 0 {
                let said = tokio::time::timeout(Duration::from_secs(10), scrape(address)).await.unwrap();
                assert!(said.starts_with("HTTP/1.1 200 ") && said.ends_with("measures"), "{said}");
            }
        }
        handle.stop(false).await;
        running.await.unwrap().unwrap();
    }
}
