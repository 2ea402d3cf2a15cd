//! `GET /models/count`: the number of models, filtered as the list.

use domain::model::DefaultModality;

use super::model_filters;
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::memory(Get, "/models/count", tags::MODELS, handle)
    .operation("countModels", "Get the total count of available models")
    .description("Counts the models of `GET /models` with the same filters, all of which must hold.")
    .any_query()
    .headers(&[IF_NONE_MATCH])
    .answer(|| BodySchema::data::<CountView>("CountResponse", "The model count."), "The count")
    .also(&[400])
    .complete(|operation| model_filters::describe(operation, DefaultModality::Text));

/// The number of models.
#[derive(Serialize, ToSchema)]
#[schema(as = ModelCount)]
struct CountView {
    #[schema(value_type = u64)]
    count: usize,
}

fn handle(call: &Call<'_>) -> Outcome {
    let query = call.request.query_string();
    model_filters::check_names(query, &[])?;
    let filter = model_filters::read(query, DefaultModality::Text)?;
    let count = call.routed().count_models.execute(&filter);
    Ok(TaggedBody::json(&Data { data: CountView { count } })?.respond(call.request))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::operation::Operation;

    #[test]
    fn described_parameters_are_the_known_ones() {
        parameters::assert_known(model_filters::describe(Operation::new("", ""), DefaultModality::Text), |query| {
            model_filters::check_names(query, &[])
        });
    }
}
