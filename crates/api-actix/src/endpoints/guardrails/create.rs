//! `POST …/guardrails`: creates a guardrail.

use super::record::{GuardrailRequest, GuardrailView};
use super::{draft, record};
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::management(
    Method::Post,
    "/guardrails",
    |call, key, payload| Box::pin(handle(call, key, payload)),
    tags::GUARDRAILS,
    describe,
)
.with_body()
.with_schemas(schemas);

fn describe() -> OperationBuilder {
    let description = "The new guardrail has no keys. `workspace_default` applies it to the whole workspace at once. \
                       Any resolvable model name is accepted and stored as a canonical slug.";
    management_operation("createGuardrail", "Create a guardrail", description)
        .request_body(Some(body("GuardrailRequest")))
        .responses(created_responses("The guardrail", "GuardrailResponse", &[400, 404, 415]))
}

fn schemas(all: &mut SchemaList) {
    all.add::<GuardrailRequest>();
    record::schemas(all);
}

async fn handle(call: &Call<'_>, authority: &ManagementKey, payload: Payload) -> Outcome {
    let draft = draft(call, payload).await?;
    let made = call.routed().guardrails.create.execute(&call.actor(authority), &draft).await?;
    Ok(Data::respond(StatusCode::CREATED, GuardrailView::new(&made)))
}
