//! Parser of the bodies that create or change a workspace, a budget or a credit.

use domain::budget::ResetInterval;
use domain::edit::Edit;
use domain::ids::GuardrailId;
use domain::money::Usd;
use domain::workspace::{BudgetsChange, RatesChange, WorkspaceChange, WorkspaceError};

use crate::endpoints::prelude::*;
use crate::http::members::{MemberNames, Members, NeutralMember, amount, boolean, invalid, rate, string};

const WORKSPACE: MemberNames = MemberNames {
    writable: &[
        "name",
        "slug",
        "description",
        "owner_id",
        "suspended",
        "requests_per_minute",
        "tokens_per_minute",
        "default_guardrail_id",
    ],
    read_only: &["id", "is_default", "credit_usd", "storage_used_bytes", "created_at", "updated_at"],
    neutral: &[
        NeutralMember::new("created_by", &[]),
        NeutralMember::new("default_text_model", &[]),
        NeutralMember::new("default_image_model", &[]),
        NeutralMember::new("default_provider_sort", &[]),
        NeutralMember::new("io_logging_api_key_ids", &["[]"]),
        NeutralMember::new("io_logging_sampling_rate", &["1", "1.0"]),
        NeutralMember::new("is_data_discount_logging_enabled", &["false"]),
        NeutralMember::new("is_observability_broadcast_enabled", &["false"]),
        NeutralMember::new("is_observability_io_logging_enabled", &["false"]),
        NeutralMember::new("disabled_server_tools", &["[]"]),
        NeutralMember::new("include_byok_in_budgets", &["false"]),
    ],
};

/// Reads a workspace to create.
pub(super) fn read_new(text: &str) -> Result<WorkspaceChange, ApiError> {
    let members = Members::read(text, WORKSPACE)?;
    members.required("name", string)?;
    settings(&members)
}

/// Reads a change. It is empty without a writable member.
pub(super) fn read_change(text: &str) -> Result<WorkspaceChange, ApiError> {
    settings(&Members::read(text, WORKSPACE)?)
}

fn settings(members: &Members) -> Result<WorkspaceChange, ApiError> {
    let is_unset = members.get("default_guardrail_id").is_some_and(|value| value.text() == "\"\"");
    Ok(WorkspaceChange {
        name: members.value("name", string)?,
        slug: members.value("slug", string)?,
        description: members.edit("description", string)?,
        owner_id: members.edit("owner_id", string)?,
        suspended: members.value("suspended", boolean)?,
        rates: RatesChange {
            requests_per_minute: members.edit("requests_per_minute", rate)?,
            tokens_per_minute: members.edit("tokens_per_minute", rate)?,
        },
        // The form of published packages.
        default_guardrail_id: if is_unset { Edit::Clear } else { members.edit("default_guardrail_id", guardrail)? },
    })
}

fn guardrail(name: &str, value: &Json) -> Result<GuardrailId, ApiError> {
    string(name, value)?.parse().map_err(|_| invalid(name, "must be the id of a guardrail of the workspace, or null"))
}

const BUDGET: MemberNames = MemberNames {
    writable: &["limit_usd"],
    read_only: &[
        "id",
        "workspace_id",
        "reset_interval",
        "spend_usd",
        "reserved_usd",
        "remaining_usd",
        "resets_at",
        "created_at",
        "updated_at",
    ],
    neutral: &[NeutralMember::new("include_byok_in_budgets", &["false"])],
};

/// Reads the amount of the budget of a period.
pub(super) fn read_budget(text: &str, period: Option<ResetInterval>) -> Result<Usd, ApiError> {
    let members = Members::read(text, BUDGET)?;
    members.fixed("reset_interval", period.map(ResetInterval::as_str))?;
    members.required("limit_usd", amount)
}

/// Reads a change of budgets.
pub(super) fn read_budgets(text: &str) -> Result<BudgetsChange, ApiError> {
    let writable = &["daily", "weekly", "monthly", "lifetime"];
    let members = Members::read(text, MemberNames { writable, read_only: &[], neutral: &[] })?;
    if !members.has_writable() {
        return Err(WorkspaceError::NothingToChange.into());
    }
    let [daily, weekly, monthly, lifetime] = writable.map(|name| members.edit(name, amount));
    Ok(BudgetsChange { daily: daily?, weekly: weekly?, monthly: monthly?, lifetime: lifetime? })
}

/// Reads the added credit.
pub(super) fn read_credit(text: &str) -> Result<Usd, ApiError> {
    let names = MemberNames { writable: &["add_usd"], read_only: &[], neutral: &[] };
    Members::read(text, names)?.required("add_usd", amount)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, to_value};
    use utoipa::ToSchema;

    use super::super::record::{CreateWorkspaceRequest, UpdateWorkspaceRequest, WorkspaceView};
    use super::*;

    fn members<T: ToSchema>() -> BTreeSet<String> {
        let mut parts = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut parts);
        let parts = parts.into_iter().map(|(_, part)| to_value(part).unwrap());
        let all = parts.flat_map(|part| {
            let nested = part["allOf"].as_array().cloned().unwrap_or_default();
            nested.into_iter().chain([part])
        });
        let names = |part: Value| part["properties"].as_object().cloned().unwrap_or_default();
        all.flat_map(names).map(|(name, _)| name).collect()
    }

    fn names(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn described_members_are_those_that_are_read_and_the_record_can_be_sent_back() {
        assert_eq!(members::<CreateWorkspaceRequest>(), names(WORKSPACE.writable));
        assert_eq!(members::<UpdateWorkspaceRequest>(), names(WORKSPACE.writable));
        let neutral: Vec<&str> = WORKSPACE.neutral.iter().map(|member| member.name).collect();
        let accepted = [WORKSPACE.writable, WORKSPACE.read_only, &neutral].concat();
        assert_eq!(members::<WorkspaceView<'_>>(), names(&accepted));
    }

    fn fault(text: &str) -> String {
        read_change(text).unwrap_err().text().to_owned()
    }

    #[test]
    fn change_keeps_absent_members_and_clears_null() {
        let change = read_change(r#"{"description":null,"owner_id":"o","suspended":true,"id":"x"}"#).unwrap();
        assert_eq!((change.description, change.owner_id), (Edit::Clear, Edit::Set("o".to_owned())));
        assert_eq!((change.suspended, change.name, change.default_guardrail_id), (Some(true), None, Edit::Keep));
        for text in [r#"{"default_guardrail_id":""}"#, r#"{"default_guardrail_id":null}"#] {
            assert_eq!(read_change(text).unwrap().default_guardrail_id, Edit::Clear, "{text}");
        }
        assert!(read_change(r#"{"id":"x","io_logging_sampling_rate":1.0}"#).unwrap().is_empty());
        for (text, expected) in [
            (r#"{"name":null}"#, "name: must be a string"),
            (r#"{"slug":1}"#, "slug: must be a string"),
            (r#"{"suspended":"true"}"#, "suspended: must be true or false"),
            (r#"{"requests_per_minute":0}"#, "requests_per_minute: must be a whole number from 1 to 4294967295"),
            (r#"{"tokens_per_minute":4294967296}"#, "tokens_per_minute: must be a whole number from 1 to 4294967295"),
            (
                r#"{"default_guardrail_id":"g"}"#,
                "default_guardrail_id: must be the id of a guardrail of the workspace, or null",
            ),
            (r#"{"io_logging_sampling_rate":0.5}"#, "io_logging_sampling_rate is not supported"),
            (r#"{"default_text_model":"m"}"#, "default_text_model is not supported"),
            (r#"{"descripton":"d"}"#, r#"unknown member "descripton"; the nearest known member is "description""#),
        ] {
            assert_eq!(fault(text), expected);
        }
        assert_eq!(read_new("{}").unwrap_err().text(), "name: is required");
        assert!(read_new(r#"{"name":"n","id":"x"}"#).is_ok(), "a copy of a record");
    }

    #[test]
    fn amounts_are_exact_numbers() {
        let budget = |text: &str| read_budget(text, Some(ResetInterval::Monthly));
        assert_eq!(budget(r#"{"limit_usd":1.000000000001,"id":"x"}"#).unwrap().to_string(), "1.000000000001");
        assert_eq!(read_credit(r#"{"add_usd":-1e-12}"#).unwrap().to_string(), "-0.000000000001");
        for hostile in ["null", "\"1\"", "1e999", "0.0000000000001", "9223373", "-9223373", "[1]", "NaN"] {
            assert!(budget(&format!(r#"{{"limit_usd":{hostile}}}"#)).is_err(), "{hostile}");
            assert!(read_credit(&format!(r#"{{"add_usd":{hostile}}}"#)).is_err(), "{hostile}");
        }
        assert_eq!(budget("{}").unwrap_err().text(), "limit_usd: is required");
        let byok = budget(r#"{"limit_usd":1,"include_byok_in_budgets":true}"#).unwrap_err();
        assert_eq!(byok.text(), "include_byok_in_budgets is not supported");
        assert!(budget(r#"{"limit_usd":1,"reset_interval":"monthly"}"#).is_ok());
        let other = budget(r#"{"limit_usd":1,"reset_interval":"daily"}"#).unwrap_err();
        assert_eq!(other.text(), r#"reset_interval: is "monthly" here and cannot be changed"#);
        assert!(read_budget(r#"{"limit_usd":1,"reset_interval":null}"#, None).is_ok(), "the lifetime budget");
    }
}
