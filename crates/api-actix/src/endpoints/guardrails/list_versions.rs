//! `GET …/guardrails/{id}/versions`: lists the versions of a guardrail.

use super::record::GuardrailVersionView;
use super::{PageRange, limit, offset};
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::management(
    Method::Get,
    "/guardrails/{id}/versions",
    |call, _, _| Box::pin(handle(call)),
    tags::GUARDRAILS,
    describe,
)
.with_schemas(|all| {
    all.add_page::<GuardrailVersionView<'_>>("GuardrailVersionListResponse", "A page of versions of a guardrail.");
});

fn describe() -> OperationBuilder {
    management_operation("listGuardrailVersions", "List the versions of a guardrail", "Newest first.")
        .parameter(offset())
        .parameter(limit())
        .responses(responses("The versions", "GuardrailVersionListResponse", &[400, 404]))
        .parameter(path("id", "The guardrail's id"))
}

async fn handle(call: &Call<'_>) -> Outcome {
    let range = PageRange::parse(call.request.query_string())?;
    let versions = call.routed().guardrails.list_versions.execute(&call.id()?).await?;
    let total_count = versions.len() as u64;
    let data = versions.iter().skip(range.offset).take(range.limit).map(GuardrailVersionView::new).collect();
    Ok(Page::respond(data, total_count))
}
