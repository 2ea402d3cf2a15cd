//! `tollgate document …`

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use domain::container::BlobKey;
use domain::file::DeleteDocument;
use domain::ids::DocumentId;

use super::Context;
use super::download::{download, verified};
use crate::cli::DocumentCommand;
use crate::output::table;
use crate::view::{DocumentView, List};

/// Documents per page.
const PAGE: u64 = 500;

/// Runs a command on documents.
pub async fn run(context: &Context, command: DocumentCommand) -> anyhow::Result<ExitCode> {
    match command {
        DocumentCommand::List { workspace } => list(context, workspace.as_deref()).await,
        DocumentCommand::Get { id, output, workspace } => {
            get(context, &id, output.as_deref(), workspace.as_deref()).await
        }
        DocumentCommand::Rm { id, workspace } => remove(context, &id, workspace.as_deref()).await,
    }
}

async fn list(context: &Context, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let workspace = context.workspace(&stores, workspace).await?;
    let (mut data, mut after): (Vec<DocumentView>, Option<DocumentId>) = (Vec::new(), None);
    loop {
        let page = stores.documents.list(Some(workspace), after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        data.extend(page.iter().map(DocumentView::from));
    }
    let list = List { data };
    context.output.show(&list, || {
        let row = |document: &DocumentView| {
            let DocumentView { id, size_bytes, media_type, created_at, filename, .. } = document;
            [id.clone(), size_bytes.to_string(), media_type.clone(), created_at.clone(), filename.clone()]
        };
        table(["ID", "BYTES", "TYPE", "CREATED AT", "FILENAME"], &list.data.iter().map(row).collect::<Vec<_>>())
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn get(context: &Context, id: &str, output: Option<&Path>, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let id: DocumentId = id.parse()?;
    let stores = context.stores().await?;
    let workspace = context.workspace(&stores, workspace).await?;
    let document = stores.documents.find(workspace, &id).await?.with_context(|| not_found(&id))?;
    let object = stores.blobs.read(&BlobKey::document(workspace, &id)).await?;
    let object = object.with_context(|| format!("the bytes of {id} are missing from the blob store"))?;
    download(context, verified(object, document.sha256), output).await
}

async fn remove(context: &Context, id: &str, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let id: DocumentId = id.parse()?;
    let stores = context.stores().await?;
    let workspace = context.workspace(&stores, workspace).await?;
    let delete = DeleteDocument::new(Arc::clone(&stores.documents), Arc::clone(&stores.blobs) as _);
    let deleted = delete.execute(workspace, &id, &context.actor()).await?.with_context(|| not_found(&id))?;
    let view = DocumentView::from(&deleted);
    context.output.show(&view, || format!("Deleted {} ({} bytes).", view.id, view.size_bytes))?;
    Ok(ExitCode::SUCCESS)
}

fn not_found(id: &DocumentId) -> String {
    format!("the workspace has no document {id}; `tollgate document list` shows its documents")
}
