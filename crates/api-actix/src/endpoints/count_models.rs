//! `GET /models/count`: the number of models, by output modality.

use actix_web::HttpResponse;
use domain::error::ErrorKind;
use domain::model::InvalidModalityFilter;

use crate::http::edge::Call;
use crate::http::error::ApiError;
use crate::http::etag::TaggedBody;
use crate::http::query;

/// The only parameter; others are ignored.
const PARAMETER: &str = "output_modalities";

impl From<InvalidModalityFilter> for ApiError {
    fn from(error: InvalidModalityFilter) -> Self {
        Self::from_kind(ErrorKind::InvalidRequest).message(error.to_string())
    }
}

pub(crate) fn handle(call: &Call<'_>) -> Result<HttpResponse, ApiError> {
    let filter = query::value(call.request.query_string(), PARAMETER)?;
    let count = call.gateway.services.count_models.execute(filter.as_deref())?;
    Ok(TaggedBody::new(format!("{{\"data\":{{\"count\":{count}}}}}")).respond(call.request))
}
