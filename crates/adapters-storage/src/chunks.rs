//! Splitting of long lists for statements with many parameters.

/// The longest chunk: far below the limits of SQLite (32,766 parameters) and PostgreSQL (65,535).
const LONGEST: usize = 4096;

/// Splits `items` into chunks whose lengths are powers of two, longest first. A connection caches prepared statements
/// by text, so few lengths mean few preparations.
pub(crate) fn chunks<T>(items: &[T]) -> impl Iterator<Item = &[T]> {
    chunks_of(items, LONGEST)
}

/// Like [`chunks`], with chunks of at most `longest`, which must be a power of two.
pub(crate) fn chunks_of<T>(mut items: &[T], longest: usize) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let power = items.len().checked_ilog2()?;
        let (piece, rest) = items.split_at(longest.min(1 << power));
        items = rest;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_powers_of_two_and_cover_all_items() {
        let items: Vec<usize> = (0..10_007).collect();
        let lengths: Vec<usize> = chunks(&items).map(<[usize]>::len).collect();
        assert_eq!(lengths, [4096, 4096, 1024, 512, 256, 16, 4, 2, 1]);
        assert_eq!(chunks(&items).flatten().copied().collect::<Vec<_>>(), items);
        assert_eq!(chunks::<u8>(&[]).count(), 0);
        assert_eq!(chunks_of(&items, 8).map(<[usize]>::len).max(), Some(8));
    }
}
