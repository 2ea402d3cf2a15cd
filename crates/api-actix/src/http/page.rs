//! The pages of lists: `offset` and `limit`.

use domain::cursor::ReadSize;

use super::admission::InFlightPermit;
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

/// The memory of an element of a list, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ElementSize {
    /// Its text, which its view and the response copy.
    pub(crate) text: u64,
    /// Its parsed structures beyond the text.
    pub(crate) structures: u64,
}

impl ElementSize {
    /// Returns the size of an element without parsed structures.
    pub(crate) fn of_text(text: u64) -> Self {
        Self { text, structures: 0 }
    }

    fn add(self, other: Self) -> Self {
        let [text, structures] = [(self.text, other.text), (self.structures, other.structures)]
            .map(|(own, other)| own.saturating_add(other));
        Self { text, structures }
    }
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
        size_of: impl Fn(&T) -> ElementSize,
        read: impl AsyncFnMut(u64, u64) -> Result<(Vec<T>, u64), ApiError>,
    ) -> Result<(Vec<T>, u64), ApiError> {
        self.read_held(call.permit().as_ref(), size_of, read).await
    }

    async fn read_held<T>(
        self,
        permit: Option<&InFlightPermit>,
        size_of: impl Fn(&T) -> ElementSize,
        mut read: impl AsyncFnMut(u64, u64) -> Result<(Vec<T>, u64), ApiError>,
    ) -> Result<(Vec<T>, u64), ApiError> {
        let held_before = permit.map_or(0, |permit| permit.memory().bytes());
        let (mut elements, mut size, mut before, mut changes) = (Vec::new(), ReadSize::FIRST, None, 0);
        loop {
            let read_so_far = elements.len() as u64;
            let wanted = size.elements().min(self.limit - read_so_far);
            let (piece, total) = read(self.offset.saturating_add(read_so_far), wanted).await?;
            let sizes = piece.iter().map(&size_of);
            let (held, largest) = sizes.fold((ElementSize::of_text(0), 0), |(held, largest), size| {
                (held.add(size), largest.max(size.text.saturating_add(size.structures)))
            });
            if let Some(permit) = permit {
                let [text, structures] =
                    [held.text, held.structures].map(|bytes| bytes.try_into().unwrap_or(usize::MAX));
                permit.memory().hold_elements(text, structures)?;
            }
            size.adapt(largest);
            if before.replace(total).is_some_and(|before| before != total) && changes < MAX_REPEATED_READS {
                // The list has changed between the pieces, so that an element may be in both.
                (elements, changes) = (Vec::new(), changes + 1);
                if let Some(permit) = permit {
                    permit.memory().shrink_to(held_before);
                }
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
    use std::sync::Arc;

    use domain::testing::SequentialIds;

    use super::*;
    use crate::http::admission::memory_tests::{account, memory};
    use crate::http::admission::{Admission, AdmissionSettings, Owner};
    use crate::http::recorder::NoRecorder;

    #[tokio::test]
    async fn list_that_changes_between_pieces_is_read_again_and_its_memory_returned() {
        const SIZE: ElementSize = ElementSize { text: 60_000, structures: 5_000 };
        let admission = Arc::new(Admission::new(AdmissionSettings::default(), Arc::new(NoRecorder)));
        // A piece has 16 elements. Forty take 9,800,000 bytes, and the two pieces of an attempt that failed 7,840,000.
        let memory = memory(10_000_000, 10_000_000);
        let owner = Owner { key: SequentialIds::key(1), workspace: None };
        let mut lease = memory.lease(account(1));
        lease.resize(100).unwrap();
        let permit = admission.enter(owner, lease).unwrap();
        for changes in 0..=MAX_REPEATED_READS + 1 {
            let (mut total, mut reads) = (50, Vec::new());
            let read = async |offset: u64, limit: u64| {
                // An element is added at the beginning before each of so many second pieces.
                if offset > 7 && total < 50 + u64::from(changes) {
                    total += 1;
                }
                reads.push(offset);
                Ok(((offset..total.min(offset + limit)).map(|place| total - place).collect(), total))
            };
            let range = PageRange { offset: 7, limit: 40 };
            let (elements, counted) = range.read_held(Some(&permit), |_: &u64| SIZE, read).await.unwrap();
            assert_eq!((elements.len(), counted), (40, total));
            let is_whole = elements.windows(2).all(|pair| pair[0] == pair[1] + 1);
            assert_eq!(is_whole, changes <= MAX_REPEATED_READS, "{elements:?}");
            let attempts = reads.iter().filter(|offset| **offset == 7).count();
            assert_eq!(attempts, 1 + changes.min(MAX_REPEATED_READS) as usize);
            assert_eq!(memory.held(), 100 + 40 * 245_000, "the elements of the page, after {changes} changes");
            permit.memory().shrink_to(100);
        }
    }

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
