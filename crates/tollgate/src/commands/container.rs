//! `tollgate container …` and `tollgate document …`

use std::fs::{File, OpenOptions};
use std::io;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use domain::container::{BlobKey, ByteSource, ContainerId, ContainerPath, OpenBlob, VerifiedSource};
use domain::error::StoreError;
use domain::ids::DocumentId;
use serde::Serialize;
use tokio::io::AsyncReadExt;

use super::Context;
use crate::cli::{ContainerCommand, DocumentCommand};
use crate::output::table;
use crate::view::{ContainerFileView, DocumentView, List};
use crate::wiring::{Signals, Stores};

/// Runs a command on containers.
pub async fn run(context: &Context, command: ContainerCommand) -> anyhow::Result<ExitCode> {
    match command {
        ContainerCommand::Put { container, path, file, workspace } => {
            put(context, &container, &path, &file, workspace.as_deref()).await
        }
        ContainerCommand::Get { container, path, output, workspace } => {
            let file = ContainerFile::find(context, &container, &path, workspace.as_deref()).await?;
            let object = file.stores.blobs.read(&file.key, None).await?.with_context(|| file.not_found())?;
            download(context, object, output.as_deref()).await
        }
        ContainerCommand::Rm { container, path, workspace } => {
            let file = ContainerFile::find(context, &container, &path, workspace.as_deref()).await?;
            remove(context, &file).await
        }
        ContainerCommand::List { container, workspace } => list(context, &container, workspace.as_deref()).await,
    }
}

/// A container file that a command names.
struct ContainerFile {
    stores: Stores,
    key: BlobKey,
    container: ContainerId,
    path: ContainerPath,
}

impl ContainerFile {
    async fn find(context: &Context, container: &str, path: &str, workspace: Option<&str>) -> anyhow::Result<Self> {
        let container: ContainerId = container.parse()?;
        let path: ContainerPath = path.parse().with_context(|| format!("the path {path:?} cannot be used"))?;
        let stores = context.stores().await?;
        let workspace = context.workspace(&stores, workspace).await?;
        Ok(Self { key: BlobKey::container_file(workspace, &container, &path), stores, container, path })
    }

    fn not_found(&self) -> String {
        format!("the container {} has no file {}", self.container, self.path.as_str())
    }
}

async fn remove(context: &Context, file: &ContainerFile) -> anyhow::Result<ExitCode> {
    let meta = file.stores.blobs.stat(&file.key).await?.with_context(|| file.not_found())?;
    file.stores.blobs.delete(&file.key).await?;
    let view = ContainerFileView::new(&file.container, &file.path, meta.size_bytes);
    context.output.show(&view, || format!("Deleted {} ({} bytes).", view.path, view.size_bytes))
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

/// Objects per page of a listing.
const PAGE: usize = 1_000;

async fn list(context: &Context, container: &str, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let container: ContainerId = container.parse()?;
    let stores = context.stores().await?;
    let workspace = context.workspace(&stores, workspace).await?;
    let prefix = BlobKey::container_prefix(workspace, &container);
    let mut data = Vec::new();
    let mut after: Option<BlobKey> = None;
    loop {
        let page = stores.blobs.list(&prefix, after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        // Objects without a valid file id cannot be promoted, so they are not listed.
        data.extend(page.iter().filter_map(|object| {
            let path: ContainerPath = object.key.as_str().strip_prefix(&prefix)?.parse().ok()?;
            Some(ContainerFileView::new(&container, &path, object.size_bytes))
        }));
    }
    let list = List { data };
    context.output.show(&list, || {
        let row = |file: &ContainerFileView| [file.file_id.clone(), file.size_bytes.to_string(), file.path.clone()];
        table(["FILE ID", "BYTES", "PATH"], &list.data.iter().map(row).collect::<Vec<_>>())
    })
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

/// Documents per page.
const DOCUMENTS_PAGE: u64 = 500;

/// Runs a command on documents.
pub async fn run_document(context: &Context, command: DocumentCommand) -> anyhow::Result<ExitCode> {
    match command {
        DocumentCommand::List { workspace } => list_documents(context, workspace.as_deref()).await,
        DocumentCommand::Get { id, output, workspace } => {
            get(context, &id, output.as_deref(), workspace.as_deref()).await
        }
        DocumentCommand::Rm { id, workspace } => remove_document(context, &id, workspace.as_deref()).await,
    }
}

async fn list_documents(context: &Context, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let workspace = context.workspace(&stores, workspace).await?;
    let (mut data, mut after): (Vec<DocumentView>, Option<DocumentId>) = (Vec::new(), None);
    loop {
        let page = stores.documents.list(Some(workspace), after.as_ref(), DOCUMENTS_PAGE).await?;
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
    })
}

async fn get(context: &Context, id: &str, output: Option<&Path>, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let id: DocumentId = id.parse()?;
    let stores = context.stores().await?;
    let workspace = context.workspace(&stores, workspace).await?;
    let document = stores.documents.find(workspace, &id).await?.with_context(|| not_found(&id))?;
    let object = stores.blobs.read(&BlobKey::document(workspace, &id), None).await?;
    let object = object.with_context(|| format!("the bytes of {id} are missing from the blob store"))?;
    let source = Box::new(VerifiedSource::new(object.source, document.size_bytes, &document.sha256));
    download(context, OpenBlob { source, ..object }, output).await
}

async fn remove_document(context: &Context, id: &str, workspace: Option<&str>) -> anyhow::Result<ExitCode> {
    let id: DocumentId = id.parse()?;
    let stores = context.stores().await?;
    let workspace = context.workspace(&stores, workspace).await?;
    let delete = stores.delete_document();
    let deleted = delete.execute(workspace, &id, &context.actor()).await?.with_context(|| not_found(&id))?;
    let view = DocumentView::from(&deleted);
    context.output.show(&view, || format!("Deleted {} ({} bytes).", view.id, view.size_bytes))
}

fn not_found(id: &DocumentId) -> String {
    format!("the workspace has no document {id}; `tollgate document list` shows its documents")
}

/// The created file.
#[derive(Serialize)]
struct DownloadView {
    file: String,
    size_bytes: u64,
}

/// Writes an object to a new file, or to standard output by default.
///
/// # Errors
/// The object cannot be read, the file exists or cannot be written; an incomplete file is removed.
pub async fn download(context: &Context, object: OpenBlob, output: Option<&Path>) -> anyhow::Result<ExitCode> {
    let size_bytes = object.size_bytes;
    let Some(path) = output else {
        if context.output.is_json() {
            bail!("--json needs --output FILE: standard output can hold the bytes or the JSON document");
        }
        return match copy(object, &mut io::stdout().lock()).await {
            Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
            result => result.map(|()| ExitCode::SUCCESS),
        };
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot create {}", path.display()))?;
    if let Err(error) = copy_durably(object, &mut file).await {
        // The original error is more useful than a failure to remove the file.
        let _ = std::fs::remove_file(path);
        return Err(error.context(format!("cannot write {}", path.display())));
    }
    let view = DownloadView { file: path.display().to_string(), size_bytes };
    context.output.show(&view, || format!("Wrote {} ({size_bytes} bytes).", view.file))
}

async fn copy_durably(object: OpenBlob, file: &mut File) -> anyhow::Result<()> {
    copy(object, file).await?;
    Ok(file.sync_all()?)
}

async fn copy(mut object: OpenBlob, target: &mut dyn Write) -> anyhow::Result<()> {
    while let Some(piece) = object.source.next().await? {
        target.write_all(&piece)?;
    }
    Ok(target.flush()?)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
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
