//! `tollgate backup FILE`

use adapters_storage::copy_database;
use domain::audit::{Actor, AuditDraft};
use domain::container::BlobKey;
use domain::file::{Document, DocumentRepository};
use domain::ids::ProcessId;

use super::archive::ArchiveWriter;
use super::archive::Manifest;
use super::restore::{Verification, unreadable_row, verify, with_database};
use super::{DATABASE, MANIFEST, rename_new, require_checkpointed, require_file};
use crate::commands::prelude::*;
use crate::wiring::{fold_journals, storage_settings};

/// The time that a backup waits for running servers to fold their journals.
const FOLDED_WITHIN: Duration = Duration::from_secs(10);
/// Documents per page.
const PAGE: u64 = 500;

/// The result of a backup.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    size_bytes: u64,
    verified: bool,
    #[serde(flatten)]
    verification: Verification,
}

/// Writes the database and all documents into a new file. A server may run at the same time.
pub async fn create(context: &Context, file: &Path) -> anyhow::Result<ExitCode> {
    let file = std::path::absolute(file)?;
    if file.symlink_metadata().is_ok() {
        bail!("{} exists; a backup never replaces a file", file.display());
    }
    require_file(&context.config.storage)?;
    let work = WorkFolder::create(&file)?;
    let stores = context.stores().await?;
    let behind = fold_journals(&context.config, &stores, FOLDED_WITHIN).await?;
    let manifest = Manifest::new(
        stores.clock.now(),
        stores.database.id().await?,
        behind.into_iter().map(ProcessId::uuid).collect(),
    );

    let copy = work.path.join(DATABASE);
    copy_database(&storage_settings(&context.config.storage), &copy).await.context("the database cannot be copied")?;
    let copied = Stores::open(&with_database(&context.config, &copy)?, Schema::AsItIs).await?;
    let archive = work.path.join("archive");
    let written = write_archive(&archive, &manifest, &stores, &copied, &copy).await;
    let (size_bytes, mut verification) = written.context("the backup cannot be written")?;
    verification.problems.extend(manifest.problems());
    rename_new(&archive, &file).with_context(|| format!("cannot create {}", file.display()))?;
    drop(work);

    for problem in &verification.problems {
        note(&format!("error: {problem}"));
    }
    let report = Report { file: file.display().to_string(), size_bytes, verified: verification.is_ok(), verification };
    context.output.show(&report, || text(&report))?;
    Ok(if report.verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn write_archive(
    archive: &Path,
    manifest: &Manifest,
    stores: &Stores,
    copied: &Stores,
    copy: &Path,
) -> anyhow::Result<(u64, Verification)> {
    let mut writer = ArchiveWriter::create(archive)?;
    writer.add_bytes(MANIFEST, serde_json::to_vec(manifest)?).await?;
    // The database is copied first: the bytes of each document in the copy exist.
    let (documents, problems) = add_documents(&mut writer, stores, copied).await?;
    let mut verification = verify(copied).await?;
    verification.documents = documents;
    verification.problems.extend(problems);
    copied.database.close().await;
    require_checkpointed(copy)?;
    writer.add_file(DATABASE, copy).await?;
    Ok((writer.finish()?, verification))
}

/// Writes the bytes of every document of the copied database; returns their number and the problems with documents.
async fn add_documents(
    writer: &mut ArchiveWriter,
    stores: &Stores,
    copied: &Stores,
) -> anyhow::Result<(u64, Vec<String>)> {
    let (mut count, mut problems) = (0, Vec::new());
    let mut after: Option<String> = None;
    loop {
        let page = copied.documents.scan(after.as_deref(), PAGE).await;
        let page = page.context("the rows of documents cannot be read")?;
        problems.extend(page.unreadable.iter().map(unreadable_row));
        after = page.last;
        if after.is_none() {
            return Ok((count, problems));
        }
        for document in &page.documents {
            let key = BlobKey::document(document.workspace_id, &document.id);
            let problem = if let Some(mut open) = stores.blobs.read(&key, None).await? {
                let hash = writer.add(key.as_str(), open.size_bytes, &mut *open.source).await?;
                count += 1;
                (hash != document.sha256).then_some("its bytes have another SHA-256 than at its promotion")
            } else if stores.documents.find(document.workspace_id, &document.id).await?.is_some() {
                Some("its bytes are missing from the blob store")
            } else {
                forget_deleted(&copied.documents, document).await?;
                None
            };
            problems.extend(problem.map(|problem| format!("document {}: {problem}", document.id)));
        }
    }
}

/// Removes a document from the copy that was deleted after the copy.
async fn forget_deleted(copied: &Arc<dyn DocumentRepository>, document: &Document) -> anyhow::Result<()> {
    let subject = format!("document {}", document.id);
    let audit = AuditDraft::done(&Actor::system(), "document.delete", subject, Json::object([]));
    copied.delete(document.workspace_id, &document.id, &audit).await?;
    Ok(())
}

fn text(report: &Report) -> String {
    let Verification { records, audit_entries, documents, problems } = &report.verification;
    let verdict = if report.verified {
        "The ledger adds up and the audit log is complete.".to_owned()
    } else {
        format!("The backup holds the state as it is, and {} problems were found in it.", problems.len())
    };
    let written = format!(
        "Wrote {} ({} bytes): {records} usage records, {audit_entries} audit entries, {documents} documents.\n{verdict}\n\
         It holds key hashes and destination credentials: keep it as safe as the database.",
        report.file, report.size_bytes
    );
    with_next(&written, &format!("tollgate restore {} where no database exists, to verify it again", report.file))
}

/// The folder beside the backup in which it is prepared. Dropping it removes the folder with its files.
struct WorkFolder {
    path: PathBuf,
}

impl WorkFolder {
    fn create(file: &Path) -> anyhow::Result<Self> {
        let name = file.file_name().context("name the file of the backup")?;
        let mut name = name.to_owned();
        name.push(".partial");
        let path = file.with_file_name(name);
        let mut folder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
        match folder.create(&path) {
            Ok(()) => Ok(Self { path }),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => bail!(
                "{} exists: another backup to this file is running, or one was interrupted; remove the folder in that case",
                path.display()
            ),
            Err(error) => Err(error).with_context(|| format!("cannot create {}", path.display())),
        }
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            note(&format!("warning: cannot remove {}: {error}", self.path.display()));
        }
    }
}
