//! Parser of the bodies that create or change a key.

use chrono::{DateTime, SubsecRound as _, Utc};
use domain::api_key::{ApiKeyChange, ApiKeyScope, NewApiKey};
use domain::authority::{ManagementAccess, ManagementScope};
use domain::budget::{ResetInterval, SpendLimit};
use domain::edit::Edit;
use domain::ids::{GuardrailId, WorkspaceId};
use domain::json::{JsonKind, unknown_name};
use domain::rate::RateLimits;

use crate::endpoints::prelude::*;
use crate::http::members::{MemberNames, Members, NeutralMember, amount, boolean, invalid, rate, string};

/// The members of a request. `disabled` and `workspace_id` mean something else in each.
const NAMES: [&str; 13] = [
    "name",
    "disabled",
    "workspace_id",
    "management",
    "limit",
    "limit_reset",
    "requests_per_minute",
    "tokens_per_minute",
    "guardrail_id",
    "expires_at",
    "creator_user_id",
    "external_user",
    "external",
];
/// Members that published clients send and that have no function here.
const NEUTRAL: [NeutralMember; 1] = [NeutralMember::new("include_byok_in_limit", &["false"])];
/// The members of the record that only the service sets. They are ignored, so that a record can be sent back or copied.
const READ_ONLY: [&str; 18] = [
    "id",
    "hash",
    "label",
    "limit_remaining",
    "usage",
    "usage_daily",
    "usage_weekly",
    "usage_monthly",
    "reserved",
    "byok_usage",
    "byok_usage_daily",
    "byok_usage_weekly",
    "byok_usage_monthly",
    "created_at",
    "updated_at",
    "last_used_at",
    "previous_secret_expires_at",
    "budgets",
];

/// A key to create.
#[derive(Debug)]
pub(super) struct NewKey {
    /// The key. Its scope stands for any workspace if it is an inference key.
    pub(super) new: NewApiKey,
    /// The named workspace of an inference key; `None` for a management key.
    #[expect(clippy::option_option, reason = "a management key has no workspace; an inference key may name none")]
    pub(super) workspace: Option<Option<WorkspaceId>>,
}

/// Reads a key to create.
pub(super) fn read_new(text: &str) -> Result<NewKey, ApiError> {
    let members = read(text)?;
    if members.value("disabled", boolean)? == Some(true) {
        return Err(invalid("disabled", "must be false: create the key, then disable it"));
    }
    let name = members.required("name", string)?;
    let scope = members.edit("management", management)?.of(None);
    if scope.is_some() {
        let own = ["workspace_id", "limit", "limit_reset", "requests_per_minute", "tokens_per_minute", "guardrail_id"];
        if let Some(other) = own.into_iter().find(|name| members.present(name).is_some()) {
            return Err(invalid(other, "is not a member of a management key"));
        }
    }
    let limit = members.edit("limit", amount)?.of(None);
    let reset = members.edit("limit_reset", interval)?.of(None);
    if limit.is_none() && reset.is_some() {
        return Err(invalid("limit_reset", "requires a limit"));
    }
    let workspace_id = members.edit("workspace_id", workspace)?.of(None);
    let placeholder = WorkspaceId::from_uuid(uuid::Uuid::nil());
    let workspace = scope.is_none().then_some(workspace_id);
    let scope = scope.map_or(ApiKeyScope::Inference(placeholder), ApiKeyScope::Management);
    let new = NewApiKey {
        limit: limit.map(|amount| SpendLimit { amount, reset }),
        rates: RateLimits {
            requests_per_minute: members.edit("requests_per_minute", rate)?.of(None),
            tokens_per_minute: members.edit("tokens_per_minute", rate)?.of(None),
        },
        expires_at: members.edit("expires_at", timestamp)?.of(None),
        guardrail_id: members.edit("guardrail_id", guardrail)?.of(None),
        creator_user_id: members.edit("creator_user_id", label)?.of(None),
        external_user: external(&members)?.of(None),
        ..NewApiKey::named(name, scope)
    };
    Ok(NewKey { new, workspace })
}

/// Reads a change; `None` without a writable member.
pub(super) fn read_change(text: &str) -> Result<Option<ApiKeyChange>, ApiError> {
    let members = read(text)?;
    let change = ApiKeyChange {
        name: members.value("name", string)?,
        workspace_id: members.edit("workspace_id", workspace)?.of(None),
        management: members.edit("management", management)?,
        limit: members.edit("limit", amount)?,
        limit_reset: members.edit("limit_reset", interval)?,
        requests_per_minute: members.edit("requests_per_minute", rate)?,
        tokens_per_minute: members.edit("tokens_per_minute", rate)?,
        expires_at: members.edit("expires_at", timestamp)?,
        disabled: members.value("disabled", boolean)?,
        guardrail_id: members.edit("guardrail_id", guardrail)?,
        creator_user_id: members.edit("creator_user_id", label)?,
        external_user: external(&members)?,
    };
    Ok(members.has_writable().then_some(change))
}

fn read(text: &str) -> Result<Members, ApiError> {
    Members::read(text, MemberNames { writable: &NAMES, read_only: &READ_ONLY, neutral: &NEUTRAL })
}

/// Reads the label of the user: `external_user`, or `external.user` of published clients.
fn external(members: &Members) -> Result<Edit<String>, ApiError> {
    let Some(external) = members.present("external") else {
        let is_cleared = members.get("external").is_some() && members.get("external_user").is_none();
        return if is_cleared { Ok(Edit::Clear) } else { members.edit("external_user", label) };
    };
    if members.get("external_user").is_some() {
        return Err(invalid("external", "is another form of external_user; use one of them"));
    }
    let own = external.members().ok_or_else(|| invalid("external", "must be an object"))?;
    let mut user = None;
    for (name, value) in &own {
        match name.as_str() {
            "user" => user = Some(label("external.user", value)?),
            "api_key" if value.kind() == JsonKind::Null => {}
            "api_key" => return Err(invalid("external.api_key", "is not supported")),
            _ => return Err(invalid("external", &format!("has an {}", unknown_name("member", name, ["user"])))),
        }
    }
    user.map(Edit::Set).ok_or_else(|| invalid("external.user", "is required"))
}

/// Reads the whole scope of a management key. Without `workspaces` it has all, as on creation.
fn management(name: &str, value: &Json) -> Result<ManagementScope, ApiError> {
    if value.kind() != JsonKind::Object {
        return Err(invalid(name, "must be an object"));
    }
    let names = MemberNames { writable: &["access", "workspaces"], read_only: &[], neutral: &[] };
    let members = Members::read(value.text(), names).map_err(|fault| invalid(name, fault.text()))?;
    let access = members.present("access").ok_or_else(|| invalid("management.access", "is required"))?;
    let access = access.as_string().and_then(|text| ManagementAccess::from_name(&text));
    let access = access.ok_or_else(|| invalid("management.access", "must be read, keys or write"))?;
    let workspaces = members.edit("workspaces", workspaces)?.of(None);
    ManagementScope::try_new(access, workspaces).map_err(|error| invalid("management.workspaces", &error.to_string()))
}

fn workspaces(_: &str, value: &Json) -> Result<Vec<WorkspaceId>, ApiError> {
    let fault = || invalid("management.workspaces", "must be an array of workspace ids, or null");
    let elements = value.elements().ok_or_else(fault)?;
    elements.iter().map(|id| id.as_string().and_then(|id| id.parse().ok()).ok_or_else(fault)).collect()
}

fn label(name: &str, value: &Json) -> Result<String, ApiError> {
    let label = string(name, value)?;
    let invalid = |error: domain::api_key::InvalidUserLabel| invalid(name, &error.to_string());
    domain::api_key::UserLabel::try_new(&label).map_err(invalid)?;
    Ok(label)
}

fn workspace(_: &str, value: &Json) -> Result<WorkspaceId, ApiError> {
    parameters::workspace_id(&string("workspace_id", value)?)
}

fn guardrail(name: &str, value: &Json) -> Result<GuardrailId, ApiError> {
    string(name, value)?.parse().map_err(|_| invalid(name, "must be the id of a guardrail"))
}

fn interval(name: &str, value: &Json) -> Result<ResetInterval, ApiError> {
    let interval = value.as_string().and_then(|text| ResetInterval::from_name(&text));
    interval.ok_or_else(|| invalid(name, "must be daily, weekly, monthly or null"))
}

/// Reads a time in UTC; another offset, or none, is an error, and so is a time finer than it is stored.
fn timestamp(name: &str, value: &Json) -> Result<DateTime<Utc>, ApiError> {
    let text = string(name, value)?;
    let at = parameters::utc_time(&text)
        .ok_or_else(|| invalid(name, "must be an RFC 3339 time in UTC, such as 2027-01-31T00:00:00Z, or null"))?;
    if at.trunc_subsecs(3) == at { Ok(at) } else { Err(invalid(name, "must have at most 3 decimals of a second")) }
}

#[cfg(test)]
mod tests;
