//! What a change says of one member that may be absent.

/// What becomes of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Edit<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// It is taken away.
    Clear,
    /// It is replaced.
    Set(T),
}

impl<T> Edit<T> {
    /// The value after the change.
    pub fn of(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Keep => before,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    /// True where nothing changes.
    pub fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }
}

#[cfg(test)]
mod tests {
    use super::Edit;

    #[test]
    fn a_value_stays_goes_or_is_replaced() {
        assert_eq!(Edit::Keep.of(Some(1)), Some(1));
        assert_eq!(Edit::Clear.of(Some(1)), None);
        assert_eq!(Edit::Set(2).of(Some(1)), Some(2));
        assert_eq!(Edit::Set(2).of(None), Some(2));
        assert!(Edit::<u8>::default().is_keep() && !Edit::<u8>::Clear.is_keep());
    }
}
