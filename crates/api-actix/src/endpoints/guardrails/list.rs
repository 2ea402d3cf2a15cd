//! `GET …/guardrails`: lists the guardrails of a workspace.

use domain::ids::WorkspaceId;
use utoipa::openapi::SchemaFormat;
use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::page::{PageRange, limit, offset};
use super::record::GuardrailView;
use crate::http::call::Call;
use crate::http::error::ApiError;
use crate::http::query;
use crate::http::response_body::Page;
use crate::http::routes::{Handler, KeyedHandler, Method, Outcome, Route};
use crate::openapi::operations::{self, COMMON_STATUSES, management_operation, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Get,
    "/guardrails",
    Handler::Keyed(KeyedHandler::Management(|call, _, _| Box::pin(handle(call)))),
    tags::GUARDRAILS,
    describe,
)
.audited()
.with_schemas(|all| all.add_page::<GuardrailView<'_>>("GuardrailListResponse", "A page of guardrails."));

fn describe() -> OperationBuilder {
    let id = ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::Custom("uuid".to_owned())));
    management_operation("listGuardrails", "List the guardrails of a workspace", "Newest first.")
        .parameter(operations::query("workspace_id", "The workspace id. Default: the default workspace.", id))
        .parameter(offset())
        .parameter(limit())
        .responses(responses("The guardrails", "GuardrailListResponse", &[400, 404], &COMMON_STATUSES))
}

async fn handle(call: &Call<'_>) -> Outcome {
    let query = call.request.query_string();
    let range = PageRange::parse(query)?;
    let workspace_id = query::value(query, "workspace_id")?;
    let workspace_id: Option<WorkspaceId> = workspace_id
        .map(|text| text.parse().map_err(|_| ApiError::invalid("workspace_id must be a UUID")))
        .transpose()?;
    let page =
        call.gateway.services.routed.current().guardrails.list.execute(workspace_id, range.offset, range.limit).await?;
    let data = page.guardrails.iter().map(GuardrailView::new).collect();
    Ok(Page::respond(data, page.total as u64))
}
