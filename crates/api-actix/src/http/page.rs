//! The pages of lists: `offset` and `limit`.

use domain::cursor::ReadSize;

use super::call::Call;
use super::error::ApiError;
use super::parameters;

/// The maximum number of elements on a page.
pub(crate) const MAX_LIMIT: u64 = 100;
/// The default number of elements on a page of most lists.
pub(crate) const DEFAULT_LIMIT: u64 = 50;

/// The number of times that a list that changes is read again.
const MAX_REPEATED_READS: u32 = 3;

/// The requested range of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageRange {
    pub(crate) offset: u64,
    pub(crate) limit: u64,
}

impl PageRange {
    /// Reads the parameters `offset` and `limit`.
    ///
    /// # Errors
    /// 400 for other values than whole numbers, and for a limit outside of 1 to 100.
    pub(crate) fn parse(query: &str, default_limit: u64) -> Result<Self, ApiError> {
        let offset = parameters::count(query, "offset")?.unwrap_or(0) as u64;
        let limit = parameters::count(query, "limit")?.map_or(default_limit, |limit| limit as u64);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(ApiError::invalid(format!("limit must be 1 to {MAX_LIMIT}")));
        }
        // Stores count in signed numbers.
        Ok(Self { offset: offset.min(i64::MAX.unsigned_abs()), limit })
    }

    /// Returns the elements of the range and the number of all, read by pieces. The request holds the memory of the
    /// elements, which may be large. `read` returns the elements after an offset, up to a limit, and the number of all.
    ///
    /// # Errors
    /// Those of `read`; 413, 429 or 503 if the memory of bodies has no place for the elements.
    pub(crate) async fn read<T>(
        self,
        call: &Call<'_>,
        stored_bytes: impl Fn(&T) -> u64,
        mut read: impl AsyncFnMut(u64, u64) -> Result<(Vec<T>, u64), ApiError>,
    ) -> Result<(Vec<T>, u64), ApiError> {
        let hold = |bytes| call.permit().map_or(Ok(()), |permit| permit.memory().hold_elements(bytes));
        let (mut elements, mut size, mut before, mut changes) = (Vec::new(), ReadSize::FIRST, None, 0);
        loop {
            let read_so_far = elements.len() as u64;
            let wanted = size.elements().min(self.limit - read_so_far);
            let (piece, total) = read(self.offset.saturating_add(read_so_far), wanted).await?;
            hold(piece.iter().map(&stored_bytes).sum::<u64>().try_into().unwrap_or(usize::MAX))?;
            size.adapt(piece.iter().map(&stored_bytes).max().unwrap_or_default());
            if before.replace(total).is_some_and(|before| before != total) && changes < MAX_REPEATED_READS {
                // The list has changed between the pieces, so that an element may be in both.
                (elements, changes) = (Vec::new(), changes + 1);
                continue;
            }
            let is_end = (piece.len() as u64) < wanted;
            elements.extend(piece);
            if is_end || elements.len() as u64 >= self.limit {
                return Ok((elements, total));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_limit_is_1_to_100_with_a_default() {
        assert_eq!(PageRange::parse("", 50).unwrap(), PageRange { offset: 0, limit: 50 });
        assert_eq!(PageRange::parse("limit=100&offset=7", 50).unwrap(), PageRange { offset: 7, limit: 100 });
        let last = PageRange::parse("offset=18446744073709551615", 50).unwrap();
        assert_eq!(last.offset, i64::MAX.unsigned_abs());
        for query in ["limit=0", "limit=101", "limit=-1", "limit=", "offset=x", "offset=1.0", "limit=1&limit=1"] {
            assert_eq!(PageRange::parse(query, 50).unwrap_err().status().as_u16(), 400, "{query}");
        }
    }
}
