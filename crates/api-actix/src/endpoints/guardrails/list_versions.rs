//! `GET …/guardrails/{id}/versions`: lists the versions of a guardrail.

use utoipa::openapi::path::OperationBuilder;

use super::id;
use super::page::{PageRange, limit, offset};
use super::record::GuardrailVersionView;
use crate::http::call::Call;
use crate::http::response_body::Page;
use crate::http::routes::{Handler, KeyedHandler, Method, Outcome, Route};
use crate::openapi::operations::{COMMON_STATUSES, management_operation, path, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Get,
    "/guardrails/{id}/versions",
    Handler::Keyed(KeyedHandler::Management(|call, _, _| Box::pin(handle(call)))),
    tags::GUARDRAILS,
    describe,
)
.audited()
.with_schemas(|all| {
    all.add_page::<GuardrailVersionView<'_>>("GuardrailVersionListResponse", "A page of versions of a guardrail.");
});

fn describe() -> OperationBuilder {
    management_operation("listGuardrailVersions", "List the versions of a guardrail", "Newest first.")
        .parameter(offset())
        .parameter(limit())
        .responses(responses("The versions", "GuardrailVersionListResponse", &[400, 404], &COMMON_STATUSES))
        .parameter(path("id", "The guardrail's id"))
}

async fn handle(call: &Call<'_>) -> Outcome {
    let range = PageRange::parse(call.request.query_string())?;
    let versions = call.gateway.services.routed.current().guardrails.list_versions.execute(&id(call)?).await?;
    let total_count = versions.len() as u64;
    let data = versions.iter().skip(range.offset).take(range.limit).map(GuardrailVersionView::new).collect();
    Ok(Page::respond(data, total_count))
}
