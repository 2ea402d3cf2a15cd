//! The number of cases of a property test.

/// The cases of a property if `PROPTEST_CASES` is not set.
const DEFAULT_CASES: u32 = 256;

/// Returns the cases of a property with `usual` cases, scaled by `PROPTEST_CASES`. `configured` is the value that the
/// library read from that variable, 256 by default: 2560 means ten times the usual cases of every property.
pub fn property_cases(usual: u32, configured: u32) -> u32 {
    let cases = u64::from(usual) * u64::from(configured) / u64::from(DEFAULT_CASES);
    u32::try_from(cases).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_follow_the_configured_number() {
        assert_eq!(property_cases(1_000, 256), 1_000);
        assert_eq!(property_cases(48, 2_560), 480);
        assert_eq!(property_cases(48, 1), 1, "at least one");
        assert_eq!(property_cases(512, 128), 256);
        assert_eq!(property_cases(u32::MAX, u32::MAX), u32::MAX);
    }
}
