//! A listener of its own for measures: it answers when the other one is full.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::http::header::{ALLOW, CONTENT_TYPE};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};

use crate::endpoints::health;

/// Where measures are written down.
pub trait Exposition: Send + Sync {
    /// The media type of [`Self::text`].
    fn content_type(&self) -> &'static str;

    /// All measures as they are now. MUST NOT block: nothing is asked of a store for it.
    fn text(&self) -> String;
}

/// How long a scraper may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Scrapers are few; who opens more connections than this waits.
const MOST_CONNECTIONS: usize = 64;

/// A server of `/metrics` and `/health/live` that has its port. It knows no keys: where it listens is whom it trusts.
pub struct MetricsServer {
    server: Server,
    local_addr: SocketAddr,
}

impl MetricsServer {
    /// Takes the port.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(listen: SocketAddr, exposition: Arc<dyn Exposition>) -> io::Result<Self> {
        let factory = move || {
            let exposition = Arc::clone(&exposition);
            App::new().default_service(web::to(move |request: HttpRequest| {
                let answer = answer(&request, &*exposition);
                async move { answer }
            }))
        };
        let server = HttpServer::new(factory)
            .disable_signals()
            .workers(1)
            .max_connections(MOST_CONNECTIONS)
            .client_request_timeout(HEAD_TIMEOUT)
            .shutdown_timeout(1)
            .bind(listen)?;
        let local_addr = server.addrs().first().copied().ok_or_else(|| io::Error::other("no address was bound"))?;
        Ok(Self { server: server.run(), local_addr })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Stops it.
    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// The listener failed.
    pub async fn run(self) -> io::Result<()> {
        self.server.await
    }
}

fn answer(request: &HttpRequest, exposition: &dyn Exposition) -> HttpResponse {
    let known = ["/metrics", "/health/live"].contains(&request.path());
    match request.method().as_str() {
        _ if !known => HttpResponse::NotFound().body("Resource not found\n"),
        "GET" | "HEAD" if request.path() == "/metrics" => {
            HttpResponse::Ok().insert_header((CONTENT_TYPE, exposition.content_type())).body(exposition.text())
        }
        "GET" | "HEAD" => health::live(),
        _ => HttpResponse::MethodNotAllowed().insert_header((ALLOW, "GET, HEAD")).body("Method not allowed\n"),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use actix_web::http::Method;
    use actix_web::test::TestRequest;

    use super::*;

    struct Fixed;

    impl Exposition for Fixed {
        fn content_type(&self) -> &'static str {
            "text/x-measures"
        }
        fn text(&self) -> String {
            "measures".to_owned()
        }
    }

    #[actix_web::test]
    async fn measures_and_liveness_are_read_and_nothing_else_is() {
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
            let response = answer(&request, &Fixed);
            assert_eq!(response.status(), status, "{path}");
            if status == 405 {
                assert_eq!(response.headers().get(ALLOW).unwrap(), "GET, HEAD");
            }
            assert_eq!(to_bytes(response.into_body()).await.unwrap(), body, "{path}");
        }
    }
}
