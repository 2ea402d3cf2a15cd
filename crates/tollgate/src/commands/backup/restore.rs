//! Restores a backup, and verifies a database and its files.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;

use domain::audit::{AuditDraft, VerifyAuditLog};
use domain::budget::LedgerMaintenance as _;
use domain::container::{BlobKey, ByteSource as _};
use domain::error::StoreError;
use domain::file::{Document, UnreadableDocument};
use domain::ids::{DocumentId, WorkspaceId};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

use super::archive::{ArchiveEntry, ArchiveReader, EntryContent, MAX_BYTES, Manifest, hex};
use super::{DATABASE, MANIFEST, rename_new, require_checkpointed, require_file, side_files};
use crate::commands::prelude::*;
use crate::config::DatabaseUrl;
use crate::wiring::{Blobs, open_blobs};

/// Documents per page.
const PAGE: u64 = 500;
/// The maximum number of listed problems with documents.
const LISTED: usize = 20;

/// The result of a restore.
#[derive(Debug, Serialize)]
struct Report {
    database: String,
    blobs: String,
    created_at: String,
    verified: bool,
    #[serde(flatten)]
    verification: Verification,
}

/// Restores a backup if no database exists. Publishes the database only after its verification.
///
/// `accept_problems` restores a backup despite problems found by the verification.
pub async fn restore(context: &Context, file: &Path, accept_problems: bool) -> anyhow::Result<ExitCode> {
    let config = &context.config;
    require_file(&config.storage)?;
    let target = std::path::absolute(&config.storage.file)?;
    require_no_database(&target)?;
    let blobs = open_blobs(&config.blobs)?;
    let staged = StagedDatabase::create(&target)?;
    let (manifest, hashes) =
        unpack(file, &*blobs, &staged).await.with_context(|| format!("cannot restore {}", file.display()))?;

    let stores = Stores::open(&with_database(config, &staged.path)?, Schema::UpToDate).await?;
    let mut verification = verify(&stores).await?;
    compare_documents(&stores, &hashes, &mut verification).await?;
    verification.problems.extend(manifest.problems());
    let found_id = stores.database.id().await?;
    ensure!(found_id == manifest.database_id, "the backup's description is of another database");
    for problem in &verification.problems {
        note(&format!("error: {problem}"));
    }
    if !verification.is_ok() && !accept_problems {
        stores.database.close().await;
        bail!("the backup has {} problems; use --accept-problems to restore it anyway", verification.problems.len());
    }
    let details = Json::object([("created_at", Json::string(&manifest.created_at.to_rfc3339()).text())]);
    stores.audit.append(&AuditDraft::done(&context.actor(), "instance.restore", "instance", details)).await?;
    stores.database.close().await;
    require_checkpointed(&staged.path)?;
    require_no_database(&target)?;
    staged.publish(&target)?;

    let report = Report {
        database: target.display().to_string(),
        blobs: config.blobs.name(),
        created_at: manifest.created_at.to_rfc3339(),
        verified: verification.is_ok(),
        verification,
    };
    context.output.show(&report, || text(&report))
}

/// Fails if the database or one of its side files exists: SQLite would apply an old write-ahead log to the new file.
fn require_no_database(target: &Path) -> anyhow::Result<()> {
    let [wal, shm] = side_files(target);
    for file in [target, &wal, &shm] {
        if file.symlink_metadata().is_ok() {
            bail!(
                "{} exists; restore never replaces a database: stop the server, then move the file and its -wal and \
                 -shm away",
                file.display()
            );
        }
    }
    Ok(())
}

fn text(report: &Report) -> String {
    let Verification { records, audit_entries, documents, .. } = &report.verification;
    format!(
        "Restored {} and {} as of {}: {records} usage records, {audit_entries} audit entries, {documents} documents.\n\
         `tollgate journal list` shows processes that held allowances then; `tollgate journal forget` ends those whose \
         journals are gone.",
        report.database, report.blobs, report.created_at
    )
}

/// The SHA-256 of each document's bytes, by the object's key.
type Hashes = HashMap<String, String>;

/// Writes the documents into the blob store and the database into the staged file.
async fn unpack(file: &Path, blobs: &dyn Blobs, staged: &StagedDatabase) -> anyhow::Result<(Manifest, Hashes)> {
    let mut archive = ArchiveReader::open(file)?;
    let first = archive.next().await.context("not a Tollgate backup, or damaged")?;
    let manifest = match first {
        Some(ArchiveEntry { name, content }) if name == MANIFEST => {
            Manifest::parse(&content.read_all(MAX_BYTES).await?)?
        }
        _ => bail!("not a Tollgate backup"),
    };
    let (mut hashes, mut has_database) = (Hashes::new(), false);
    while let Some(ArchiveEntry { name, content }) = archive.next().await? {
        if name == DATABASE {
            ensure!(!has_database, "the backup has two databases");
            content.write_into(&mut staged.open()?).await?;
            has_database = true;
        } else {
            let key = document_key(&name).with_context(|| format!("unexpected entry {name:?}"))?;
            let hash = put(blobs, &key, content).await?;
            hashes.insert(name, hash);
        }
    }
    ensure!(has_database, "the backup has no database");
    Ok((manifest, hashes))
}

/// Writes an object unless it exists; returns the SHA-256 of the content.
///
/// # Errors
/// An object with other content exists: it may be the good one, so it is not replaced.
async fn put(blobs: &dyn Blobs, key: &BlobKey, mut content: EntryContent) -> anyhow::Result<String> {
    let Some(mut existing) = blobs.read(key, None).await? else {
        blobs.put(key, Box::new(content.clone())).await?;
        return Ok(content.sha256().await);
    };
    while content.next().await?.is_some() {}
    let expected = content.sha256().await;
    let mut hash = Sha256::new();
    while let Some(piece) = existing.source.next().await? {
        hash.update(&piece);
    }
    ensure!(hex(hash) == expected, "{key} exists in the blob store with other content; move it away");
    Ok(expected)
}

/// Returns the key of a document's object. Other names are rejected, so that an entry cannot leave the documents'
/// prefix.
fn document_key(name: &str) -> Option<BlobKey> {
    let (workspace, id) = name.strip_prefix("documents/")?.split_once('/')?;
    let (workspace, id): (WorkspaceId, DocumentId) = (workspace.parse().ok()?, id.parse().ok()?);
    let key = BlobKey::document(workspace, &id);
    (key.as_str() == name).then_some(key)
}

/// Compares the documents of the database with the restored bytes.
async fn compare_documents(stores: &Stores, hashes: &Hashes, verification: &mut Verification) -> anyhow::Result<()> {
    let mut problems = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = match stores.documents.scan(after.as_deref(), PAGE).await {
            Ok(page) => page,
            Err(StoreError::Corrupt(detail)) => {
                problems.push(format!("documents: {detail}"));
                break;
            }
            Err(error) => return Err(error.into()),
        };
        problems.extend(page.unreadable.iter().map(unreadable_row));
        after = page.last;
        if after.is_none() {
            break;
        }
        verification.documents += page.documents.len() as u64;
        problems.extend(page.documents.iter().filter_map(|document| document_problem(document, hashes)));
    }
    verification.problems.extend(problems.into_iter().take(LISTED));
    Ok(())
}

fn document_problem(document: &Document, hashes: &Hashes) -> Option<String> {
    let key = BlobKey::document(document.workspace_id, &document.id);
    match hashes.get(key.as_str()) {
        Some(hash) if *hash == document.sha256 => None,
        Some(_) => Some(format!("document {}: its bytes have another hash", document.id)),
        None => Some(format!("document {}: its bytes are not in the backup", document.id)),
    }
}

/// The database's file beside its final name. Dropping it removes the file unless it was published.
struct StagedDatabase {
    path: PathBuf,
}

impl StagedDatabase {
    fn create(target: &Path) -> anyhow::Result<Self> {
        let mut name = target.file_name().context("the database has no file name")?.to_owned();
        name.push(".restoring");
        let path = target.with_file_name(name);
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(_) => Ok(Self { path }),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => bail!(
                "{} exists: another restore is running, or one was interrupted; remove the file in that case",
                path.display()
            ),
            Err(error) => Err(error).with_context(|| format!("cannot create {}", path.display())),
        }
    }

    fn open(&self) -> std::io::Result<File> {
        OpenOptions::new().write(true).open(&self.path)
    }

    fn publish(&self, target: &Path) -> anyhow::Result<()> {
        rename_new(&self.path, target).with_context(|| format!("cannot create {}", target.display()))
    }
}

impl Drop for StagedDatabase {
    fn drop(&mut self) {
        let [wal, shm] = side_files(&self.path);
        for file in [&self.path, &wal, &shm] {
            match std::fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    note(&format!("warning: cannot remove {}: {error}", file.display()));
                }
                _ => {}
            }
        }
    }
}

/// Characters that need no escaping in the path of a URL.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.');

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// The number of usage records that were compared with their charges.
    pub records: u64,
    /// The number of audit entries.
    pub audit_entries: u64,
    /// The number of documents.
    pub documents: u64,
    /// The problems, at most 20 of each kind.
    pub problems: Vec<String>,
}

impl Verification {
    /// Returns true if no problem was found.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Describes a document whose row cannot be read. Its bytes are not in the backup, because the row names them.
pub fn unreadable_row(row: &UnreadableDocument) -> String {
    format!("document {}: its row cannot be read ({}), and its bytes are not in the backup", row.id, row.problem)
}

/// Returns the configuration with another database file.
pub fn with_database(config: &Config, file: &Path) -> anyhow::Result<Config> {
    let file = std::path::absolute(file).context("the path of the database cannot be made absolute")?;
    let path = file.to_str().context("the path of the database is not UTF-8")?;
    let mut config = config.clone();
    config.storage.url = DatabaseUrl::Sqlite(format!("sqlite://{}", utf8_percent_encode(path, PATH)));
    config.storage.file.clone_from(&file);
    config.storage.read_only = false;
    Ok(config)
}

/// Verifies the ledger and the audit log.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(stores: &Stores) -> anyhow::Result<Verification> {
    let ledger = stores.reports().audit().await.context("the ledger cannot be read")?;
    let audit =
        VerifyAuditLog::new(Arc::clone(&stores.audit)).execute(None).await.context("the audit log cannot be read")?;
    let ledger_problems = ledger
        .discrepancies
        .iter()
        .map(|found| format!("ledger: {}: expected {} USD, found {} USD", found.what, found.expected, found.found));
    let mut problems: Vec<String> = ledger_problems.take(LISTED).collect();
    problems.extend(audit.violation.iter().map(|violation| format!("audit log: {violation}")));
    let rows = audit.row_violations.iter().take(LISTED);
    problems.extend(rows.map(|row| format!("audit log: {} {}: {}", row.table, row.row, row.problem)));
    Ok(Verification { records: ledger.records, audit_entries: audit.entries, documents: 0, problems })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_key_accepts_document_names_only() {
        let workspace = "01990000-0000-7000-8000-000000000001";
        let name = |id: &str| format!("documents/{workspace}/{id}");
        let good = name("tgfile_00000000000000000000000000000001");
        assert_eq!(document_key(&good).unwrap().as_str(), good);
        for bad in [
            name("../../../etc/passwd"),
            name("tgfile_00000000000000000000000000000001/.."),
            format!("/{good}"),
            format!("documents/{}/tgfile_00000000000000000000000000000001", workspace.to_uppercase().replace('0', "A")),
            good.replacen("documents", "containers", 1),
            "documents".to_owned(),
        ] {
            assert!(document_key(&bad).is_none(), "{bad}");
        }
    }
}
