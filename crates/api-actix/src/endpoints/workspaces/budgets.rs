//! Reads, sets and removes the budgets of a workspace.

use domain::budget::{BudgetScope, LimitStatus, ResetInterval};
use domain::money::Usd;
use domain::workspace::Workspace;

use super::record::{BudgetView, BudgetsChangeRequest, SetBudgetRequest, period_of, respond_budget};
use super::{fields, name};
use crate::endpoints::prelude::*;

const PATTERN: &str = "/workspaces/{id}/budgets/{interval}";

/// Returns the period in the path; `None` is all time.
fn period(call: &Call<'_>) -> Result<Option<ResetInterval>, ApiError> {
    parameters::segment(call.parameters[1]).and_then(|name| period_of(&name)).ok_or_else(ApiError::not_found)
}

fn response() -> BodySchema {
    BodySchema::data::<BudgetView>("WorkspaceBudgetResponse", "One budget.")
}

/// `GET …/workspaces/{id}/budgets`: lists the budgets that are set.
pub(crate) const LIST: Route =
    Route::management(Get, "/workspaces/{id}/budgets", tags::WORKSPACES, handler!(handle_list))
        .operation("listWorkspaceBudgets", "List the budgets of a workspace")
        .description("The budgets that are set, the shortest period first.")
        .answer(list_response, "The budgets");

fn list_response() -> BodySchema {
    BodySchema::page::<BudgetView>("WorkspaceBudgetListResponse", "The budgets of a workspace.")
}

fn respond_list(workspace: &Workspace, limits: &[LimitStatus]) -> HttpResponse {
    let data: Vec<BudgetView> = limits.iter().map(|limit| BudgetView::new(workspace, limit)).collect();
    let total_count = data.len() as u64;
    Page::respond(data, total_count)
}

async fn handle_list(call: &Call<'_>, by: &Authority) -> Outcome {
    let (workspace, limits) = call.gateway.services.workspaces.read.budgets(by, &name(call)?).await?;
    Ok(respond_list(&workspace, &limits))
}

/// `PATCH …/workspaces/{id}/budgets`: changes several budgets at once.
pub(crate) const CHANGE: Route =
    Route::management(Patch, "/workspaces/{id}/budgets", tags::WORKSPACES, handler!(handle_change, payload))
        .operation("changeWorkspaceBudgets", "Change the budgets of a workspace")
        .description(
            "Changes all given budgets or none. Longer periods must have higher budgets. Needs an unrestricted key.",
        )
        .body(BodySchema::of::<BudgetsChangeRequest>)
        .answer(list_response, "The budgets")
        .also(&[412]);

async fn handle_change(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let edit = fields::read_budgets(call.read_json(payload).await?.text()?)?;
    let workspaces = &call.gateway.services.workspaces;
    let changed = workspaces.manage.change_budgets(&call.change(by)?, &name(call)?, edit).await?;
    let (workspace, limits) = workspaces.read.budgets(by, &(&changed.id).into()).await?;
    Ok(respond_list(&workspace, &limits))
}

/// `GET …/workspaces/{id}/budgets/{interval}`: reads a budget.
pub(crate) const GET: Route = Route::management(Get, PATTERN, tags::WORKSPACES, handler!(handle_get))
    .operation("getWorkspaceBudget", "Get a budget")
    .description("A budget that is not set is 404.")
    .answer(response, "The budget");

async fn handle_get(call: &Call<'_>, by: &Authority) -> Outcome {
    let (workspace, status) = call.gateway.services.workspaces.read.budget(by, &name(call)?, period(call)?).await?;
    Ok(respond_budget(&workspace, &status).respond())
}

/// `PUT …/workspaces/{id}/budgets/{interval}`: sets a budget.
pub(crate) const SET: Route = Route::management(Put, PATTERN, tags::WORKSPACES, handler!(handle_set, payload))
    .operation("setWorkspaceBudget", "Set a budget")
    .description(
        "Longer periods must have higher budgets: lifetime, monthly, weekly, daily. Needs an unrestricted key.",
    )
    .body(BodySchema::of::<SetBudgetRequest>)
    .headers(&[IF_MATCH])
    .answer(response, "The budget");

async fn handle_set(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let (period, workspaces) = (period(call)?, &call.gateway.services.workspaces);
    let amount = fields::read_budget(call.read_json(payload).await?.text()?, period)?;
    let changed = workspaces.manage.set_budget(&call.change(by)?, &name(call)?, period, Some(amount)).await?;
    // The change is stored, so a failure of the read is no error: the spend is then that of a new budget.
    let read = workspaces.read.budget(by, &(&changed.id).into(), period).await;
    let status = read.map_or_else(|_| unspent(amount, period), |(_, status)| LimitStatus { limit: amount, ..status });
    Ok(respond_budget(&changed, &status).respond())
}

fn unspent(limit: Usd, reset: Option<ResetInterval>) -> LimitStatus {
    LimitStatus {
        scope: BudgetScope::Workspace,
        guardrail_id: None,
        is_credit: false,
        limit,
        reset,
        spent: Usd::ZERO,
        reserved: Usd::ZERO,
        resets_at: None,
    }
}

/// `DELETE …/workspaces/{id}/budgets/{interval}`: removes a budget.
pub(crate) const DELETE: Route = Route::management(Delete, PATTERN, tags::WORKSPACES, handler!(handle_delete))
    .operation("deleteWorkspaceBudget", "Remove a budget")
    .description("The spend still counts if the budget is set again. Needs an unrestricted key.")
    .headers(&[IF_MATCH])
    .answer(
        || BodySchema::named::<Deleted>("WorkspaceBudgetDeletedResponse", "Confirms the removal of a budget."),
        "Removed",
    );

async fn handle_delete(call: &Call<'_>, by: &Authority) -> Outcome {
    let manage = &call.gateway.services.workspaces.manage;
    manage.set_budget(&call.change(by)?, &name(call)?, period(call)?, None).await?;
    Ok(Deleted::respond())
}
