//! Splitting of long lists for statements with many parameters.

/// The longest chunk: far below the limits of SQLite (32,766 parameters) and PostgreSQL (65,535).
const LONGEST: usize = 4096;
/// The longest chunk of any length: the counters of a payer are one statement.
const SHORT: usize = 8;

/// Splits `items` into chunks whose lengths are powers of two, longest first, and a last one of up to [`SHORT`] items. A
/// connection caches prepared statements by text, so few lengths mean few preparations.
pub(crate) fn chunks<T>(items: &[T]) -> impl Iterator<Item = &[T]> {
    chunks_of(items, LONGEST)
}

/// Like [`chunks`], with chunks of at most `longest`, which must be a power of two.
pub(crate) fn chunks_of<T>(mut items: &[T], longest: usize) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let power = 1 << items.len().checked_ilog2()?;
        let length = if items.len() <= SHORT { items.len() } else { power };
        let (piece, rest) = items.split_at(longest.min(length));
        items = rest;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_few_lengths_and_cover_all_items() {
        let items: Vec<usize> = (0..10_007).collect();
        let lengths: Vec<usize> = chunks(&items).map(<[usize]>::len).collect();
        assert_eq!(lengths, [4096, 4096, 1024, 512, 256, 16, 7]);
        assert_eq!(chunks(&items).flatten().copied().collect::<Vec<_>>(), items);
        assert_eq!(chunks::<u8>(&[]).count(), 0);
        assert_eq!(chunks_of(&items, 8).map(<[usize]>::len).max(), Some(8));
    }
}
