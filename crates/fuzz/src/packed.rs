//! Forms and compressed bodies. Their readers are private; the build for fuzzing exports them.

use anyhow::{Context as _, Result, ensure};
use api_actix::fuzzing::{decompress, read_form};
use bytes::Bytes;
use domain::question::Attachments;
use wires::formats::ParsedRequest;

use crate::codecs;
use crate::requests::{check_answerable, check_outbound};
use wires::provider::WireCodec as _;

/// The maximum uncompressed size of a body. It is small to keep each execution fast.
const MAX_BYTES: usize = 64 << 10;

/// Reads a line with the content type, then the form. An accepted request with files must be sent with the same files.
///
/// # Errors
/// The violated property.
pub fn check_form(input: &[u8]) -> Result<()> {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return Ok(()) };
    let Ok(content_type) = std::str::from_utf8(&input[..end]) else { return Ok(()) };
    let Some(Ok(ParsedRequest { draft, .. })) = read_form(content_type, &Bytes::copy_from_slice(&input[end + 1..]))
    else {
        return Ok(());
    };
    let Ok(request) = draft.check() else { return Ok(()) };
    check_outbound(&request.provider_input)?;
    check_answerable(&request.provider_input)?;
    let Attachments::Assets(assets) = &request.provider_input.attachments else { return Ok(()) };
    let Ok(payload) = codecs::SYSTEM_ONE.write("upstream/model", &request.provider_input) else { return Ok(()) };
    let content_type = payload.media_type();
    if content_type == "application/json" {
        return Ok(());
    }
    let again = read_form(content_type, &Bytes::from(payload.to_bytes())).context("what was written is no form")?;
    let again = again.map_err(|()| anyhow::anyhow!("the form that was written does not read back"))?;
    let again = again.draft.check().context("what comes back is no request")?;
    let Attachments::Assets(back) = &again.provider_input.attachments else { anyhow::bail!("the files are lost") };
    let same = assets.len() == back.len()
        && assets.iter().zip(back).all(|(one, other)| one.name == other.name && one.data == other.data);
    ensure!(same, "other files come back");
    Ok(())
}

/// Reads a byte that selects the encoding, then the compressed bytes. They must decompress within the limit or be
/// rejected, always with the same result.
///
/// # Errors
/// The violated property.
pub fn check_packed(input: &[u8]) -> Result<()> {
    let Some((encoding, packed)) = input.split_first() else { return Ok(()) };
    let encoding = match encoding {
        b'g' => "gzip",
        b'z' => "zstd",
        _ => "identity",
    };
    let read = || decompress(encoding, Bytes::copy_from_slice(packed), MAX_BYTES);
    let first = read();
    if let Some(unpacked) = &first {
        ensure!(encoding == "identity" || unpacked.len() <= MAX_BYTES, "it unpacks beyond the limit");
    }
    ensure!(first == read(), "it unpacks otherwise the second time");
    Ok(())
}
