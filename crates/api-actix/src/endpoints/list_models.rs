//! `GET /models`: the catalogue, in a format for several kinds of clients.

use std::fmt::Write;

use actix_web::HttpResponse;
use domain::model::{DefaultModality, ListModelsError, ModelList, Page};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::http::edge::Call;
use crate::http::error::ApiError;
use crate::http::query;

const FILTER: &str = "output_modalities";

impl From<ListModelsError> for ApiError {
    fn from(error: ListModelsError) -> Self {
        Self::from_kind(error.kind()).message(error.to_string())
    }
}

pub(crate) fn handle(call: &Call<'_>, default: DefaultModality) -> Result<HttpResponse, ApiError> {
    let query = call.request.query_string();
    let filter = query::value(query, FILTER)?;
    let page = Page::of(query::count(query, "offset")?, query::count(query, "limit")?)?;
    let list = call.gateway.services.list_models.execute(filter.as_deref(), default, page)?;
    let next = next_page(call.request.path(), filter.as_deref(), &list);
    Ok(call.gateway.rendered.list(&list, next.as_deref()).respond(call.request))
}

/// Returns the path and query of the next page.
fn next_page(path: &str, filter: Option<&str>, list: &ModelList) -> Option<String> {
    let (offset, limit) = list.next?;
    let mut next = format!("{path}?limit={limit}&offset={offset}");
    if let Some(filter) = filter {
        // Writing to a string cannot fail.
        let _ = write!(next, "&{FILTER}={}", utf8_percent_encode(filter, NON_ALPHANUMERIC));
    }
    Some(next)
}
