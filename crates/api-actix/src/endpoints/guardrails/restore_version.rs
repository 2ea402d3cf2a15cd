//! `POST …/guardrails/{id}/versions/{version}/restore`: restores a version of a guardrail.

use super::record::GuardrailView;
use super::{record, version_number};
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::management(
    Method::Post,
    "/guardrails/{id}/versions/{version}/restore",
    |call, key, _| Box::pin(handle(call, key)),
    tags::GUARDRAILS,
    describe,
)
.with_schemas(record::schemas);

fn describe() -> OperationBuilder {
    let description = "Creates a new version with the name, the budget and the rules of an earlier version.";
    management_operation("restoreGuardrailVersion", "Restore a version of a guardrail", description)
        .parameter(path("version", "The version's number"))
        .responses(responses("The updated guardrail", "GuardrailResponse", &[404, 409]))
        .parameter(path("id", "The guardrail's id"))
}

async fn handle(call: &Call<'_>, authority: &ManagementKey) -> Outcome {
    let (actor, number) = (call.actor(authority), version_number(call)?);
    let restored = call.routed().guardrails.restore_version.execute(&actor, &call.id()?, number).await?;
    Ok(Data::respond(StatusCode::OK, GuardrailView::new(&restored)))
}
