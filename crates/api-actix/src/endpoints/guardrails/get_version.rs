//! `GET …/guardrails/{id}/versions/{version}`: reads a version of a guardrail.

use super::record::GuardrailVersionView;
use super::{record, version_number};
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::management(
    Method::Get,
    "/guardrails/{id}/versions/{version}",
    |call, _, _| Box::pin(handle(call)),
    tags::GUARDRAILS,
    describe,
)
.with_schemas(record::version_schemas);

fn describe() -> OperationBuilder {
    management_operation("getGuardrailVersion", "Get a version of a guardrail", "Versions are numbered from 1.")
        .parameter(path("version", "The version's number"))
        .responses(responses("The version", "GuardrailVersionResponse", &[404]))
        .parameter(path("id", "The guardrail's id"))
}

async fn handle(call: &Call<'_>) -> Outcome {
    let found = call.routed().guardrails.get_version.execute(&call.id()?, version_number(call)?).await?;
    Ok(Data::respond(StatusCode::OK, GuardrailVersionView::new(&found)))
}
