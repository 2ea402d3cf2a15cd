//! `GET …/guardrails/{id}`: reads a guardrail.

use super::record;
use super::record::GuardrailView;
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route =
    Route::management(Method::Get, "/guardrails/{id}", |call, _, _| Box::pin(handle(call)), tags::GUARDRAILS, describe)
        .with_schemas(record::schemas);

fn describe() -> OperationBuilder {
    management_operation("getGuardrail", "Get a guardrail", "Returns a guardrail of any workspace.")
        .responses(responses("The guardrail", "GuardrailResponse", &[404]))
        .parameter(path("id", "The guardrail's id"))
}

async fn handle(call: &Call<'_>) -> Outcome {
    let found = call.routed().guardrails.get.execute(&call.id()?).await?;
    Ok(Data::respond(StatusCode::OK, GuardrailView::new(&found)))
}
