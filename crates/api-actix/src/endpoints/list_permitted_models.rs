//! `GET /models/user`: the models that the guardrails of the caller's key permit.

use domain::model::{DefaultModality, Visibility};

use super::list_models;
use crate::endpoints::prelude::*;
use crate::rendered_catalogue::schema::ModelListResponse;

pub(crate) const ROUTE: Route = Route::any_key(
    Method::Get,
    "/models/user",
    |call, caller, _| Box::pin(handle(call, caller)),
    tags::MODELS,
    describe,
);

fn describe() -> Operation {
    let operation = Operation::new("listModelsUser", "List the models that the key may use").description(
        "The models of `GET /models` that the guardrails of the workspace and of the key permit: one of their endpoints, \
         or their name if they have none. An alias follows its target. A management key, which has no guardrail, lists \
         all. Filters, order, pages and body are those of `GET /models`; `models` has permitted models only.",
    );
    list_models::describe_list(operation, DefaultModality::Text)
        .parameter(list_models::include_uncallable(Visibility::All))
        .parameter(if_none_match())
        .answer(BodySchema::of::<ModelListResponse>(), "The models", &[304, 400])
}

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let parameters = list_models::ListParameters::read(call.request.query_string(), DefaultModality::Text)?;
    let routed = call.routed();
    let permitted = routed.list_permitted_models.execute(caller, &parameters.request, parameters.models());
    let permitted = permitted.await.map_err(ApiError::store)?;
    let next = list_models::next_page(call.request, Visibility::All, &permitted.list)?;
    Ok(call.gateway.rendered.permitted(&permitted, next.as_deref()).respond(call.request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn described_parameters_are_the_known_ones() {
        let check = |query: &str| list_models::check_names(query, DefaultModality::Text);
        parameters::assert_known(describe(), check);
    }
}
