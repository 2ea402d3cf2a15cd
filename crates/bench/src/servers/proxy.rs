//! A bare reverse proxy: actix-web in, a pooled hyper client out. It is the upper bound for a gateway of these
//! libraries.

use std::net::SocketAddr;

use actix_web::{App, HttpResponse, HttpServer, web};
use anyhow::Result;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

type UpstreamClient = Client<HttpConnector, Full<web::Bytes>>;

/// Serves until it is killed.
pub fn proxy(upstream: SocketAddr) -> Result<()> {
    actix_web::rt::System::new().block_on(async move {
        // One client per worker keeps its connections on the worker's thread.
        let server = HttpServer::new(move || {
            let mut connector = HttpConnector::new();
            connector.set_nodelay(true);
            let client: UpstreamClient = Client::builder(TokioExecutor::new()).build(connector);
            App::new()
                .app_data(web::Data::new((client, format!("http://{upstream}/v1/systemone"))))
                .default_service(web::to(forward))
        })
        .bind(("127.0.0.1", 0))?;
        super::print_address(server.addrs()[0])?;
        Ok(server.run().await?)
    })
}

async fn forward(
    upstream: web::Data<(UpstreamClient, String)>,
    body: web::Bytes,
) -> Result<HttpResponse, Box<dyn std::error::Error>> {
    let (client, uri) = upstream.as_ref();
    let request = hyper::Request::post(uri.as_str())
        .header(CONTENT_TYPE, "application/json")
        .header(AUTHORIZATION, "Bearer upstream")
        .body(Full::new(body))?;
    let response = client.request(request).await?;
    let status = actix_web::http::StatusCode::from_u16(response.status().as_u16())?;
    let body = response.into_body().collect().await?.to_bytes();
    Ok(HttpResponse::build(status).content_type("application/json").body(body))
}
