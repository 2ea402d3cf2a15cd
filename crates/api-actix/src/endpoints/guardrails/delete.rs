//! `DELETE …/guardrails/{id}`: deletes a guardrail.

use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::management(
    Method::Delete,
    "/guardrails/{id}",
    |call, key, _| Box::pin(handle(call, key)),
    tags::GUARDRAILS,
    describe,
)
.with_schemas(|all| all.add_as::<Deleted>("GuardrailDeletedResponse", "Confirms the deletion of a guardrail."));

fn describe() -> OperationBuilder {
    let description = "Removes the guardrail from its keys and from the workspace.";
    management_operation("deleteGuardrail", "Delete a guardrail", description)
        .responses(responses("Deleted", "GuardrailDeletedResponse", &[404]))
        .parameter(path("id", "The guardrail's id"))
}

async fn handle(call: &Call<'_>, authority: &ManagementKey) -> Outcome {
    call.routed().guardrails.delete.execute(&call.actor(authority), &call.id()?).await?;
    Ok(Deleted::respond())
}
