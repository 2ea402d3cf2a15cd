//! Parser of the body that creates or changes a destination.

use domain::edit::Edit;
use domain::json::JsonKind;
use domain::observability::DestinationFields;

use crate::endpoints::prelude::*;
use crate::http::members::{MemberNames, Members, NeutralMember, boolean, invalid, string};

const NAMES: MemberNames = MemberNames {
    writable: &["name", "type", "config", "enabled", "privacy_mode", "sampling_rate", "api_key_hashes", "workspace_id"],
    read_only: &["id", "created_at", "updated_at", "signed"],
    neutral: &[
        NeutralMember::new("broadcast_generation_cost", &["false"]),
        NeutralMember::new("broadcast_generation_cost_allocation", &["false"]),
        NeutralMember::new("broadcast_generation_identity", &["false"]),
        NeutralMember::new("broadcast_generation_request_context", &["false"]),
        NeutralMember {
            name: "filter_rules",
            values: &["[]"],
            remedy: ": use api_key_hashes, sampling_rate and privacy_mode",
        },
        NeutralMember::new("regions", &["[]", r#"["global"]"#]),
    ],
};
const CONFIG_NAMES: MemberNames = MemberNames {
    writable: &["url", "endpoint", "headers", "secret"],
    read_only: &[],
    neutral: &[NeutralMember { name: "method", values: &[r#""POST""#], remedy: ": deliveries are sent by POST" }],
};

/// Returns the fields and the named workspace. Null stands for the state of a destination that was created without the
/// member.
pub(super) fn read(text: &str) -> Result<(DestinationFields, Option<String>), ApiError> {
    let members = Members::read(text, NAMES)?;
    let mut fields = DestinationFields {
        name: members.value("name", string)?,
        kind: members.value("type", string)?,
        enabled: or_default(members.edit("enabled", boolean)?, true),
        privacy_mode: or_default(members.edit("privacy_mode", boolean)?, true),
        sampling_rate: or_default(members.edit("sampling_rate", number)?, "1".to_owned()),
        api_key_hashes: members.edit("api_key_hashes", key_names)?,
        workspace_id: None,
        ..DestinationFields::default()
    };
    if let Some(config) = members.get("config") {
        read_config(config, &mut fields)?;
    }
    Ok((fields, members.edit("workspace_id", string)?.of(None)))
}

fn or_default<T>(edit: Edit<T>, default: T) -> Option<T> {
    match edit {
        Edit::Keep => None,
        edit => edit.of(None).or(Some(default)),
    }
}

/// Reads the whole connection settings. A secret that is absent stays: a client that does not know the member would
/// otherwise end the signature by sending back the rest.
fn read_config(config: &Json, fields: &mut DestinationFields) -> Result<(), ApiError> {
    if config.kind() != JsonKind::Object {
        return Err(invalid("config", "must be an object"));
    }
    let config = Members::read(config.text(), CONFIG_NAMES).map_err(|fault| invalid("config", fault.text()))?;
    let [url, endpoint] = [("url", "config.url"), ("endpoint", "config.endpoint")]
        .map(|(name, path)| config.present(name).map(|value| string(path, value)).transpose());
    let (url, endpoint) = (url?, endpoint?);
    if url.is_some() && endpoint.is_some() && url != endpoint {
        return Err(invalid("config.endpoint", "is an alias of config.url and has another value"));
    }
    fields.url = Some(url.or(endpoint).ok_or_else(|| invalid("config.url", "is required"))?);
    fields.secret = config.edit("secret", |_, value| string("config.secret", value))?;
    fields.headers = Some(config.edit("headers", headers)?.of(None).unwrap_or_default());
    Ok(())
}

fn headers(_: &str, value: &Json) -> Result<Vec<(String, String)>, ApiError> {
    let members = value.members().ok_or_else(|| invalid("config.headers", "must be an object"))?;
    let text = |(name, value): (String, Json)| {
        let value = value.as_string().ok_or_else(|| invalid("config.headers", "must have strings as values"))?;
        Ok((name, value))
    };
    members.into_iter().map(text).collect()
}

fn key_names(name: &str, value: &Json) -> Result<Vec<String>, ApiError> {
    let fault = || invalid(name, "must be an array of strings or null");
    value.elements().ok_or_else(fault)?.iter().map(|key| key.as_string().ok_or_else(fault)).collect()
}

fn number(name: &str, value: &Json) -> Result<String, ApiError> {
    if value.kind() == JsonKind::Number { Ok(value.text().to_owned()) } else { Err(invalid(name, "must be a number")) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, to_value};
    use utoipa::ToSchema;

    use super::super::record::{DestinationChange, DestinationRequest};
    use super::*;

    /// Returns the described members of a request, and those of its `config`.
    fn described<T: ToSchema>() -> [BTreeSet<String>; 2] {
        let mut parts = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut parts);
        let names = |schema: &Value| -> Vec<String> {
            schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
        };
        let [mut own, mut config] = [BTreeSet::new(), BTreeSet::new()];
        for (name, part) in parts {
            let part = to_value(part).unwrap();
            let members = part["allOf"].as_array().into_iter().flatten().chain([&part]).flat_map(names);
            if name.starts_with("DestinationConfig") { config.extend(members) } else { own.extend(members) }
        }
        [own, config]
    }

    #[test]
    fn described_members_are_those_that_are_read() {
        let except = |all: &[&str], others: &[&str]| -> BTreeSet<String> {
            all.iter().filter(|name| !others.contains(name)).map(|&name| name.to_owned()).collect()
        };
        // An alias.
        let [own, config] = [except(NAMES.writable, &[]), except(CONFIG_NAMES.writable, &["endpoint"])];
        assert_eq!(described::<DestinationRequest>(), [own, config.clone()]);
        let changeable = except(NAMES.writable, &["type", "workspace_id"]);
        assert_eq!(described::<DestinationChange>(), [changeable, config]);
    }

    fn fields(text: &str) -> DestinationFields {
        read(text).map_err(|error| error.text().to_owned()).unwrap_or_else(|message| unreachable!("{message}")).0
    }

    fn fault(text: &str) -> String {
        read(text).map(drop).unwrap_err().text().to_owned()
    }

    #[test]
    fn read_rejects_unknown_member_with_nearest_name() {
        assert_eq!(
            fault(r#"{"privacy_mod":true}"#),
            r#"unknown member "privacy_mod"; the nearest known member is "privacy_mode""#
        );
        assert_eq!(
            fault(r#"{"config":{"ulr":"u"}}"#),
            r#"config: unknown member "ulr"; the nearest known member is "url""#
        );
    }

    #[test]
    fn read_replaces_config_as_a_whole_and_treats_null_as_the_default() {
        let all = fields(
            r#"{"name":"n","type":"webhook","config":{"url":"u","headers":{"A":"b","A":"c"},"secret":"s"},"enabled":false,
                "privacy_mode":false,"sampling_rate":1e-1,"api_key_hashes":["h"],"id":"x","regions":[]}"#,
        );
        assert_eq!(
            (all.name.as_deref(), all.kind.as_deref(), all.url.as_deref()),
            (Some("n"), Some("webhook"), Some("u"))
        );
        assert_eq!(all.headers.unwrap().len(), 2, "twice the same is for the use case to refuse");
        assert_eq!((all.secret, all.enabled, all.privacy_mode), (Edit::Set("s".to_owned()), Some(false), Some(false)));
        assert_eq!(all.sampling_rate.as_deref(), Some("1e-1"), "as it was written");
        assert_eq!(all.api_key_hashes, Edit::Set(vec!["h".to_owned()]));
        assert!(fields("{}").is_empty() && fields(r#"{"filter_rules":null}"#).is_empty());
        let nulls = fields(r#"{"enabled":null,"privacy_mode":null,"sampling_rate":null,"api_key_hashes":null}"#);
        assert_eq!(
            (nulls.enabled, nulls.privacy_mode, nulls.sampling_rate.as_deref()),
            (Some(true), Some(true), Some("1"))
        );
        assert_eq!(nulls.api_key_hashes, Edit::Clear);
        let config = fields(r#"{"config":{"url":"u"}}"#);
        assert_eq!((config.headers, config.secret), (Some(Vec::new()), Edit::Keep), "a secret survives");
        assert_eq!(fields(r#"{"config":{"url":"u","secret":null}}"#).secret, Edit::Clear);
        assert_eq!(fields(r#"{"config":{"endpoint":"u"}}"#).url.as_deref(), Some("u"));
        assert_eq!(fields(r#"{"config":{"endpoint":"u","url":"u","method":"POST"}}"#).url.as_deref(), Some("u"));
    }

    #[test]
    fn members_without_a_function_are_accepted_with_their_neutral_value() {
        for NeutralMember { name, values, .. } in NAMES.neutral {
            for value in values.iter().chain([&"null"]) {
                assert!(fields(&format!(r#"{{"{name}":{value}}}"#)).is_empty(), "{name}: {value}");
            }
            assert!(fault(&format!(r#"{{"{name}":7}}"#)).starts_with(&format!("{name} is not supported")));
        }
        assert!(fields(r#"{"regions":["global"],"signed":false}"#).is_empty());
    }

    #[test]
    fn read_rejects_other_types_with_path() {
        for (text, expected) in [
            (r#"{"name":1}"#, "name: must be a string"),
            (r#"{"type":[]}"#, "type: must be a string"),
            (r#"{"config":"u"}"#, "config: must be an object"),
            (r#"{"config":{"url":1}}"#, "config.url: must be a string"),
            (r#"{"config":{"url":"u","secret":{}}}"#, "config.secret: must be a string"),
            (r#"{"config":null}"#, "config: must be an object"),
            (r#"{"config":{"headers":{}}}"#, "config.url: is required"),
            (r#"{"config":{"url":"u","headers":["a: b"]}}"#, "config.headers: must be an object"),
            (r#"{"config":{"url":"u","headers":{"a":1}}}"#, "config.headers: must have strings as values"),
            (
                r#"{"config":{"url":"a","endpoint":"b"}}"#,
                "config.endpoint: is an alias of config.url and has another value",
            ),
            (r#"{"config":{"method":"PUT"}}"#, "config: method is not supported: deliveries are sent by POST"),
            (r#"{"broadcast_generation_cost":true}"#, "broadcast_generation_cost is not supported"),
            (r#"{"regions":["europe"]}"#, "regions is not supported"),
            (r#"{"enabled":"yes"}"#, "enabled: must be true or false"),
            (r#"{"privacy_mode":1}"#, "privacy_mode: must be true or false"),
            (r#"{"sampling_rate":"0.5"}"#, "sampling_rate: must be a number"),
            (r#"{"api_key_hashes":"a"}"#, "api_key_hashes: must be an array of strings or null"),
            (r#"{"api_key_hashes":[1]}"#, "api_key_hashes: must be an array of strings or null"),
            (r#"{"workspace_id":1}"#, "workspace_id: must be a string"),
            (
                r#"{"filter_rules":{"enabled":true}}"#,
                "filter_rules is not supported: use api_key_hashes, sampling_rate and privacy_mode",
            ),
        ] {
            assert_eq!(fault(text), expected);
        }
        assert!(fault(r#"{"name":"a","name":"b"}"#).contains("more than once"));
        assert!(!fault("[]").is_empty());
    }
}
