//! `GET …/guardrails`: lists the guardrails of a workspace.

use utoipa::openapi::SchemaFormat;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::record::GuardrailView;
use super::{PageRange, limit, offset};
use crate::endpoints::prelude::*;
use crate::openapi::operations;

pub(crate) const ROUTE: Route =
    Route::management(Method::Get, "/guardrails", |call, _, _| Box::pin(handle(call)), tags::GUARDRAILS, describe)
        .with_schemas(|all| all.add_page::<GuardrailView<'_>>("GuardrailListResponse", "A page of guardrails."));

fn describe() -> OperationBuilder {
    let id = ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::Custom("uuid".to_owned())));
    management_operation("listGuardrails", "List the guardrails of a workspace", "Newest first.")
        .parameter(operations::query("workspace_id", "The workspace id. Default: the default workspace.", id))
        .parameter(offset())
        .parameter(limit())
        .responses(responses("The guardrails", "GuardrailListResponse", &[400, 404]))
}

async fn handle(call: &Call<'_>) -> Outcome {
    let query = call.request.query_string();
    let range = PageRange::parse(query)?;
    let workspace_id = parameters::workspace(query)?;
    let page = call.routed().guardrails.list.execute(workspace_id, range.offset, range.limit).await?;
    let data = page.guardrails.iter().map(GuardrailView::new).collect();
    Ok(Page::respond(data, page.total as u64))
}
