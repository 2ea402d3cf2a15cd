//! `GET /openapi.json` and `GET /docs`: the API description for programs and people.

pub(crate) mod document;
pub(crate) mod page;
pub(crate) mod script;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use bytes::Bytes;

fn respond(body: Bytes, content_type: &'static str) -> HttpResponse {
    let mut response = HttpResponse::with_body(StatusCode::OK, body).map_into_boxed_body();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
