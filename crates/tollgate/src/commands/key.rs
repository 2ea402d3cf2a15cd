//! `tollgate key …`

use domain::api_key::CreateApiKeyError;

use super::api::key_segment;
use super::context::parse_timestamp;
use crate::cli::{CreateKeyArgs, KeyAccess, KeyCommand, LimitReset, ListKeysArgs, UpdateKeyArgs};
use crate::commands::prelude::*;

/// The name of a key without one.
const UNNAMED: &str = "unnamed key";
/// The columns of inference keys.
const COLUMNS: &[Column] = &[
    ("ID", "/id"),
    ("KEY", "/label"),
    ("DISABLED", "/disabled"),
    ("LIMIT USD", "/limit"),
    ("RESET", "/limit_reset"),
    ("REMAINING", "/limit_remaining"),
    ("SPENT USD", "/usage"),
    ("LAST USED", "/last_used_at"),
    ("WORKSPACE", "/workspace_id"),
    ("NAME", "/name"),
];
/// The columns of management keys.
const MANAGEMENT_COLUMNS: &[Column] = &[
    ("ID", "/id"),
    ("KEY", "/label"),
    ("DISABLED", "/disabled"),
    ("ACCESS", "/management/access"),
    ("WORKSPACES", "/management/workspaces"),
    ("CREATED", "/created_at"),
    ("NAME", "/name"),
];

/// Runs a command on keys.
pub async fn run(api: &Api<'_>, command: KeyCommand) -> anyhow::Result<ExitCode> {
    match command {
        KeyCommand::Create(args) => create(api, args).await,
        KeyCommand::Update(args) => update(api, args).await,
        KeyCommand::Show { key } => api.show(&api.get(&path(&key)).await?),
        KeyCommand::List(args) => list(api, &args).await,
        KeyCommand::Disable { key } => set_disabled(api, &key, "true").await,
        KeyCommand::Enable { key } => set_disabled(api, &key, "false").await,
        KeyCommand::Rotate { key, grace_seconds } => {
            let body = object(&[("grace_seconds", Some(number(&grace_seconds)))]);
            show_secret(api, &api.call(Method::POST, &format!("{}/rotate", path(&key)), Some(&body)).await?)
        }
        KeyCommand::Delete { key } => api.show(&api.call(Method::DELETE, &path(&key), None).await?),
    }
}

fn path(key: &str) -> String {
    format!("/keys/{}", key_segment(key))
}

async fn create(api: &Api<'_>, args: CreateKeyArgs) -> anyhow::Result<ExitCode> {
    let is_unique = (args.name.is_some() && !args.allow_duplicate).then_some("true");
    let (workspace_id, management) = if args.management {
        let access = args.access.unwrap_or(KeyAccess::Write);
        (None, Some(management(api, Some(access), &args.workspace, false).await?))
    } else if let [_, _, ..] = args.workspace.as_slice() {
        bail!("an inference key has one workspace; --management creates a key that manages several")
    } else {
        (api.optional_workspace(args.workspace.first().map(String::as_str)).await?, None)
    };
    let body = object(&[
        ("name", Some(Json::string(args.name.as_deref().unwrap_or(UNNAMED)))),
        ("workspace_id", workspace_id.as_deref().map(Json::string)),
        ("management", management),
        ("limit", args.limit_usd.as_deref().map(usd).transpose()?),
        ("limit_reset", args.limit_reset.map(reset)),
        ("requests_per_minute", args.rpm.map(|rate| number(&rate))),
        ("tokens_per_minute", args.tpm.map(|rate| number(&rate))),
        ("expires_at", args.expires_at.as_deref().map(expiry).transpose()?),
    ]);
    let created = with_query("/keys", &[("unique_name", is_unique)]);
    show_secret(api, &api.call(Method::POST, &created, Some(&body)).await?)
}

/// Returns the scope of a management key; members that are not given are left out.
async fn management(
    api: &Api<'_>,
    access: Option<KeyAccess>,
    workspaces: &[String],
    all: bool,
) -> anyhow::Result<Json> {
    let mut ids = Vec::with_capacity(workspaces.len());
    for workspace in workspaces {
        ids.push(Json::string(&api.workspace(workspace).await?));
    }
    let workspaces = match (ids.is_empty(), all) {
        (_, true) => Some(null()),
        (false, false) => Some(Json::array(ids.iter().map(Json::text))),
        (true, false) => None,
    };
    Ok(object(&[("access", access.as_ref().map(word)), ("workspaces", workspaces)]))
}

async fn update(api: &Api<'_>, args: UpdateKeyArgs) -> anyhow::Result<ExitCode> {
    let path = path(&args.key);
    if let (Some(name), false) = (&args.name, args.allow_duplicate) {
        require_free_name(api, &path, name).await?;
    }
    let is_scope = args.access.is_some() || args.all_workspaces || !args.workspace.is_empty();
    let scope = management(api, args.access, &args.workspace, args.all_workspaces).await?;
    let body = object(&[
        ("name", args.name.as_deref().map(Json::string)),
        ("limit", edit(args.no_limit, args.limit_usd.as_deref().map(usd).transpose()?)),
        ("limit_reset", args.limit_reset.map(reset)),
        ("requests_per_minute", edit(args.no_rpm, args.rpm.map(|rate| number(&rate)))),
        ("tokens_per_minute", edit(args.no_tpm, args.tpm.map(|rate| number(&rate)))),
        ("expires_at", edit(args.no_expiry, args.expires_at.as_deref().map(expiry).transpose()?)),
    ]);
    if !is_scope {
        return api.show(&api.call(Method::PATCH, &path, Some(&body)).await?);
    }
    // The server replaces the scope as a whole.
    let with_scope = |key: &Json| {
        let scope = merged(pointer(key, "/data/management").as_ref(), &scope);
        merged(Some(&body), &object(&[("management", Some(scope))]))
    };
    api.show(&api.change(&path, with_scope).await?)
}

/// Checks that no other key of the same workspace, or no other management key, has the name.
async fn require_free_name(api: &Api<'_>, path: &str, name: &str) -> anyhow::Result<()> {
    let key = api.get(path).await?;
    let own = text_at(&key, "/data/id");
    let is_management = text_at(&key, "/data/management/access").is_some();
    let workspace = text_at(&key, "/data/workspace_id").filter(|_| !is_management);
    let kind = if is_management { "management" } else { "inference" };
    let same_name = [
        ("name", Some(name)),
        ("kind", Some(kind)),
        ("workspace_id", workspace.as_deref()),
        ("include_expired", Some("true")),
    ];
    let named = api.list("/keys", &same_name).await?;
    if elements(&named).iter().any(|other| text_at(other, "/id") != own) {
        return Err(CreateApiKeyError::NameTaken(name.to_owned()).into());
    }
    Ok(())
}

async fn list(api: &Api<'_>, args: &ListKeysArgs) -> anyhow::Result<ExitCode> {
    let filter = [
        ("kind", args.management.then_some("management")),
        ("workspace_id", args.workspace.as_deref()),
        ("guardrail_id", args.guardrail.as_deref()),
        ("include_expired", Some("true")),
    ];
    let keys = api.list("/keys", &filter).await?;
    api.show_list(&keys, if args.management { MANAGEMENT_COLUMNS } else { COLUMNS })
}

async fn set_disabled(api: &Api<'_>, key: &str, disabled: &str) -> anyhow::Result<ExitCode> {
    let body = Json::object([("disabled", disabled)]);
    api.show(&api.call(Method::PATCH, &path(key), Some(&body)).await?)
}

/// Prints a new secret with the identity of its key.
fn show_secret(api: &Api<'_>, response: &Json) -> anyhow::Result<ExitCode> {
    api.show_text(response, || {
        let text = |at: &str| escape(&text_at(response, at).unwrap_or_default()).into_owned();
        let old = match text_at(response, "/data/previous_secret_expires_at") {
            Some(until) => format!(" The old secret works until {until}."),
            None => String::new(),
        };
        format!(
            "{}\n\nThis is shown once.{old}\nName: {}\nHash: {}\nId: {}\nNext: tollgate key show {}",
            text("/key"),
            text("/data/name"),
            text("/data/hash"),
            text("/data/id"),
            text("/data/id"),
        )
    })
}

fn usd(amount: &str) -> anyhow::Result<Json> {
    let usd: Usd = amount.parse().with_context(|| format!("--limit-usd {amount} is not an amount of USD"))?;
    Ok(number(&usd))
}

fn reset(reset: LimitReset) -> Json {
    if matches!(reset, LimitReset::Never) { null() } else { word(&reset) }
}

fn expiry(text: &str) -> anyhow::Result<Json> {
    Ok(Json::string(&parse_timestamp("--expires-at", text)?.to_rfc3339()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_times_are_parsed_exactly() {
        assert_eq!(usd("2.50").unwrap().text(), "2.5");
        for bad in ["a lot", "9999999999", "0.0000000000001", "1e400"] {
            let error = usd(bad).unwrap_err();
            let expected = format!(
                "--limit-usd {bad} is not an amount of USD: not a decimal number from -9223372.036854775808 to \
                 9223372.036854775807 with at most 12 digits after the point"
            );
            assert_eq!(format!("{error:#}"), expected);
        }
        assert_eq!(expiry("2027-01-31T01:00:00+01:00").unwrap().text(), "\"2027-01-31T00:00:00+00:00\"");
        assert_eq!(expiry("2026-12-01").unwrap().text(), "\"2026-12-01T00:00:00+00:00\"");
        assert!(expiry("tomorrow").is_err());
    }

    #[test]
    fn edit_clears_or_sets() {
        assert!(edit(false, None).is_none());
        assert_eq!(edit(true, None).unwrap().text(), "null");
        assert_eq!(edit(false, Some(number(&7))).unwrap().text(), "7");
        assert_eq!(reset(LimitReset::Never).text(), "null");
        assert_eq!(reset(LimitReset::Weekly).text(), "\"weekly\"");
        assert_eq!(word(&KeyAccess::Keys).text(), "\"keys\"");
    }
}
