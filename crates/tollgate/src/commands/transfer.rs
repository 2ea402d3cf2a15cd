//! Downloads and uploads of any length, with their progress.

use std::fs::{File, OpenOptions};
use std::io;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Builder;
use http::{Request, Response};
use http_client::body::{BoxError, ReceivedBody, full, streamed};
use tokio::io::AsyncReadExt;

use crate::commands::prelude::*;
use crate::wiring::Signals;

/// Bytes per read.
const PIECE: usize = 256 * 1024;

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
pub async fn download(api: &Api<'_>, path: &str, output: Option<&Path>) -> anyhow::Result<ExitCode> {
    let printer = &api.context.output;
    if output.is_none() && printer.is_json() {
        bail!("--json needs --output FILE: standard output can hold the bytes or the JSON document");
    }
    let content = api.send(path, Request::builder(), || Ok(full(""))).await?;
    let Some(output) = output else {
        return match copy(api, content, &mut io::stdout().lock(), !printer.is_terminal()).await {
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
    match copy_durably(api, content, &mut file).await {
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

/// Writes a text to a created file. An incomplete file is removed.
///
/// # Errors
/// The file cannot be written.
pub fn write_text(mut file: File, path: &Path, text: &str) -> anyhow::Result<()> {
    let written = file.write_all(text.as_bytes());
    if written.is_err() && file.metadata().is_ok_and(|about| about.is_file()) {
        // The original error is more useful than a failure to remove the file.
        let _ = std::fs::remove_file(path);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}

async fn copy_durably(api: &Api<'_>, content: Response<ReceivedBody>, file: &mut File) -> anyhow::Result<u64> {
    let size_bytes = copy(api, content, file, true).await?;
    file.sync_all()?;
    Ok(size_bytes)
}

/// Copies a content and returns its size.
async fn copy(
    api: &Api<'_>,
    content: Response<ReceivedBody>,
    target: &mut dyn Write,
    shows_progress: bool,
) -> anyhow::Result<u64> {
    let length = content.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let progress = shows_progress.then(|| Progress::bytes("Downloading", length));
    let (mut content, mut size_bytes) = (content.into_body(), 0_u64);
    loop {
        let piece = api.next_piece(&mut content).await;
        let Some(piece) = piece.context("the download is incomplete: the server closed the connection")? else { break };
        target.write_all(&piece)?;
        if let Some(progress) = &progress {
            progress.add(piece.len());
        }
        size_bytes = size_bytes.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
    }
    progress.iter().for_each(Progress::end);
    target.flush()?;
    Ok(size_bytes)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Sends a file as the body of a request and returns the JSON of the response. A signal stops it.
///
/// # Errors
/// The file cannot be read, or as of [`Api::send`].
pub async fn upload_file(api: &Api<'_>, path: &str, mut request: Builder, file: &Path) -> anyhow::Result<Json> {
    let (content, length) = open(file).await.with_context(|| format!("{} cannot be read", file.display()))?;
    if let Some(length) = length {
        request = request.header(CONTENT_LENGTH, length);
    }
    let (mut content, progress) = (Some(content), Progress::bytes(format!("Uploading {}", file.display()), length));
    let sending = api.upload(path, request, || {
        // A pipe cannot be read twice.
        let content = content.take().context("the connection broke; repeat the command")?;
        Ok(streamed(pieces(content, progress.clone())))
    });
    let (mut shutdown, mut hangup) = (Signals::of_shutdown()?, Signals::of_reload()?);
    let sent = tokio::select! {
        sent = sending => sent,
        signal = shutdown.next() => bail!("stopped by {signal}"),
        signal = hangup.next() => bail!("stopped by {signal}"),
    };
    progress.end();
    sent
}

/// Opens a file. Returns also its length, which a pipe has not.
async fn open(path: &Path) -> anyhow::Result<(tokio::fs::File, Option<u64>)> {
    let file = tokio::fs::File::open(path).await?;
    let metadata = file.metadata().await?;
    if metadata.is_dir() {
        bail!("it is a directory");
    }
    Ok((file, metadata.is_file().then_some(metadata.len())))
}

fn pieces(file: tokio::fs::File, progress: Progress) -> impl stream::Stream<Item = Result<Bytes, BoxError>> {
    stream::try_unfold((file, progress), async |(mut file, progress)| {
        let mut piece = Vec::with_capacity(PIECE);
        let read = file.read_buf(&mut piece).await?;
        progress.add(read);
        Ok((read > 0).then(|| (Bytes::from(piece), (file, progress))))
    })
}

/// Sends a text as the JSON body of a request and returns the JSON of the response.
///
/// # Errors
/// As of [`Api::send`].
pub async fn upload_json(api: &Api<'_>, path: &str, request: Builder, text: &Bytes) -> anyhow::Result<Json> {
    let request = request.header(CONTENT_LENGTH, text.len()).header(CONTENT_TYPE, "application/json");
    let progress = Progress::bytes("Uploading", Some(text.len() as u64));
    let sent = api.upload(path, request, || {
        progress.set(0);
        let (text, progress) = (text.clone(), progress.clone());
        let pieces = (0..text.len()).step_by(PIECE).map(move |start| {
            let piece = text.slice(start..(start + PIECE).min(text.len()));
            progress.add(piece.len());
            Ok(piece)
        });
        Ok(streamed(stream::iter(pieces)))
    });
    let sent = sent.await;
    progress.end();
    sent
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt as _;

    use super::*;

    #[tokio::test]
    async fn file_is_read_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let content: Vec<u8> = (0..PIECE * 2 + 7).map(|n| u8::try_from(n % 251).unwrap()).collect();
        std::fs::write(&path, &content).unwrap();
        let (file, length) = open(&path).await.unwrap();
        assert_eq!(length, Some(content.len() as u64));
        let read: Vec<Bytes> = pieces(file, Progress::bytes("", None)).try_collect().await.unwrap();
        assert!(read.len() >= 3 && read.iter().all(|piece| piece.len() <= PIECE));
        assert_eq!(read.concat(), content);
        assert!(open(folder.path()).await.is_err());
        assert!(open(&folder.path().join("absent")).await.is_err());
    }
}
