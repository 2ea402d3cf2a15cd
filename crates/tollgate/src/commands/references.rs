//! References to workspaces and keys in arguments: ids, names, secrets, hashes and prefixes of hashes.

use anyhow::{Context as _, bail};
use domain::api_key::{ApiKey, KeyReference};
use domain::ids::WorkspaceId;
use domain::secret::ApiKeySecret;
use domain::workspace::Workspace;

use crate::config::nearest;
use crate::wiring::Stores;

/// The shortest prefix of a hash that refers to a key, in hexadecimal digits.
const MIN_HASH_PREFIX: usize = 8;
/// The most candidates that an error lists.
const MAX_CANDIDATES: usize = 10;

/// Finds a workspace by its id or its unique name.
///
/// # Errors
/// No workspace or several workspaces match, or the store failed.
pub async fn find_workspace(stores: &Stores, text: &str) -> anyhow::Result<WorkspaceId> {
    let Ok(id) = text.parse::<WorkspaceId>() else {
        return match_workspace(&stores.workspaces.list().await?, text);
    };
    match stores.workspaces.find(id).await? {
        Some(workspace) => Ok(workspace.id),
        None => bail!("workspace {id} not found"),
    }
}

fn match_workspace(workspaces: &[Workspace], name: &str) -> anyhow::Result<WorkspaceId> {
    let found: Vec<&Workspace> = workspaces.iter().filter(|workspace| workspace.name.as_str() == name).collect();
    match found.as_slice() {
        [workspace] => Ok(workspace.id),
        [] => match nearest(name, workspaces.iter().map(|workspace| workspace.name.as_str())) {
            Some(nearest) => bail!("workspace {name:?} not found; the nearest name is {nearest:?}"),
            None => bail!("workspace {name:?} not found"),
        },
        _ => bail!(
            "{} workspaces are named {name:?}; use an id: {}",
            found.len(),
            enumerate(found.iter().map(|workspace| workspace.id.to_string()))
        ),
    }
}

/// Finds a key by its id, hash, secret, unique name, or a unique prefix of its hash. An id, a hash and a secret are
/// not looked up here: they may belong to a deleted key.
///
/// # Errors
/// No key or several keys match, or the store failed. No error repeats the text, which may be a secret.
pub async fn find_key(stores: &Stores, text: &str) -> anyhow::Result<KeyReference> {
    match parse_key(text) {
        Some(reference) => Ok(reference),
        None => match_key(&all_keys(stores).await?, text),
    }
}

/// Finds keys like [`find_key`], sorted and without duplicates.
///
/// # Errors
/// As of [`find_key`]; the error has the number of the key, from 1.
pub async fn find_keys(stores: &Stores, texts: &[String]) -> anyhow::Result<Vec<KeyReference>> {
    // Hashes by the hundred thousand need no list of all keys.
    let is_parsed = texts.iter().all(|text| parse_key(text).is_some());
    let keys = if is_parsed { Vec::new() } else { all_keys(stores).await? };
    let find = |(index, text): (usize, &String)| {
        let found = parse_key(text).map_or_else(|| match_key(&keys, text), Ok);
        found.with_context(|| format!("the key number {} cannot be used", index + 1))
    };
    let mut found: Vec<KeyReference> = texts.iter().enumerate().map(find).collect::<anyhow::Result<_>>()?;
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Returns the key of an id, a hash or a secret.
fn parse_key(text: &str) -> Option<KeyReference> {
    text.parse().ok().or_else(|| Some(text.parse::<ApiKeySecret>().ok()?.hash().into()))
}

async fn all_keys(stores: &Stores) -> anyhow::Result<Vec<ApiKey>> {
    let mut keys = stores.keys.list(None).await?;
    for workspace in stores.workspaces.list().await? {
        keys.extend(stores.keys.list(Some(workspace.id)).await?);
    }
    Ok(keys)
}

fn match_key(keys: &[ApiKey], text: &str) -> anyhow::Result<KeyReference> {
    let is_prefix = text.len() >= MIN_HASH_PREFIX && text.chars().all(|digit| digit.is_ascii_hexdigit());
    let prefix = is_prefix.then(|| text.to_ascii_lowercase());
    let matches = |key: &&ApiKey| {
        key.name.as_str() == text || prefix.as_ref().is_some_and(|prefix| key.hash.to_string().starts_with(prefix))
    };
    let found: Vec<&ApiKey> = keys.iter().filter(matches).collect();
    match found.as_slice() {
        [key] => Ok(key.id.into()),
        [] => bail!(
            "key not found; a key is named by its id, hash, prefix of the hash ({MIN_HASH_PREFIX} or more digits), \
             secret or name"
        ),
        _ => bail!("{} keys match; use an id: {}", found.len(), enumerate(found.iter().map(|key| describe(key)))),
    }
}

fn describe(key: &ApiKey) -> String {
    format!("{} ({:?}, {})", key.id, key.name.as_str(), key.label)
}

/// Joins the first candidates, and counts the others.
fn enumerate(candidates: impl ExactSizeIterator<Item = String>) -> String {
    let others = candidates.len().saturating_sub(MAX_CANDIDATES);
    let mut listed: Vec<String> = candidates.take(MAX_CANDIDATES).collect();
    if others > 0 {
        listed.push(format!("and {others} more"));
    }
    listed.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use domain::api_key::{ApiKeyName, ApiKeyScope};
    use domain::authority::ManagementScope;
    use domain::ids::ApiKeyId;
    use domain::rate::RateLimits;
    use domain::secret::ApiKeyHash;

    fn key(number: u8, first: u8, name: &str) -> ApiKey {
        let mut hash = [number; 32];
        hash[..4].fill(first);
        ApiKey {
            id: ApiKeyId::from_uuid(uuid::Uuid::from_u128(number.into())),
            hash: ApiKeyHash::from_bytes(hash),
            label: format!("sk-tg-v1-{number:03}...000"),
            name: ApiKeyName::try_new(name).unwrap(),
            scope: ApiKeyScope::Management(ManagementScope::UNRESTRICTED),
            disabled: false,
            expires_at: None,
            limit: None,
            rates: RateLimits::default(),
            guardrail_id: None,
            created_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn key_matches_unique_name_or_prefix_of_hash() {
        let keys = [key(1, 0xab, "one"), key(2, 0xab, "two"), key(3, 0xcd, "twice"), key(4, 0xef, "twice")];
        let id = |text: &str| match_key(&keys, text).map_err(|error| error.to_string());
        assert_eq!(id("one"), Ok(keys[0].id.into()));
        assert_eq!(id("cdcdcdcd"), Ok(keys[2].id.into()));
        assert_eq!(id("ABABABAB02"), Ok(keys[1].id.into()));
        let ambiguous = id("abababab").unwrap_err();
        assert!(ambiguous.starts_with("2 keys match") && ambiguous.contains(&keys[0].id.to_string()), "{ambiguous}");
        let ambiguous = id("twice").unwrap_err();
        assert!(ambiguous.contains(&keys[3].id.to_string()) && !ambiguous.contains("\"one\""), "{ambiguous}");
        for unknown in ["cdcdcdc", "three", "sk-tg-v1-00", "", "cdcdcdcdé"] {
            let message = id(unknown).unwrap_err();
            assert!(message.starts_with("key not found") && (unknown.is_empty() || !message.contains(unknown)));
        }
    }

    #[test]
    fn key_may_be_named_like_a_prefix() {
        let keys = [key(1, 0xab, "abababab"), key(2, 0xcd, "other")];
        assert_eq!(match_key(&keys, "abababab").unwrap(), keys[0].id.into());
        let keys = [key(1, 0xab, "other"), key(2, 0xcd, "abababab")];
        assert!(match_key(&keys, "abababab").is_err(), "the name of one key is the prefix of another");
    }

    #[test]
    fn enumerate_is_bounded() {
        let listed = enumerate((0..12).map(|number| number.to_string()).collect::<Vec<_>>().into_iter());
        assert_eq!(listed, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more");
    }
}
