//! `GET /`: the name of the service and the paths of its documentation.

use actix_web::HttpResponse;
use serde_json::json;

use crate::http::edge::Call;

pub(crate) fn describe(call: &Call<'_>) -> HttpResponse {
    HttpResponse::Ok().json(json!({
        "name": "Tollgate",
        "description": "Gateway to AI decision models; it serves no chat models",
        "base_path": call.gateway.base_path,
        "documentation": "/docs",
        "openapi": "/openapi.json",
    }))
}
