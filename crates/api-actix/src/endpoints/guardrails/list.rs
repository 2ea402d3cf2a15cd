//! `GET …/guardrails`: lists the guardrails of a workspace.

use actix_web::HttpResponse;
use domain::ids::WorkspaceId;
use utoipa::openapi::SchemaFormat;
use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::Page;
use super::page::{PageRange, limit, offset};
use super::record::GuardrailView;
use crate::http::edge::Call;
use crate::http::error::ApiError;
use crate::http::query;
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
.audited();

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
    Ok(HttpResponse::Ok().json(Page { data, total_count: page.total as u64 }))
}
