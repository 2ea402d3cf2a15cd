//! Compressed request bodies and the limits on their decompression.

use std::io;
use std::io::Read;

use actix_web::http::header::{CONTENT_ENCODING, HeaderMap};
use actix_web::web;
use bytes::{Buf, Bytes};
use domain::error::ErrorKind;
use flate2::bufread::GzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

use super::admission::{BodyLease, PROCESSING_COPIES};
use super::error::ApiError;

/// The supported encodings, for `Accept-Encoding`.
pub(crate) const ACCEPTED: &str = "zstd, gzip";

/// The content encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentEncoding {
    /// Not compressed.
    Identity,
    Gzip,
    Zstd,
}

/// The maximum compressed size for decompression on the worker thread, in bytes.
const INLINE_MAX_COMPRESSED_BYTES: usize = 16 << 10;
/// The number of decompressed bytes after which a blocking thread takes over.
const INLINE_MAX_DECOMPRESSED_BYTES: usize = 128 << 10;
/// The smallest output buffer, in bytes.
const MIN_BUFFER: usize = 512;
/// The default window limit of a zstd frame, as a power of two: 8 MiB, the limit of standard encoders. A larger body
/// limit raises it.
const MIN_WINDOW_LOG: u32 = 23;
/// The maximum window that the reference decoder grants.
const MAX_WINDOW_LOG: u32 = 27;
/// The most members of a gzip body, which each cost time: a million empty ones would block a thread.
const MAX_GZIP_MEMBERS: usize = 1_000;
/// The first bytes of a gzip member: RFC 1952, section 2.3.1.
const GZIP_MAGIC: &[u8] = b"\x1f\x8b";

impl ContentEncoding {
    /// Parses the encoding of a request; at most one is allowed.
    ///
    /// # Errors
    /// 415 for an unknown encoding.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, ApiError> {
        let mut encoding = Self::Identity;
        for value in headers.get_all(CONTENT_ENCODING) {
            let value = value.to_str().map_err(|_| ApiError::unsupported_encoding(ACCEPTED))?;
            for name in value.split(',').map(str::trim) {
                let named = match name.to_ascii_lowercase().as_str() {
                    "" | "identity" => continue,
                    "gzip" | "x-gzip" => Self::Gzip,
                    "zstd" => Self::Zstd,
                    _ => return Err(ApiError::unsupported_encoding(ACCEPTED)),
                };
                if encoding != Self::Identity {
                    return Err(ApiError::unsupported_encoding(ACCEPTED));
                }
                encoding = named;
            }
        }
        Ok(encoding)
    }

    /// Decompresses a body to at most `max_bytes`, within the limits of `memory`, which already holds the compressed
    /// bytes. Large bodies are decompressed on another thread.
    ///
    /// # Errors
    /// 413 if the limit is exceeded; 400 if the bytes are malformed or truncated; 429 or 503 if the memory is used up.
    pub(crate) async fn decompress(
        self,
        compressed: Bytes,
        max_bytes: usize,
        memory: BodyLease,
    ) -> Result<(Bytes, BodyLease), ApiError> {
        let is_small = compressed.len() <= INLINE_MAX_COMPRESSED_BYTES;
        let mut decompression = match self {
            Self::Identity => return Ok((compressed, memory)),
            Self::Gzip => Decompression::gzip(compressed, max_bytes, memory),
            Self::Zstd => Decompression::zstd(compressed, max_bytes, memory)?,
        };
        if is_small && decompression.decompress_up_to(INLINE_MAX_DECOMPRESSED_BYTES)? {
            return decompression.end();
        }
        let work = move || {
            decompression.decompress_up_to(usize::MAX)?;
            decompression.end()
        };
        web::block(work).await.map_err(|error| ApiError::from_kind(ErrorKind::Internal).caused_by(error))?
    }
}

/// The decompression of one body.
struct Decompression {
    source: Source,
    /// The gzip members before the current one.
    members: usize,
    decompressed: Vec<u8>,
    max_bytes: usize,
    compressed_bytes: usize,
    memory: BodyLease,
}

enum Source {
    Gzip(GzDecoder<bytes::buf::Reader<Bytes>>),
    Zstd(ZstdDecoder<'static, bytes::buf::Reader<Bytes>>),
}

impl Decompression {
    fn gzip(compressed: Bytes, max_bytes: usize, memory: BodyLease) -> Self {
        let compressed_bytes = compressed.len();
        let source = Source::Gzip(GzDecoder::new(compressed.reader()));
        Self { source, members: 0, decompressed: Vec::new(), max_bytes, compressed_bytes, memory }
    }

    fn zstd(compressed: Bytes, max_bytes: usize, memory: BodyLease) -> Result<Self, ApiError> {
        let compressed_bytes = compressed.len();
        let window = max_bytes.checked_next_power_of_two().map_or(MAX_WINDOW_LOG, usize::ilog2);
        let decoder = ZstdDecoder::with_buffer(compressed.reader()).and_then(|mut decoder| {
            decoder.window_log_max(window.clamp(MIN_WINDOW_LOG, MAX_WINDOW_LOG))?;
            Ok(decoder)
        });
        // Only an allocation can fail here; no input has been read yet.
        let decoder = decoder.map_err(|error| ApiError::from_kind(ErrorKind::Internal).caused_by(error))?;
        let source = Source::Zstd(decoder);
        Ok(Self { source, members: 0, decompressed: Vec::new(), max_bytes, compressed_bytes, memory })
    }

    /// Decompresses up to `up_to` bytes in total; returns true at the end of the input.
    fn decompress_up_to(&mut self, up_to: usize) -> Result<bool, ApiError> {
        let end = self.max_bytes.saturating_add(1).min(up_to);
        while self.decompressed.len() < end {
            self.make_room()?;
            let room = end.min(self.decompressed.capacity()) - self.decompressed.len();
            let most = u64::try_from(room).unwrap_or(u64::MAX);
            let read = match &mut self.source {
                Source::Gzip(decoder) => decoder.take(most).read_to_end(&mut self.decompressed),
                Source::Zstd(decoder) => decoder.take(most).read_to_end(&mut self.decompressed),
            };
            let read = read.map_err(|error| self.source.malformed(&error))?;
            if self.decompressed.len() > self.max_bytes {
                return Err(ApiError::from_kind(ErrorKind::PayloadTooLarge));
            }
            if read < room && !self.begin_next_member()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Begins the next gzip member; returns false at the end of the input.
    fn begin_next_member(&mut self) -> Result<bool, ApiError> {
        let Source::Gzip(decoder) = &mut self.source else { return Ok(false) };
        let rest = std::mem::take(decoder.get_mut().get_mut());
        if rest.is_empty() {
            return Ok(false);
        }
        self.members += 1;
        if self.members == MAX_GZIP_MEMBERS || !rest.starts_with(GZIP_MAGIC) {
            return Err(ApiError::invalid_body("The body is sent as gzip and has bytes behind its end"));
        }
        *decoder = GzDecoder::new(rest.reader());
        Ok(true)
    }

    /// Doubles a full buffer after its memory is leased: that of the processing, of which a copy to the doubled buffer is
    /// a part. A body that could not be processed is rejected here, before many such bodies are in memory.
    fn make_room(&mut self) -> Result<(), ApiError> {
        let (length, capacity) = (self.decompressed.len(), self.decompressed.capacity());
        if length < capacity {
            return Ok(());
        }
        let first = self.compressed_bytes.saturating_mul(4).clamp(MIN_BUFFER, INLINE_MAX_DECOMPRESSED_BYTES);
        let wanted = capacity.saturating_mul(2).max(first).min(self.max_bytes.saturating_add(1)).max(length + 1);
        self.memory.resize(self.compressed_bytes.saturating_add(wanted.saturating_mul(PROCESSING_COPIES)))?;
        self.decompressed.reserve_exact(wanted - length);
        Ok(())
    }

    /// Returns the whole body and shrinks the lease to its processing.
    fn end(self) -> Result<(Bytes, BodyLease), ApiError> {
        let Self { decompressed, mut memory, .. } = self;
        memory.resize(decompressed.len().saturating_mul(PROCESSING_COPIES))?;
        Ok((Bytes::from(decompressed), memory))
    }
}

impl Source {
    fn name(&self) -> &'static str {
        match self {
            Self::Gzip(_) => "gzip",
            Self::Zstd(_) => "zstd",
        }
    }

    fn malformed(&self, error: &io::Error) -> ApiError {
        // The decoder's message may quote the caller's bytes, so it is left out.
        let fault = if error.kind() == io::ErrorKind::UnexpectedEof { "is cut short" } else { "cannot be unpacked" };
        ApiError::invalid_body(format!("The body is sent as {} and {fault}", self.name()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use actix_web::http::header::HeaderValue;
    use proptest::prelude::*;

    use super::*;
    use crate::http::admission::memory_tests::{account, memory};

    fn lease() -> BodyLease {
        memory(usize::MAX, usize::MAX).lease(account(1))
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 3).unwrap()
    }

    async fn decompress(encoding: ContentEncoding, compressed: Vec<u8>, max: usize) -> Result<Bytes, (u16, String)> {
        let shown = |error: ApiError| (error.status().as_u16(), error.text().to_owned());
        let decompressed = encoding.decompress(compressed.into(), max, lease()).await;
        decompressed.map(|(bytes, _)| bytes).map_err(shown)
    }

    fn named(values: &[&str]) -> Result<ContentEncoding, u16> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CONTENT_ENCODING, HeaderValue::from_str(value).unwrap());
        }
        ContentEncoding::from_headers(&headers).map_err(|error| error.status().as_u16())
    }

    #[test]
    fn single_known_encoding_is_accepted() {
        assert_eq!(named(&[]), Ok(ContentEncoding::Identity));
        assert_eq!(named(&["identity", "GZIP"]), Ok(ContentEncoding::Gzip));
        assert_eq!(named(&["x-gzip"]), Ok(ContentEncoding::Gzip));
        assert_eq!(named(&["zstd, identity"]), Ok(ContentEncoding::Zstd));
        for other in [&["br"][..], &["deflate"], &["gzip, zstd"], &["gzip", "gzip"], &["gzip;q=1"]] {
            assert_eq!(named(other), Err(415), "{other:?}");
        }
    }

    #[actix_web::test]
    async fn decompress_restores_body_of_any_size() {
        let random =
            |length: usize| (0..length).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect::<Vec<u8>>();
        for length in [
            0,
            1,
            INLINE_MAX_DECOMPRESSED_BYTES - 1,
            INLINE_MAX_DECOMPRESSED_BYTES,
            INLINE_MAX_DECOMPRESSED_BYTES + 1,
            3 << 20,
        ] {
            let plain = random(length);
            for (encoding, compressed) in [(ContentEncoding::Gzip, gzip(&plain)), (ContentEncoding::Zstd, zstd(&plain))]
            {
                assert_eq!(decompress(encoding, compressed, 4 << 20).await.unwrap(), plain, "{encoding:?} {length}");
            }
        }
        let identity = ContentEncoding::Identity;
        assert_eq!(decompress(identity, b"as it is".to_vec(), 8).await.unwrap(), "as it is");
    }

    #[actix_web::test]
    async fn decompress_rejects_bombs_at_limit() {
        let plain = vec![b' '; 64 << 20];
        for (encoding, compressed) in [(ContentEncoding::Gzip, gzip(&plain)), (ContentEncoding::Zstd, zstd(&plain))] {
            assert!(compressed.len() < 100 << 10);
            let refused = decompress(encoding, compressed, 1 << 20).await.unwrap_err();
            assert_eq!(refused, (413, "Request payload too large".to_owned()));
        }
        for (encoding, compressed) in [(ContentEncoding::Gzip, gzip(b"12345")), (ContentEncoding::Zstd, zstd(b"12345"))]
        {
            assert_eq!(decompress(encoding, compressed.clone(), 4).await.unwrap_err().0, 413);
            assert!(decompress(encoding, compressed, 5).await.is_ok());
        }
    }

    #[actix_web::test]
    async fn zstd_frame_with_large_window_is_rejected() {
        let with_window = |log: u32| {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
            encoder.window_log(log).unwrap();
            encoder.include_contentsize(false).unwrap();
            // The window is encoded as requested only if the content size is unknown.
            encoder.write_all(b"{}").unwrap();
            encoder.flush().unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(decompress(ContentEncoding::Zstd, with_window(23), 1 << 20).await.unwrap(), "{}");
        assert_eq!(decompress(ContentEncoding::Zstd, with_window(24), 1 << 20).await.unwrap_err().0, 400);
        assert_eq!(decompress(ContentEncoding::Zstd, with_window(24), 16 << 20).await.unwrap(), "{}");
    }

    #[actix_web::test]
    async fn malformed_and_truncated_bodies_are_rejected() {
        for (encoding, compressed) in [(ContentEncoding::Gzip, gzip(b"12345")), (ContentEncoding::Zstd, zstd(b"12345"))]
        {
            let cut = decompress(encoding, compressed[..compressed.len() - 3].to_vec(), 9).await.unwrap_err();
            assert!(cut.0 == 400 && cut.1.ends_with("is cut short"), "{cut:?}");
            assert_eq!(decompress(encoding, b"{\"model\":1}".to_vec(), 99).await.unwrap_err().0, 400);
            let trailed = decompress(encoding, [compressed, b"x".to_vec()].concat(), 9).await.unwrap_err();
            assert_eq!(trailed.0, 400, "{encoding:?}");
        }
        let mut wrong_sum = gzip(b"12345");
        let sum = wrong_sum.len() - 8;
        wrong_sum[sum] ^= 1;
        assert_eq!(decompress(ContentEncoding::Gzip, wrong_sum, 9).await.unwrap_err().0, 400);
    }

    #[actix_web::test]
    async fn gzip_members_are_joined() {
        let members =
            [gzip(b"{\"a\":"), gzip(b""), gzip(&vec![b' '; INLINE_MAX_DECOMPRESSED_BYTES]), gzip(b"1}")].concat();
        let joined = decompress(ContentEncoding::Gzip, members.clone(), 1 << 20).await.unwrap();
        assert!(joined.starts_with(b"{\"a\": ") && joined.ends_with(b" 1}"));
        assert_eq!(decompress(ContentEncoding::Gzip, members, INLINE_MAX_DECOMPRESSED_BYTES).await.unwrap_err().0, 413);
        let cut = [gzip(b"1"), gzip(b"2")[..9].to_vec()].concat();
        assert_eq!(decompress(ContentEncoding::Gzip, cut, 9).await.unwrap_err().0, 400);
        let most = gzip(b"").repeat(MAX_GZIP_MEMBERS);
        assert_eq!(decompress(ContentEncoding::Gzip, most.clone(), 9).await.unwrap(), "");
        let more = decompress(ContentEncoding::Gzip, [most, gzip(b"")].concat(), 9).await.unwrap_err();
        assert_eq!(more.0, 400);
    }

    proptest! {
        #[test]
        fn decompress_never_panics_or_exceeds_limit(bytes in prop::collection::vec(any::<u8>(), 0..300), flip in any::<usize>()) {
            for (begin, mut source) in [
                (gzip(&bytes), Decompression::gzip(Bytes::new(), 100, lease())),
                (zstd(&bytes), Decompression::zstd(Bytes::new(), 100, lease()).unwrap()),
            ] {
                let mut broken = begin;
                let index = flip % broken.len();
                broken[index] ^= 1 << (flip % 8);
                source = match source.source {
                    Source::Gzip(_) => Decompression::gzip(broken.into(), 100, lease()),
                    Source::Zstd(_) => Decompression::zstd(broken.into(), 100, lease()).unwrap(),
                };
                let _ = source.decompress_up_to(usize::MAX);
                prop_assert!(source.decompressed.len() <= 101);
            }
        }
    }
}
