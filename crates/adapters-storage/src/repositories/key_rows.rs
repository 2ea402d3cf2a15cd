//! The rows of keys: their columns, and the keys and grants in them.

use chrono::{DateTime, Utc};
use domain::api_key::{ApiKey, ApiKeyName, ApiKeyScope, GrantScope, KeyGrant, KeyUsers, PreviousSecret, UserLabel};
use domain::authority::{ManagementAccess, ManagementScope};
use domain::error::StoreError;
use domain::ids::{ApiKeyId, WorkspaceId};
use domain::secret::ApiKeyHash;

use super::rows::rates;
use crate::convert::{hash, hash_column, key_column, key_id, millis, moment, parse, spend_limit};
use crate::entities::api_keys::Model;
use crate::entities::workspaces;
use crate::errors::corrupt;

const INFERENCE: &str = "inference";
const MANAGEMENT: &str = "management";

/// Returns the columns of a management scope.
fn scope_columns(scope: &ApiKeyScope) -> (Option<String>, Option<String>) {
    let Some(scope) = scope.management() else { return (None, None) };
    let ids = |ids: &[WorkspaceId]| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        serde_json::Value::from(ids).to_string()
    };
    (Some(scope.access().as_str().to_owned()), scope.workspaces().map(ids))
}

pub(super) fn to_row(key: &ApiKey) -> Model {
    let (management_access, management_workspaces) = scope_columns(&key.scope);
    let limit = key.limit.as_ref();
    Model {
        id: key_column(key.id),
        hash: hash_column(&key.hash),
        label: key.label.clone(),
        name: key.name.as_str().to_owned(),
        scope: match key.scope {
            ApiKeyScope::Inference(_) => INFERENCE,
            ApiKeyScope::Management(_) => MANAGEMENT,
        }
        .to_owned(),
        workspace_id: key.scope.workspace_id().map(|id| id.to_string()),
        management_access,
        management_workspaces,
        disabled: key.disabled,
        deleted: false,
        expires_at: key.expires_at.map(millis),
        limit_pico: limit.map(|limit| limit.amount.pico()),
        limit_reset: limit.and_then(|limit| limit.reset).map(|reset| reset.as_str().to_owned()),
        guardrail_id: key.guardrail_id.map(|id| id.to_string()),
        created_at: millis(key.created_at),
        requests_per_minute: key.rates.requests_per_minute.map(i64::from),
        tokens_per_minute: key.rates.tokens_per_minute.map(i64::from),
        guardrail_assigned_at: None,
        guardrail_assigned_by: None,
        creator_user_id: key.users.creator.as_ref().map(|label| label.as_str().to_owned()),
        external_user: key.users.external.as_ref().map(|label| label.as_str().to_owned()),
        updated_at: key.updated_at.map(millis),
        previous_hash: key.previous_secret.map(|secret| hash_column(&secret.hash)),
        previous_expires_at: key.previous_secret.map(|secret| millis(secret.expires_at)),
        audit_hash: None,
    }
}

/// Reads a key as of a time: a previous secret that has expired does not exist.
pub(super) fn to_key(row: Model, now: DateTime<Utc>) -> Result<ApiKey, StoreError> {
    let id = key_id(&row.id, "api_keys.id", &row.label)?;
    let hash = hash(&row.hash, "api_keys.hash", id)?;
    let expires_at = row.expires_at.map(|at| moment(at, "api_keys.expires_at", id)).transpose()?;
    let guardrail_id = row.guardrail_id.as_ref().map(|held| parse(held, "api_keys.guardrail_id", id)).transpose()?;
    let users = KeyUsers {
        creator: to_label(row.creator_user_id.as_deref(), "api_keys.creator_user_id", id)?,
        external: to_label(row.external_user.as_deref(), "api_keys.external_user", id)?,
    };
    Ok(ApiKey {
        id,
        hash,
        scope: to_scope(id, &row)?,
        users,
        previous_secret: to_previous_secret(id, &row)?.filter(|secret| secret.expires_at > now),
        updated_at: row.updated_at.map(|at| moment(at, "api_keys.updated_at", id)).transpose()?,
        limit: spend_limit(row.limit_pico, row.limit_reset.as_deref(), "api_keys.limit_reset", id)?,
        rates: rates(row.requests_per_minute, row.tokens_per_minute, "api_keys.requests_per_minute", id)?,
        label: row.label,
        name: ApiKeyName::try_new(&row.name).map_err(|_| corrupt("api_keys.name", id))?,
        disabled: row.disabled,
        expires_at,
        guardrail_id,
        created_at: moment(row.created_at, "api_keys.created_at", id)?,
    })
}

fn to_label(text: Option<&str>, column: &str, id: ApiKeyId) -> Result<Option<UserLabel>, StoreError> {
    text.map(|text| UserLabel::try_new(text).map_err(|_| corrupt(column, id))).transpose()
}

fn to_previous_secret(id: ApiKeyId, row: &Model) -> Result<Option<PreviousSecret>, StoreError> {
    let (Some(secret), Some(at)) = (&row.previous_hash, row.previous_expires_at) else { return Ok(None) };
    let hash = hash(secret, "api_keys.previous_hash", id)?;
    Ok(Some(PreviousSecret { hash, expires_at: moment(at, "api_keys.previous_expires_at", id)? }))
}

fn to_scope(id: ApiKeyId, row: &Model) -> Result<ApiKeyScope, StoreError> {
    match (row.scope.as_str(), &row.workspace_id, &row.management_access) {
        (INFERENCE, Some(workspace), None) => {
            Ok(ApiKeyScope::Inference(parse(workspace, "api_keys.workspace_id", id)?))
        }
        (MANAGEMENT, None, Some(access)) => {
            let access =
                ManagementAccess::from_name(access).ok_or_else(|| corrupt("api_keys.management_access", id))?;
            Ok(ApiKeyScope::Management(to_management_scope(id, access, row.management_workspaces.as_deref())?))
        }
        _ => Err(corrupt("api_keys.scope", id)),
    }
}

/// Reads the workspaces of a management key. A list that cannot be read is an error, and never all workspaces.
fn to_management_scope(
    id: ApiKeyId,
    access: ManagementAccess,
    workspaces: Option<&str>,
) -> Result<ManagementScope, StoreError> {
    let corrupt = || corrupt("api_keys.management_workspaces", id);
    let ids = |text: &str| {
        let ids: Vec<String> = serde_json::from_str(text).map_err(|_| corrupt())?;
        ids.iter().map(|id| id.parse().map_err(|_| corrupt())).collect::<Result<Vec<WorkspaceId>, _>>()
    };
    ManagementScope::try_new(access, workspaces.map(ids).transpose()?).map_err(|_| corrupt())
}

pub(super) fn to_grant(
    hash: ApiKeyHash,
    row: &Model,
    workspace: Option<workspaces::Model>,
) -> Result<KeyGrant, StoreError> {
    let id = key_id(&row.id, "api_keys.id", &row.label)?;
    let scope = match to_scope(id, row)? {
        ApiKeyScope::Management(scope) => GrantScope::Management(scope),
        ApiKeyScope::Inference(workspace_id) => {
            let workspace = workspace.ok_or_else(|| corrupt("api_keys.workspace_id", id))?;
            let parse_id =
                |text: &Option<String>, column| text.as_ref().map(|text| parse(text, column, id)).transpose();
            let limits = [
                row.limit_pico,
                workspace.credit_pico,
                workspace.budget_daily_pico,
                workspace.budget_weekly_pico,
                workspace.budget_monthly_pico,
                workspace.budget_lifetime_pico,
            ];
            GrantScope::Inference {
                workspace_id,
                workspace_suspended: workspace.suspended,
                owner_id: workspace.owner_id,
                guardrail_id: parse_id(&row.guardrail_id, "api_keys.guardrail_id")?,
                workspace_guardrail_id: parse_id(&workspace.default_guardrail_id, "workspaces.default_guardrail_id")?,
                limited: limits.iter().any(Option::is_some),
                rates: rates(row.requests_per_minute, row.tokens_per_minute, "api_keys.requests_per_minute", id)?,
                workspace_rates: rates(
                    workspace.requests_per_minute,
                    workspace.tokens_per_minute,
                    "workspaces.requests_per_minute",
                    workspace_id,
                )?,
            }
        }
    };
    let expires_at = row.expires_at.map(|at| moment(at, "api_keys.expires_at", id)).transpose()?;
    let previous = to_previous_secret(id, row)?.filter(|secret| secret.hash == hash);
    let expires_at = expires_at.into_iter().chain(previous.map(|secret| secret.expires_at)).min();
    Ok(KeyGrant { id, hash, disabled: row.disabled, expires_at, scope })
}
