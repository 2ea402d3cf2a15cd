//! Container files with several hard links, or with concurrent writers.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::{Instant, sleep};
use tollgate_tests::SecondHand;

use crate::gateway::TestGateway;
use crate::promote::file_id;

#[tokio::test]
async fn promote_rejects_file_with_a_second_hard_link() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let workspace = gateway.instance.default_workspace().await?;
    let other = gateway.instance.workspace("other").await?;
    let secret = gateway.instance.container_file(&other, "sess_b", "secret")?;
    std::fs::write(&secret, b"of another workspace")?;
    let cases = [("other", secret.clone()), ("database", gateway.instance.database())];
    for (name, target) in cases {
        let link = gateway.instance.container_file(&workspace, "sess_a", name)?;
        std::fs::hard_link(&target, &link)?;
        let reply = gateway.server.promote(&gateway.inference.secret, "sess_a", &file_id(name)).await?;
        let envelope = reply.envelope(400)?;
        let message = envelope["error"]["message"].as_str().context("no message")?;
        ensure!(message.contains("2 hard links") && message.contains("copy it"), "{message}");
        ensure!(gateway.instance.document_blobs()?.is_empty(), "{name} was copied");
        std::fs::remove_file(link)?;
    }
    // A copy is a separate file.
    let own = gateway.instance.container_file(&workspace, "sess_a", "own")?;
    std::fs::copy(&secret, own)?;
    gateway.server.promote(&gateway.inference.secret, "sess_a", &file_id("own")).await?.ok()?;
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn promote_bounds_the_number_of_documents_and_charges_empty_files() -> Result<()> {
    let gateway = TestGateway::start("[limits]\nworkspace_quota_bytes = 3000\n").await?;
    let id = gateway.instance.put("sess_a", "empty", b"").await?;
    let promote = async || gateway.server.promote(&gateway.inference.secret, "sess_a", &id).await;
    for _ in 0..2 {
        promote().await?.ok()?;
    }
    let metadata = promote().await?.envelope(403)?["error"]["metadata"].clone();
    ensure!(metadata["used_bytes"] == 2048 && metadata["charged_bytes"] == 1024, "{metadata}");
    ensure!(metadata["file_bytes"] == 0, "{metadata}");

    let gateway = TestGateway::start("").await?;
    let hand = SecondHand::of(&gateway.instance).await?;
    hand.execute("UPDATE workspaces SET document_count = 999998").await?;
    hand.close().await?;
    let id = gateway.instance.put("sess_a", "empty", b"").await?;
    let promote = async || gateway.server.promote(&gateway.inference.secret, "sess_a", &id).await;
    for _ in 0..2 {
        promote().await?.ok()?;
    }
    let envelope = promote().await?.error(403, "the workspace has 1000000 documents and may have 1000000")?;
    let metadata = &envelope["error"]["metadata"];
    ensure!(metadata["max_documents"] == 1_000_000 && metadata["documents"] == 1_000_000, "{envelope}");
    ensure!(gateway.instance.document_blobs()?.len() == 2);
    Ok(())
}

/// The size of the file: many pages, and quick to copy.
const SIZE: usize = 1_500_000;
const PROMOTIONS: usize = 25;

/// A writer that alternates between a version of `a` only and a version of `b` only; it ends when it is dropped.
enum Writer {
    /// Stores into a shared mapping. Mappings need unsafe code, so a C program creates it.
    Mapping(Child),
    /// Writes the halves of a version with a pause between them.
    Halves { stop: Arc<AtomicBool>, thread: Option<JoinHandle<()>> },
}

const MAPPING: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
int main(int count, char **arguments) {
    struct stat file;
    int descriptor = open(arguments[1], O_RDWR);
    if (count != 2 || descriptor < 0 || fstat(descriptor, &file) != 0) return 1;
    char *pages = mmap(NULL, file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (pages == MAP_FAILED) return 2;
    puts("mapped");
    fflush(stdout);
    for (;;) {
        memset(pages, 'b', file.st_size);
        memset(pages, 'a', file.st_size);
    }
}
"#;

/// Compiles the program with the C compiler that the build also needs.
fn compile_mapping(folder: &Path) -> Result<PathBuf> {
    let (source, program) = (folder.join("mapping.c"), folder.join("mapping"));
    std::fs::write(&source, MAPPING)?;
    let compiled = Command::new("cc").arg("-o").arg(&program).arg(&source).status();
    ensure!(compiled.context("this test needs a C compiler")?.success(), "the writer does not compile");
    Ok(program)
}

impl Writer {
    fn mapping(path: &Path) -> Result<Self> {
        use std::io::BufRead;
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(compile_mapping(folder.path())?);
        let mut child = command.arg(path).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("no output")?;
        let writer = Self::Mapping(child);
        let mut line = String::new();
        std::io::BufReader::new(stdout).read_line(&mut line)?;
        ensure!(line == "mapped\n", "the writer did not start: {line:?}");
        Ok(writer)
    }

    fn halves(path: &Path) -> Result<Self> {
        let file = File::options().write(true).open(path)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().spawn(move || {
            for version in [b'b', b'a'].into_iter().cycle() {
                for half in 0..2 {
                    let piece = vec![version; SIZE / 2];
                    if stopped.load(Ordering::Relaxed) || file.write_all_at(&piece, half * piece.len() as u64).is_err()
                    {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(15));
                }
            }
        })?;
        Ok(Self::Halves { stop, thread: Some(thread) })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        match self {
            Self::Mapping(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            Self::Halves { stop, thread } => {
                stop.store(true, Ordering::Relaxed);
                if let Some(thread) = thread.take() {
                    let _ = thread.join();
                }
            }
        }
    }
}

fn is_one_version(document: &PathBuf) -> Result<bool> {
    let content = std::fs::read(document)?;
    Ok(content.len() == SIZE && content.iter().all(|byte| *byte == content[0]))
}

async fn promote_under(writer: impl FnOnce(&Path) -> Result<Writer>) -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let workspace = gateway.instance.default_workspace().await?;
    let path = gateway.instance.container_file(&workspace, "sess_a", "written")?;
    std::fs::write(&path, vec![b'a'; SIZE])?;
    let promote = async || gateway.server.promote(&gateway.inference.secret, "sess_a", &file_id("written")).await;
    let writer = writer(&path)?;
    let mut promoted = 0;
    for _ in 0..PROMOTIONS {
        let reply = promote().await?;
        if reply.status == 200 {
            promoted += 1;
        } else {
            let envelope = reply.envelope(503)?;
            let reason = &envelope["error"]["metadata"]["reason"];
            ensure!(reason.as_str().is_some_and(|reason| reason.contains("changed")), "{envelope}");
        }
    }
    let documents = gateway.instance.document_blobs()?;
    ensure!(documents.len() == promoted, "{promoted} of {documents:?}");
    for document in &documents {
        ensure!(is_one_version(document)?, "{} mixes two versions", document.display());
    }
    drop(writer);
    std::fs::write(&path, vec![b'c'; SIZE])?;
    let since = Instant::now();
    while promote().await?.status != 200 {
        ensure!(since.elapsed() < Duration::from_secs(10), "an unchanged file is not promoted");
        sleep(Duration::from_millis(20)).await;
    }
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn promoted_document_is_one_version_under_a_writer_with_a_shared_mapping() -> Result<()> {
    promote_under(Writer::mapping).await
}

#[tokio::test]
async fn promoted_document_is_one_version_under_a_slow_writer() -> Result<()> {
    promote_under(Writer::halves).await
}
