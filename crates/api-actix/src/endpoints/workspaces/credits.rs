//! Reads, adds and clears the prepaid credit of a workspace.

use domain::workspace::Credit;

use super::record::{AddCreditRequest, CreditView};
use super::{fields, filter, name};
use crate::endpoints::prelude::*;

fn response() -> BodySchema {
    BodySchema::data::<CreditView>("WorkspaceCreditResponse", "The prepaid credit of a workspace.")
}

fn respond(credit: &Credit) -> RecordResponse {
    RecordResponse::data(StatusCode::OK, CreditView::from(credit)).version(credit.version())
}

/// `GET …/credits`: reads the credit of a workspace.
pub(crate) const GET: Route = Route::management(Get, "/credits", tags::WORKSPACES, handler!(handle_get))
    .operation("getCredits", "Get the credit of a workspace")
    .description("Amounts are in USD.")
    .query(&[DEFAULT_WORKSPACE])
    .answer(response, "The credit");

async fn handle_get(call: &Call<'_>, by: &Authority) -> Outcome {
    let credit = call.gateway.services.workspaces.read.credit(by, filter(call, by).await?).await?;
    Ok(respond(&credit).respond())
}

/// `POST …/workspaces/{id}/credits`: adds credit.
pub(crate) const ADD: Route =
    Route::management(Post, "/workspaces/{id}/credits", tags::WORKSPACES, handler!(handle_add, payload))
        .operation("addWorkspaceCredit", "Add credit")
        .description(
            "A workspace without credit starts from zero: earlier spend does not count. A negative amount subtracts. \
             Needs an unrestricted key.",
        )
        .body(BodySchema::of::<AddCreditRequest>)
        .headers(&[IF_MATCH, IDEMPOTENCY_KEY])
        .answer(response, "The credit");

async fn handle_add(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let body = call.read_json(payload).await?;
    let (amount, name) = (fields::read_credit(body.text()?)?, name(call)?);
    let manage = &call.gateway.services.workspaces.manage;
    let add = async |change: &Change<'_, _>| manage.add_credit(change, &name, amount).await;
    call.post(by, body.text()?, add, respond).await
}

/// `DELETE …/workspaces/{id}/credits`: clears the credit.
pub(crate) const CLEAR: Route =
    Route::management(Delete, "/workspaces/{id}/credits", tags::WORKSPACES, handler!(handle_clear))
        .operation("clearWorkspaceCredit", "Clear the credit")
        .description(
            "The workspace is then not limited by credit. Budgets stay. Without credit it is 404. Needs an \
             unrestricted key.",
        )
        .headers(&[IF_MATCH])
        .answer(
            || BodySchema::named::<Deleted>("WorkspaceCreditDeletedResponse", "Confirms that the credit is cleared."),
            "Cleared",
        );

async fn handle_clear(call: &Call<'_>, by: &Authority) -> Outcome {
    call.gateway.services.workspaces.manage.clear_credit(&call.change(by)?, &name(call)?).await?;
    Ok(Deleted::respond())
}
