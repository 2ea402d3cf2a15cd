//! Cursors of append-only lists.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// A text that is not a cursor of the list, or that is one of another filter or caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cursor must be the cursor of a page of the same list, with the same filter and key")]
pub struct InvalidCursor;

/// The size of the elements after which a page ends, also before its limit.
pub const PAGE_BYTES: u64 = 1 << 20;

/// The number of elements of the next read of a list: a read of large elements takes about [`PAGE_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadSize(u64);

impl ReadSize {
    /// The size of the first read, before which the size of the elements is unknown.
    pub const FIRST: Self = Self(16);
    const MAX: u64 = 250;

    /// Returns the number of elements.
    pub fn elements(self) -> u64 {
        self.0
    }

    /// Adapts to the largest element of a read; growing elements are found in time.
    pub fn adapt(&mut self, largest_bytes: u64) {
        self.0 = (PAGE_BYTES / largest_bytes.max(1)).clamp(1, Self::MAX.min(self.0 * 4));
    }
}

/// Reads a page by pieces: up to `limit` elements, or fewer once they take [`PAGE_BYTES`]. `next` returns so many of the
/// following elements, fewer at the end. Returns the elements, and whether others follow.
///
/// # Errors
/// Those of `next`.
pub async fn read_page<T, E>(
    limit: usize,
    stored_bytes: impl Fn(&T) -> u64,
    mut next: impl AsyncFnMut(u64) -> Result<Vec<T>, E>,
) -> Result<(Vec<T>, bool), E> {
    let (mut size, mut elements, mut bytes, mut has_more) = (ReadSize::FIRST, Vec::new(), 0, true);
    while has_more && elements.len() <= limit && bytes < PAGE_BYTES {
        let wanted = size.elements().min((limit + 1 - elements.len()) as u64);
        let read = next(wanted).await?;
        has_more = read.len() as u64 == wanted;
        bytes += read.iter().map(&stored_bytes).sum::<u64>();
        size.adapt(read.iter().map(&stored_bytes).max().unwrap_or_default());
        elements.extend(read);
    }
    elements.truncate(limit);
    Ok((elements, has_more))
}

const DIGEST_BYTES: usize = 16;
/// No cursor is longer.
const MAX_CURSOR_BYTES: usize = 256;

/// The list, the filter and the caller of a cursor, as a digest. A cursor is this digest and a position, in base64url.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorScope([u8; DIGEST_BYTES]);

impl CursorScope {
    /// Creates the scope of a list. `parts` are the caller and the filter; any other part is another scope.
    pub fn new<'a>(list: &'static str, parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut digest = Sha256::new();
        for part in std::iter::once(list).chain(parts) {
            // The length keeps parts apart.
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        let mut short = [0; DIGEST_BYTES];
        short.copy_from_slice(&digest.finalize()[..DIGEST_BYTES]);
        Self(short)
    }

    /// Returns the cursor of a position.
    pub fn encode(&self, position: &str) -> String {
        URL_SAFE_NO_PAD.encode([&self.0, position.as_bytes()].concat())
    }

    /// Returns the position of a cursor.
    ///
    /// # Errors
    /// The text is no cursor of this scope.
    pub fn decode(&self, cursor: &str) -> Result<String, InvalidCursor> {
        let bytes = (cursor.len() <= MAX_CURSOR_BYTES).then(|| URL_SAFE_NO_PAD.decode(cursor).ok()).flatten();
        let bytes = bytes.ok_or(InvalidCursor)?;
        let position = bytes.strip_prefix(&self.0[..]).ok_or(InvalidCursor)?;
        String::from_utf8(position.to_vec()).map_err(|_| InvalidCursor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cursor_of_another_list_filter_or_caller_is_rejected() {
        let scope = CursorScope::new("a", ["caller", "filter"]);
        let cursor = scope.encode("7/x");
        assert_eq!(scope.decode(&cursor).as_deref(), Ok("7/x"));
        let others = [
            CursorScope::new("b", ["caller", "filter"]),
            CursorScope::new("a", ["other", "filter"]),
            CursorScope::new("a", ["caller", "other"]),
            CursorScope::new("a", ["callerf", "ilter"]),
            CursorScope::new("a", ["caller"]),
        ];
        for other in others {
            assert_eq!(other.decode(&cursor), Err(InvalidCursor));
        }
    }

    #[test]
    fn read_size_falls_at_once_and_grows_slowly() {
        let mut size = ReadSize::FIRST;
        let mut after = |bytes| {
            size.adapt(bytes);
            size.elements()
        };
        assert_eq!([after(0), after(600), after(600)], [64, 250, 250]);
        assert_eq!([after(PAGE_BYTES / 3), after(u64::MAX), after(1), after(1)], [3, 1, 4, 16]);
    }

    /// Returns the sizes of the pages of elements of these sizes, and of their reads.
    async fn pages(limit: usize, elements: &[u64]) -> (Vec<usize>, Vec<usize>) {
        let (mut at, mut sizes, mut reads) = (0, Vec::new(), Vec::new());
        loop {
            let mut place = at;
            let next = async |wanted: u64| {
                let rest = &elements[place..];
                let read = rest[..rest.len().min(usize::try_from(wanted).unwrap())].to_vec();
                place += read.len();
                reads.push(read.len());
                Ok::<_, ()>(read)
            };
            let (page, has_more) = read_page(limit, |bytes| *bytes, next).await.unwrap();
            at += page.len();
            sizes.push(page.len());
            if !has_more {
                return (sizes, reads);
            }
        }
    }

    #[tokio::test]
    async fn page_ends_at_its_limit_or_with_its_bytes() {
        assert_eq!(pages(100, &[1; 250]).await.0, [100, 100, 50]);
        assert_eq!(pages(100, &[1; 200]).await.0, [100, 100]);
        assert_eq!(pages(100, &[]).await.0, [0]);
        assert_eq!(pages(100, &[PAGE_BYTES / 4; 20]).await.0, [16, 4], "a first read");
        assert_eq!(pages(3, &[PAGE_BYTES; 7]).await.0, [3, 3, 1]);
        let growing = [vec![1; 100], vec![PAGE_BYTES / 4; 200]].concat();
        let (sizes, reads) = pages(1_000, &growing).await;
        assert_eq!((sizes.iter().sum::<usize>(), reads[..3].to_vec()), (300, vec![16, 64, 220]));
    }

    proptest! {
        #[test]
        fn decode_returns_encoded_positions_and_rejects_other_texts(position in ".{0,40}", text in ".{0,300}") {
            let scope = CursorScope::new("a", ["b"]);
            prop_assert_eq!(scope.decode(&scope.encode(&position)), Ok(position));
            prop_assert_eq!(scope.decode(&text), Err(InvalidCursor));
        }
    }
}
