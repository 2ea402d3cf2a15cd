//! `GET /models/count`: the number of models, by output modality.

use domain::error::ErrorKind;
use domain::model::InvalidModalityFilter;
use serde_json::json;
use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::endpoints::prelude::*;
use crate::http::operation;
use crate::http::response::TaggedBody;

pub(crate) const ROUTE: Route = Route::memory(Method::Get, "/models/count", handle, tags::MODELS, describe);

/// The number of models.
#[derive(Serialize, ToSchema)]
#[schema(as = ModelCount)]
struct CountView {
    #[schema(value_type = u64)]
    count: usize,
}

/// The only parameter; others are ignored.
const PARAMETER: &str = "output_modalities";

impl From<InvalidModalityFilter> for ApiError {
    fn from(error: InvalidModalityFilter) -> Self {
        Self::from_kind(ErrorKind::InvalidRequest).message(error.to_string())
    }
}

fn handle(call: &Call<'_>) -> Outcome {
    let filter = parameters::value(call.request.query_string(), PARAMETER)?;
    let count = call.gateway.services.count_models.execute(filter.as_deref())?;
    Ok(TaggedBody::json(&Data { data: CountView { count } })?.respond(call.request))
}

fn describe() -> Operation {
    Operation::new("countModels", "Get the total count of available models")
        .parameter(output_modalities("text"))
        .parameter(if_none_match())
        .answer(BodySchema::data::<CountView>("CountResponse", "The model count."), "The count", &[304, 400])
}

/// Describes the modality filter of lists and counts.
pub(super) fn output_modalities(default: &str) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::String).default(Some(json!(default)));
    let description = "Comma-separated list of text, image, embeddings, audio, video, rerank, decisions, speech, \
                       transcription; `all` includes all models.";
    operation::query(PARAMETER, description, schema)
}
