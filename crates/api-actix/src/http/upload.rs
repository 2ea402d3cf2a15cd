//! Uploads: a body that is handed to a store as it arrives.

use std::pin::pin;
use std::time::Duration;

use actix_web::web::Payload;
use async_trait::async_trait;
use domain::container::ByteSource;
use domain::error::StoreError;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::call::Call;
use super::error::ApiError;

/// The longest pause between two pieces of a body.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The bytes of a body that earn a second to wait for the next ones: a body that drips would keep its place for ever.
const MIN_BYTES_PER_SECOND: u64 = 16 * 1024;
/// The memory that an upload may take: the piece that arrives, and the pieces that the store writes.
const MEMORY_BYTES: usize = 1 << 20;

/// The pieces of a body, for a store on any thread.
struct BodySource(mpsc::Receiver<Vec<u8>>);

#[async_trait]
impl ByteSource for BodySource {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.recv().await)
    }
}

/// Takes an in-flight permit, and gives the body to `write` while it arrives. The body waits until its last piece was
/// taken. A body that breaks off fails the write.
///
/// # Errors
/// The error of `write`; 400 for a body that does not arrive as a whole.
pub(crate) async fn upload<T, E>(
    call: &Call<'_>,
    payload: Payload,
    write: impl AsyncFnOnce(Box<dyn ByteSource>) -> Result<T, E>,
) -> Result<T, ApiError>
where
    ApiError: From<E>,
{
    let mut memory = call.lease()?;
    memory.resize(MEMORY_BYTES)?;
    call.enter(memory, Duration::ZERO)?;
    let (sender, receiver) = mpsc::channel(1);
    let mut write = pin!(write(Box::new(BodySource(receiver))));
    tokio::select! {
        // Without the whole body this is an error.
        written = &mut write => Ok(written?),
        fed = feed(call, payload, sender) => {
            // Dropping the write leaves nothing.
            fed?;
            Ok(write.await?)
        }
    }
}

/// Sends the pieces of a body until its end, or until the store takes no more.
async fn feed(call: &Call<'_>, mut payload: Payload, sender: mpsc::Sender<Vec<u8>>) -> Result<(), ApiError> {
    let mut left = MAX_PAUSE;
    loop {
        let (next, waited) = call.timed(timeout(left, payload.next())).await;
        left = left.saturating_sub(waited);
        let piece = match next {
            Ok(None) => return Ok(()),
            Ok(Some(Ok(piece))) if piece.is_empty() => continue,
            Ok(Some(Ok(piece))) => piece,
            Ok(Some(Err(_))) => return Err(ApiError::invalid("The body could not be read completely")),
            Err(_) => return Err(ApiError::invalid("The body did not arrive in time")),
        };
        left = (left + Duration::from_millis(piece.len() as u64 * 1_000 / MIN_BYTES_PER_SECOND)).min(MAX_PAUSE);
        if sender.send(piece.to_vec()).await.is_err() {
            return Ok(());
        }
    }
}
