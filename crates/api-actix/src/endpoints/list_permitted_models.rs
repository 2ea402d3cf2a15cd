//! `GET /models/user`: the models that the guardrails of the caller's key permit.

use domain::model::{DefaultModality, Visibility};

use super::list_models;
use crate::endpoints::prelude::*;
use crate::rendered_catalogue::schema::ModelListResponse;

pub(crate) const ROUTE: Route = Route::any_key(Get, "/models/user", tags::MODELS, handler!(handle))
    .operation("listModelsUser", "List the models that the key may use")
    .description(
        "The models of `GET /models` that the guardrails of the workspace and of the key permit: one of their \
         endpoints, or their name if they have none. An alias follows its target. A management key, which has no \
         guardrail, lists all. Filters, order, pages and body are those of `GET /models`; `models` has permitted \
         models only.",
    )
    .any_query()
    .headers(&[IF_NONE_MATCH])
    .answer(BodySchema::of::<ModelListResponse>, "The models")
    .also(&[400])
    .complete(|operation| list_models::describe_list(operation, DefaultModality::Text));

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let parameters = list_models::ListParameters::read(call.request.query_string(), DefaultModality::Text)?;
    let routed = call.routed();
    let permitted = routed.list_permitted_models.execute(caller, &parameters.request, parameters.models());
    let permitted = permitted.await?;
    let next = list_models::next_page(call.request, Visibility::All, &permitted.list)?;
    Ok(call.gateway.rendered.permitted(&permitted, next.as_deref()).respond(call.request))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::operation::Operation;

    #[test]
    fn described_parameters_are_the_known_ones() {
        let check = |query: &str| list_models::check_names(query, DefaultModality::Text);
        parameters::assert_known(list_models::describe_list(Operation::new("", ""), DefaultModality::Text), check);
    }
}
