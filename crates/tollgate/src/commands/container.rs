//! `tollgate container …` and `tollgate document …`

use std::fs::{File, OpenOptions};
use std::io;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use domain::container::{BlobKey, ByteSource, ContainerId, ContainerPath};
use domain::error::StoreError;
use domain::json::Json;
use http::{Method, Request};
use http_client::body::{ReceivedBody, full, next_piece};
use serde::Serialize;
use tokio::io::AsyncReadExt;

use super::Context;
use super::api::{Api, elements, segment, text_at, with_query};
use crate::cli::{ContainerCommand, DocumentCommand};
use crate::output::{Column, pointer};
use crate::view::ContainerFileView;
use crate::wiring::{Signals, Stores};

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
            put(api.context, &container, &path, &file, workspace.as_deref()).await
        }
        ContainerCommand::Get { container, path, output, workspace } => {
            let content = format!("{}/content", file_path(&container, &path)?);
            download(api, &content, workspace.as_deref(), output.as_deref()).await
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
            download(api, &content, workspace.as_deref(), output.as_deref()).await
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
    let workspace = api.optional_workspace(workspace).await?;
    let (mut files, mut after): (Vec<Json>, Option<String>) = (Vec::new(), None);
    loop {
        let query = [("workspace_id", workspace.as_deref()), ("limit", Some(PAGE)), ("after", after.as_deref())];
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
    let workspace = api.optional_workspace(workspace).await?;
    let path = with_query(path, &[("workspace_id", workspace.as_deref())]);
    api.show(&api.call(Method::DELETE, &path, None).await?)
}

/// The created file.
#[derive(Serialize)]
struct DownloadView {
    file: String,
    size_bytes: u64,
}

/// Writes a content to a new file, or to standard output by default. An incomplete file is removed.
///
/// # Errors
/// The content cannot be read as a whole, or the file exists or cannot be written.
pub async fn download(
    api: &Api<'_>,
    path: &str,
    workspace: Option<&str>,
    output: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    let printer = &api.context.output;
    if output.is_none() && printer.is_json() {
        bail!("--json needs --output FILE: standard output can hold the bytes or the JSON document");
    }
    let workspace = api.optional_workspace(workspace).await?;
    let path = with_query(path, &[("workspace_id", workspace.as_deref())]);
    let content = api.send(&path, Request::builder(), || Ok(full(""))).await?.into_body();
    let Some(output) = output else {
        return match copy(content, &mut io::stdout().lock()).await {
            Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
            result => result.map(|_| ExitCode::SUCCESS),
        };
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(output)
        .with_context(|| format!("cannot create {}", output.display()))?;
    match copy_durably(content, &mut file).await {
        Ok(size_bytes) => {
            let view = DownloadView { file: output.display().to_string(), size_bytes };
            printer.show(&view, || format!("Wrote {} ({size_bytes} bytes).", view.file))
        }
        Err(error) => {
            // The original error is more useful than a failure to remove the file.
            let _ = std::fs::remove_file(output);
            Err(error.context(format!("cannot write {}", output.display())))
        }
    }
}

async fn copy_durably(content: ReceivedBody, file: &mut File) -> anyhow::Result<u64> {
    let size_bytes = copy(content, file).await?;
    file.sync_all()?;
    Ok(size_bytes)
}

/// Copies a content and returns its size.
async fn copy(mut content: ReceivedBody, target: &mut dyn Write) -> anyhow::Result<u64> {
    let mut size_bytes = 0_u64;
    loop {
        let piece = next_piece(&mut content).await.map_err(anyhow::Error::from_boxed);
        let Some(piece) = piece.context("the download is incomplete: the server closed the connection")? else { break };
        target.write_all(&piece)?;
        size_bytes = size_bytes.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
    }
    target.flush()?;
    Ok(size_bytes)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

async fn put(
    context: &Context,
    container: &str,
    path: &str,
    file: &Path,
    workspace: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let container: ContainerId = container.parse()?;
    let path: ContainerPath = path.parse().with_context(|| format!("the path {path:?} cannot be used"))?;
    let source = FileSource::open(file).await?;
    let max_bytes = context.config.limits.max_file_bytes;
    if source.size_bytes > max_bytes {
        tracing::warn!(
            file.size_bytes = source.size_bytes,
            limits.max_file_bytes = max_bytes,
            "file is too large to be promoted: larger than limits.max_file_bytes"
        );
    }
    let stores = context.stores().await?;
    let workspace = context.workspace(&stores, workspace).await?;
    let key = BlobKey::container_file(workspace, &container, &path);
    let uploaded = upload(&stores, &key, source).await;
    let size_bytes = uploaded.with_context(|| format!("cannot upload {} into the container", file.display()))?;
    let view = ContainerFileView::new(&container, &path, size_bytes);
    context.output.show(&view, || format!("{}\n\n{size_bytes} bytes at {path}", view.file_id, path = view.path))
}

/// Copies the source into the blob store. A signal or an error leaves no part of it.
async fn upload(stores: &Stores, key: &BlobKey, source: FileSource) -> anyhow::Result<u64> {
    let (mut shutdown, mut hangup) = (Signals::of_shutdown()?, Signals::of_reload()?);
    tokio::select! {
        uploaded = stores.blobs.put(key, Box::new(source)) => Ok(uploaded?),
        signal = shutdown.next() => bail!("stopped by {signal}"),
        signal = hangup.next() => bail!("stopped by {signal}"),
    }
}

/// A local file, read in pieces.
struct FileSource {
    file: tokio::fs::File,
    /// The size at the start; 0 of a pipe.
    size_bytes: u64,
}

/// Bytes per read.
const PIECE: usize = 256 * 1024;

impl FileSource {
    async fn open(path: &Path) -> anyhow::Result<Self> {
        let opened = async {
            let file = tokio::fs::File::open(path).await?;
            let metadata = file.metadata().await?;
            Ok::<_, std::io::Error>((file, metadata))
        };
        let (file, metadata) = opened.await.with_context(|| format!("{} cannot be read", path.display()))?;
        if metadata.is_dir() {
            bail!("{} is a directory", path.display());
        }
        Ok(Self { file, size_bytes: metadata.len() })
    }
}

#[async_trait]
impl ByteSource for FileSource {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let mut piece = Vec::with_capacity(PIECE);
        let read = self.file.read_buf(&mut piece).await.map_err(StoreError::unavailable)?;
        Ok((read > 0).then_some(piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn file_source_reads_whole_file_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let content: Vec<u8> = (0..PIECE * 2 + 7).map(|n| u8::try_from(n % 251).unwrap()).collect();
        std::fs::write(&path, &content).unwrap();
        let mut source = FileSource::open(&path).await.unwrap();
        let (mut read, mut pieces) = (Vec::new(), 0);
        while let Some(piece) = source.next().await.unwrap() {
            assert!(piece.len() <= PIECE);
            read.extend(piece);
            pieces += 1;
        }
        assert!(read == content && pieces >= 3);
        assert!(FileSource::open(folder.path()).await.is_err());
        assert!(FileSource::open(&folder.path().join("absent")).await.is_err());
    }
}
