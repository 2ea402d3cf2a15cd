//! `GET /model/{author}/{slug}`: one model by any of its names.

use actix_web::HttpResponse;
use domain::model::GetModelError;

use crate::http::edge::Call;
use crate::http::error::ApiError;
use crate::http::segment;

impl From<GetModelError> for ApiError {
    fn from(error: GetModelError) -> Self {
        Self::from_kind(error.kind()).caused_by(error)
    }
}

pub(crate) fn handle(call: &Call<'_>) -> Result<HttpResponse, ApiError> {
    let [author, slug, _] = call.parameters.map(segment::decode);
    // A segment that is not valid UTF-8 names no model.
    let (author, slug) = author.zip(slug).ok_or_else(ApiError::not_found)?;
    let (snapshot, resolved) = call.gateway.services.get_model.execute(&author, &slug)?;
    let row = call.gateway.rendered.row(&snapshot, resolved.index).ok_or_else(ApiError::not_found)?;
    Ok(row.respond(call.request))
}
