//! `GET /models/count`: how many models there are, by output modality.

use std::borrow::Cow;

use actix_web::HttpResponse;
use domain::error::ErrorKind;
use domain::model::InvalidModalityFilter;
use percent_encoding::percent_decode;

use crate::http::edge::Call;
use crate::http::error::ApiError;
use crate::http::etag::Tagged;

const PARAMETER: &str = "output_modalities";

impl From<InvalidModalityFilter> for ApiError {
    fn from(error: InvalidModalityFilter) -> Self {
        Self::of(ErrorKind::InvalidRequest).message(error.to_string())
    }
}

pub(crate) fn handle(call: &Call<'_>) -> Result<HttpResponse, ApiError> {
    let filter = filter(call.request.query_string())?;
    let count = call.gateway.services.count_models.execute(filter.as_deref())?;
    Ok(Tagged::new(format!("{{\"data\":{{\"count\":{count}}}}}")).respond(call.request))
}

/// The value of the one parameter that matters; others are ignored.
fn filter(query: &str) -> Result<Option<String>, ApiError> {
    let mut found = None;
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decode(name).as_deref() == Some(PARAMETER) {
            let value =
                decode(value).ok_or_else(|| ApiError::invalid(format!("{PARAMETER} is not UTF-8 when decoded")))?;
            if found.replace(value).is_some() {
                return Err(ApiError::invalid(format!("{PARAMETER} stands in the query more than once")));
            }
        }
    }
    Ok(found)
}

fn decode(text: &str) -> Option<String> {
    let spaced: Cow<'_, str> = if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
    percent_decode(spaced.as_bytes()).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(query: &str) -> Result<Option<String>, String> {
        filter(query).map_err(|error| error.view().message.to_owned())
    }

    #[test]
    fn one_value_is_taken_and_decoded() {
        assert_eq!(value("").unwrap(), None);
        assert_eq!(value("limit=3&x").unwrap(), None);
        assert_eq!(value("a=1&output_modalities=text%2Cimage").unwrap().unwrap(), "text,image");
        assert_eq!(value("output%5Fmodalities=text,+image").unwrap().unwrap(), "text, image");
        assert_eq!(value("output_modalities=").unwrap().unwrap(), "");
        assert_eq!(value("output_modalities").unwrap().unwrap(), "");
    }

    #[test]
    fn more_than_one_or_what_is_no_text_is_refused() {
        assert!(value("output_modalities=text&output_modalities=text").unwrap_err().contains("more than once"));
        assert!(value("output_modalities=%ff").unwrap_err().contains("UTF-8"));
    }
}
