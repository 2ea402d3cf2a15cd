//! References to workspaces and keys in arguments: ids, names, secrets, hashes and prefixes of hashes.

use anyhow::bail;
use domain::api_key::{ApiKey, KeyReference};
use domain::authority::ManagementScope;
use domain::ids::WorkspaceId;
use domain::naming::{NameError, ResourceName, only_match};
use domain::secret::ApiKeySecret;
use domain::workspace::Workspace;

use crate::config::nearest;
use crate::wiring::Stores;

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

    #[test]
    fn enumerate_is_bounded() {
        let listed = enumerate((0..12).map(|number| number.to_string()).collect::<Vec<_>>().into_iter());
        assert_eq!(listed, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more");
    }
}
