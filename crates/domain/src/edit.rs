//! A change to an optional member.

/// The change of an optional value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Edit<T> {
    /// The value is kept.
    #[default]
    Keep,
    /// The value is removed.
    Clear,
    /// The value is replaced.
    Set(T),
}

impl<T> Edit<T> {
    /// Returns the value after the change.
    pub fn of(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Keep => before,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    /// Returns true if the value is removed.
    pub fn is_clear(&self) -> bool {
        matches!(self, Self::Clear)
    }

    /// Returns true if the value is kept.
    pub fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }
}

#[cfg(test)]
mod tests {
    use super::Edit;

    #[test]
    fn edit_keeps_clears_or_sets_value() {
        assert_eq!(Edit::Keep.of(Some(1)), Some(1));
        assert_eq!(Edit::Clear.of(Some(1)), None);
        assert_eq!(Edit::Set(2).of(Some(1)), Some(2));
        assert_eq!(Edit::Set(2).of(None), Some(2));
        assert!(Edit::<u8>::default().is_keep() && !Edit::<u8>::Clear.is_keep());
    }
}
