//! Reads, adds and clears the prepaid credit of a workspace.

use domain::workspace::Credit;

use super::record::{AddCreditRequest, CreditView};
use super::{describe_filter, fields, filter, name, path_name};
use crate::endpoints::prelude::*;
use crate::http::change::RecordResponse;
use crate::http::operation::{idempotency_key, if_match};

fn response() -> BodySchema {
    BodySchema::data::<CreditView>("WorkspaceCreditResponse", "The prepaid credit of a workspace.")
}

fn respond(credit: &Credit) -> RecordResponse {
    RecordResponse::data(StatusCode::OK, CreditView::from(credit)).version(credit.version())
}

/// `GET …/credits`: reads the credit of a workspace.
pub(crate) const GET: Route = Route::management(
    Method::Get,
    "/credits",
    |call, by, _| Box::pin(handle_get(call, by)),
    tags::WORKSPACES,
    describe_get,
)
.with_query(&["workspace_id"]);

fn describe_get() -> Operation {
    Operation::management("getCredits", "Get the credit of a workspace", "Amounts are in USD.")
        .parameter(describe_filter("the default workspace, or the only one of the key"))
        .answer(response(), "The credit", &[400, 404, 409])
}

async fn handle_get(call: &Call<'_>, by: &Authority) -> Outcome {
    let credit = call.gateway.services.workspaces.read.credit(by, filter(call, by).await?).await?;
    Ok(respond(&credit).respond())
}

/// `POST …/workspaces/{id}/credits`: adds credit.
pub(crate) const ADD: Route = Route::management(
    Method::Post,
    "/workspaces/{id}/credits",
    |call, by, payload| Box::pin(handle_add(call, by, payload)),
    tags::WORKSPACES,
    describe_add,
)
.with_body();

fn describe_add() -> Operation {
    let description = "A workspace without credit starts from zero: earlier spend does not count. A negative amount \
                       subtracts. Needs an unrestricted key.";
    Operation::management("addWorkspaceCredit", "Add credit", description)
        .body(BodySchema::of::<AddCreditRequest>(), None)
        .parameter(if_match())
        .parameter(idempotency_key())
        .answer(response(), "The credit", &[400, 404, 409, 412, 415])
        .parameter(path_name())
}

async fn handle_add(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let body = call.read_json(payload).await?;
    let (amount, name) = (fields::read_credit(body.text()?)?, name(call)?);
    let manage = &call.gateway.services.workspaces.manage;
    let add = async |change: &Change<'_, _>| manage.add_credit(change, &name, amount).await;
    call.post(by, body.text()?, add, respond).await
}

/// `DELETE …/workspaces/{id}/credits`: clears the credit.
pub(crate) const CLEAR: Route = Route::management(
    Method::Delete,
    "/workspaces/{id}/credits",
    |call, by, _| Box::pin(handle_clear(call, by)),
    tags::WORKSPACES,
    describe_clear,
);

fn describe_clear() -> Operation {
    let body = BodySchema::named::<Deleted>("WorkspaceCreditDeletedResponse", "Confirms that the credit is cleared.");
    let description = "The workspace is then not limited by credit. Budgets stay. Without credit it is 404. Needs an \
                       unrestricted key.";
    Operation::management("clearWorkspaceCredit", "Clear the credit", description)
        .parameter(if_match())
        .answer(body, "Cleared", &[400, 404, 409, 412])
        .parameter(path_name())
}

async fn handle_clear(call: &Call<'_>, by: &Authority) -> Outcome {
    call.gateway.services.workspaces.manage.clear_credit(&call.change(by)?, &name(call)?).await?;
    Ok(Deleted::respond())
}
