//! Downloads of stored objects to a file or to standard output.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use domain::container::{ByteSource, OpenBlob};
use domain::error::StoreError;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Context;
use super::backup::hex;

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
    context.output.show(&view, || format!("Wrote {} ({size_bytes} bytes).", view.file))?;
    Ok(ExitCode::SUCCESS)
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

/// Makes reading an object fail at its end if its bytes do not have this SHA-256, in lower-case hex.
pub fn verified(object: OpenBlob, sha256: String) -> OpenBlob {
    let source = VerifiedSource { source: object.source, hash: Sha256::new(), expected: sha256 };
    OpenBlob { source: Box::new(source), ..object }
}

struct VerifiedSource {
    source: Box<dyn ByteSource>,
    hash: Sha256,
    expected: String,
}

#[async_trait]
impl ByteSource for VerifiedSource {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let piece = self.source.next().await?;
        match &piece {
            Some(piece) => self.hash.update(piece),
            None if hex(self.hash.clone()) != self.expected => {
                return Err(StoreError::Corrupt("the bytes have another SHA-256 than the document".to_owned()));
            }
            None => {}
        }
        Ok(piece)
    }
}
