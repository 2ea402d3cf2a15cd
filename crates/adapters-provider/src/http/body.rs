//! Bounded reader of response bodies.

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;

/// The reason for an incomplete body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyError {
    /// The body is longer than the limit, as announced or as received.
    TooLong,
    /// The connection ended within the body.
    Broken,
    /// The beginning is unwanted.
    Unwanted,
    /// The body is compressed and damaged.
    Compressed,
    /// No memory is left for the body.
    NoMemory,
}

/// Reads the whole body, after which the connection can be reused. A body that is announced as too long is not read;
/// one that turns out too long is dropped. Stops after the first bytes if they are unwanted, and as soon as
/// `take_memory` returns false for further bytes.
pub(super) async fn read(
    body: &mut (impl Body<Data = Bytes> + Unpin),
    limit: usize,
    is_wanted: impl Fn(&[u8]) -> bool,
    take_memory: impl Fn(usize) -> bool,
) -> Result<Bytes, BodyError> {
    let announced = body.size_hint();
    let limit_u64 = u64::try_from(limit).unwrap_or(u64::MAX);
    if announced.lower() > limit_u64 {
        return Err(BodyError::TooLong);
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        let so_far = first.len() + rest.len();
        if data.len() > limit - so_far {
            return Err(BodyError::TooLong);
        }
        if so_far == 0 && !is_wanted(&data) {
            return Err(BodyError::Unwanted);
        }
        if !take_memory(data.len()) {
            return Err(BodyError::NoMemory);
        }
        if so_far == 0 {
            // Most answers arrive in one piece, which needs no copy.
            first = data;
        } else {
            if rest.is_empty() {
                rest.reserve(usize::try_from(announced.lower()).unwrap_or(0).max(so_far + data.len()));
                rest.extend_from_slice(&first);
                first = Bytes::new();
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// Reads at most `limit` bytes into `beginning`. Returns true if that is the whole body.
pub(super) async fn read_beginning(
    body: &mut (impl Body<Data = Bytes> + Unpin),
    beginning: &mut BytesMut,
    limit: usize,
) -> bool {
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        let Ok(data) = frame.into_data() else { continue };
        let room = limit - beginning.len();
        beginning.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return false;
        }
    }
    true
}
