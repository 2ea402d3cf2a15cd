//! `tollgate workspace delete`

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use domain::api_key::DeleteApiKey;
use domain::container::BlobStore;
use domain::file::DeleteDocument;
use domain::guardrail::{DeleteGuardrail, ListGuardrails};
use domain::ids::WorkspaceId;
use domain::observability::{DeleteDestination, ListDestinations};
use domain::workspace::{ChangeWorkspaceError, DeleteWorkspace, WorkspaceContents};

use super::Context;
use crate::cli::WorkspaceContent;
use crate::view::DeletedWorkspace;
use crate::wiring::{Stores, broadcast};

/// Documents that are read at a time.
const PAGE: u64 = 1_000;

/// Deletes the named contents of a workspace, each with its audit entry, and then the workspace. Other contents are an
/// error before anything is deleted.
pub async fn run(context: &Context, named: &str, with: &[WorkspaceContent]) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    let id = context.workspace(&stores, Some(named)).await?;
    let contents = contents(context, &stores, id).await?;
    if stores.workspaces.find(id).await?.is_some_and(|workspace| workspace.is_default) {
        return Err(ChangeWorkspaceError::IsDefault.into());
    }
    let remaining = without(contents, with);
    if !remaining.is_empty() {
        bail!("the workspace still has {remaining}: delete them first, or with --with {}", names(remaining).join(","));
    }
    empty(context, &stores, id, with).await?;
    let deleted = DeleteWorkspace::new(Arc::clone(&stores.workspaces)).execute(&context.actor(), id).await?;
    let view = DeletedWorkspace::new(&deleted, contents);
    context.output.show(&view, || {
        let with = if contents.is_empty() { String::new() } else { format!(" with its {contents}") };
        format!("The workspace {id} is deleted{with}. Its usage records stay.")
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn contents(context: &Context, stores: &Stores, id: WorkspaceId) -> anyhow::Result<WorkspaceContents> {
    let ports = stores.guardrail_ports(&context.config).await?;
    let guardrails = ListGuardrails::new(ports).execute(Some(id), 0, usize::MAX).await?.guardrails.len();
    let destinations = ListDestinations::new(broadcast::repository(stores)).execute(Some(id)).await?.len();
    let (mut documents, mut after) = (0, None);
    loop {
        let page = stores.documents.list(Some(id), after.as_ref(), PAGE).await?;
        documents += page.len() as u64;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
    }
    Ok(WorkspaceContents {
        keys: stores.keys.list(Some(id)).await?.len() as u64,
        documents,
        guardrails: guardrails as u64,
        destinations: destinations as u64,
    })
}

/// Returns the contents that are not named.
fn without(contents: WorkspaceContents, with: &[WorkspaceContent]) -> WorkspaceContents {
    let keep = |kind: WorkspaceContent, count: u64| if with.contains(&kind) { 0 } else { count };
    WorkspaceContents {
        keys: keep(WorkspaceContent::Keys, contents.keys),
        documents: keep(WorkspaceContent::Documents, contents.documents),
        guardrails: keep(WorkspaceContent::Guardrails, contents.guardrails),
        destinations: keep(WorkspaceContent::Destinations, contents.destinations),
    }
}

fn names(contents: WorkspaceContents) -> Vec<&'static str> {
    let WorkspaceContents { keys, documents, guardrails, destinations } = contents;
    let counts = [(keys, "keys"), (documents, "documents"), (guardrails, "guardrails"), (destinations, "destinations")];
    counts.into_iter().filter(|(count, _)| *count > 0).map(|(_, name)| name).collect()
}

/// Deletes the named contents. Keys come first, so that running servers reject requests while the rest is deleted.
async fn empty(context: &Context, stores: &Stores, id: WorkspaceId, with: &[WorkspaceContent]) -> anyhow::Result<()> {
    let actor = context.actor();
    if with.contains(&WorkspaceContent::Keys) {
        let delete = DeleteApiKey::new(Arc::clone(&stores.keys));
        for key in stores.keys.list(Some(id)).await? {
            delete.execute(&actor, &key.id.into()).await?;
        }
    }
    if with.contains(&WorkspaceContent::Documents) {
        let blobs = Arc::clone(&stores.blobs) as Arc<dyn BlobStore>;
        let delete = DeleteDocument::new(Arc::clone(&stores.documents), blobs);
        loop {
            let page = stores.documents.list(Some(id), None, PAGE).await?;
            if page.is_empty() {
                break;
            }
            for document in page {
                delete.execute(id, &document.id, &actor).await?;
            }
        }
    }
    if with.contains(&WorkspaceContent::Destinations) {
        let delete = DeleteDestination::new(broadcast::destination_ports(&context.config, stores)?);
        for destination in ListDestinations::new(broadcast::repository(stores)).execute(Some(id)).await? {
            delete.execute(&actor, &destination.id.to_string()).await?;
        }
    }
    if with.contains(&WorkspaceContent::Guardrails) {
        let ports = stores.guardrail_ports(&context.config).await?;
        let page = ListGuardrails::new(ports).execute(Some(id), 0, usize::MAX).await?;
        let delete = DeleteGuardrail::new(stores.guardrail_ports(&context.config).await?);
        for placed in page.guardrails {
            delete.execute(&actor, &placed.guardrail.id.to_string()).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_keeps_contents_that_are_not_named() {
        let contents = WorkspaceContents { keys: 2, documents: 3, guardrails: 0, destinations: 1 };
        let remaining = without(contents, &[WorkspaceContent::Keys, WorkspaceContent::Guardrails]);
        assert_eq!(names(remaining), ["documents", "destinations"]);
        assert_eq!(remaining.to_string(), "documents: 3, destinations: 1");
        let all = WorkspaceContents { guardrails: 1, ..contents };
        assert_eq!(names(all), ["keys", "documents", "guardrails", "destinations"]);
    }
}
