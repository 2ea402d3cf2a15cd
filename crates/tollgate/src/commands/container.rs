//! `tollgate container …` and `tollgate document …`

use domain::container::ContainerPath;
use http::Request;

use super::transfer::{download, upload_file};
use crate::cli::{ContainerCommand, DocumentCommand};
use crate::commands::prelude::*;

const FILES: &[Column] = &[("FILE ID", "/id"), ("BYTES", "/bytes"), ("PATH", "/path")];
const DOCUMENTS: &[Column] = &[
    ("ID", "/id"),
    ("BYTES", "/size_bytes"),
    ("TYPE", "/mime_type"),
    ("CREATED AT", "/created_at"),
    ("FILENAME", "/filename"),
];

/// Runs a command on containers.
pub async fn run(api: &Api<'_>, command: ContainerCommand) -> anyhow::Result<ExitCode> {
    match command {
        ContainerCommand::Put { container, path, file, workspace } => {
            put(api, &container, &path, &file, workspace.as_deref()).await
        }
        ContainerCommand::Get { container, path, output, workspace } => {
            let content = format!("{}/content", file_path(&container, &path)?);
            download(api, &of_workspace(&content, workspace.as_deref()), output.as_deref()).await
        }
        ContainerCommand::Rm { container, path, workspace } => {
            delete(api, &file_path(&container, &path)?, workspace.as_deref()).await
        }
        ContainerCommand::List { container, workspace } => {
            let files = format!("/containers/{}/files", segment(&container));
            api.show_list(&list(api, &files, workspace.as_deref()).await?, FILES)
        }
    }
}

/// Runs a command on documents.
pub async fn run_document(api: &Api<'_>, command: DocumentCommand) -> anyhow::Result<ExitCode> {
    match command {
        DocumentCommand::List { workspace } => {
            api.show_list(&list(api, "/files", workspace.as_deref()).await?, DOCUMENTS)
        }
        DocumentCommand::Get { id, output, workspace } => {
            let content = format!("/files/{}/content", segment(&id));
            download(api, &of_workspace(&content, workspace.as_deref()), output.as_deref()).await
        }
        DocumentCommand::Rm { id, workspace } => {
            delete(api, &format!("/files/{}", segment(&id)), workspace.as_deref()).await
        }
    }
}

/// Returns the path of a container file: its id is made from the path in the container.
fn file_path(container: &str, path: &str) -> anyhow::Result<String> {
    let path: ContainerPath = path.parse().with_context(|| format!("the path {path:?} cannot be used"))?;
    Ok(format!("/containers/{}/files/{}", segment(container), path.file_id()))
}

/// Files per page.
const PAGE: &str = "1000";

/// Reads all pages of a list of files.
async fn list(api: &Api<'_>, path: &str, workspace: Option<&str>) -> anyhow::Result<Json> {
    let (mut files, mut after): (Vec<Json>, Option<String>) = (Vec::new(), None);
    loop {
        let query = [("workspace_id", workspace), ("limit", Some(PAGE)), ("after", after.as_deref())];
        let page = api.get(&with_query(path, &query)).await?;
        files.extend(elements(&page));
        after = text_at(&page, "/last_id");
        let has_more = pointer(&page, "/has_more").is_some_and(|more| more.text() == "true");
        if !has_more || after.is_none() {
            return Ok(Json::object([("data", Json::array(files.iter().map(Json::text)).text())]));
        }
    }
}

async fn delete(api: &Api<'_>, path: &str, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    api.show(&api.call(Method::DELETE, &of_workspace(path, workspace), None).await?)
}

/// Returns the path with the name of the workspace.
fn of_workspace(path: &str, workspace: Option<&str>) -> String {
    with_query(path, &[("workspace_id", workspace)])
}

async fn put(
    api: &Api<'_>,
    container: &str,
    path: &str,
    file: &Path,
    workspace: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let files = format!("/containers/{}/files", segment(container));
    let target = with_query(&files, &[("path", Some(path)), ("workspace_id", workspace)]);
    let request = Request::builder().method(Method::PUT);
    let written = upload_file(api, &target, request, file).await;
    let written = written.with_context(|| format!("cannot upload {} into the container", file.display()))?;
    api.show_text(&written, || {
        let [id, path] = ["/id", "/path"].map(|at| text_at(&written, at).unwrap_or_default());
        let bytes = pointer(&written, "/bytes").map(|bytes| bytes.text().to_owned()).unwrap_or_default();
        let promotion = format!("{}{files}/{id}/promote", api.base_path);
        with_next(&format!("{id}\n\n{bytes} bytes at {path}"), &format!("POST {promotion} with a key of the workspace"))
    })
}
