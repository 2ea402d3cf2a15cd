//! `PATCH …/guardrails/{id}`: changes a guardrail.

use super::record::{GuardrailChange, GuardrailView};
use super::{draft, record};
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::management(
    Method::Patch,
    "/guardrails/{id}",
    |call, key, payload| Box::pin(handle(call, key, payload)),
    tags::GUARDRAILS,
    describe,
)
.with_body()
.with_schemas(schemas);

fn describe() -> OperationBuilder {
    let description = "Changes the given members: null removes a rule, a list is replaced as a whole. A change \
                       creates a new version, which is effective on every replica within a second.";
    management_operation("updateGuardrail", "Update a guardrail", description)
        .request_body(Some(body("GuardrailChange")))
        .responses(responses("The updated guardrail", "GuardrailResponse", &[400, 404, 409, 415]))
        .parameter(path("id", "The guardrail's id"))
}

fn schemas(all: &mut SchemaList) {
    all.add::<GuardrailChange>();
    record::schemas(all);
}

async fn handle(call: &Call<'_>, authority: &ManagementKey, payload: Payload) -> Outcome {
    let draft = draft(call, payload).await?;
    let actor = call.actor(authority);
    let changed = call.routed().guardrails.update.execute(&actor, &call.id()?, &draft).await?;
    Ok(Data::respond(StatusCode::OK, GuardrailView::new(&changed)))
}
