//! A bare actix-web handler that returns fixed bytes: the upper bound for any actix service.

use std::path::Path;

use actix_web::{App, HttpResponse, HttpServer, web};
use anyhow::Result;

/// Serves until it is killed.
pub fn fixed(body: &Path) -> Result<()> {
    let body = web::Bytes::from(std::fs::read(body)?);
    actix_web::rt::System::new().block_on(async move {
        let server =
            HttpServer::new(move || App::new().app_data(web::Data::new(body.clone())).default_service(web::to(answer)))
                .bind(("127.0.0.1", 0))?;
        super::print_address(server.addrs()[0])?;
        Ok(server.run().await?)
    })
}

async fn answer(body: web::Data<web::Bytes>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(body.as_ref().clone())
}
