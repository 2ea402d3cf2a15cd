//! Reads an answer's body, up to a bound.

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;

/// Why a body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFault {
    /// It is longer than the bound, by what was announced or by what came.
    TooLong,
    /// The connection ended within it.
    Broken,
}

/// The whole body. The connection can be used again if it is returned. What is announced as too long is not read at all; what turns out too long is dropped there.
pub(super) async fn read(body: &mut (impl Body<Data = Bytes> + Unpin), limit: usize) -> Result<Bytes, BodyFault> {
    let announced = body.size_hint();
    let limit_u64 = u64::try_from(limit).unwrap_or(u64::MAX);
    if announced.lower() > limit_u64 {
        return Err(BodyFault::TooLong);
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyFault::Broken)?.into_data() else { continue };
        let so_far = first.len() + rest.len();
        if data.len() > limit - so_far {
            return Err(BodyFault::TooLong);
        }
        if so_far == 0 {
            // Most answers come in one piece, which is then passed on as it is.
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
